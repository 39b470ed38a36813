package record

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"

	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/rawjson"
)

// Redactor decides what of a message may be seen. It is safe for concurrent use.
//
// Without payloads a value stays only where the protocol says what may stand there: its
// own words, methods, names of tools, prompts and programs, and the numbers that steer
// it, each in the objects where the protocol has it. All others are replaced by their kind
// and size, such as string(16). Names of members stay: they are the structure. With payloads
// all stays but request state, what of URLs may be credentials, and what is called like a
// secret, or stands in such a thing.
type Redactor struct {
	payloads bool
	key      []byte // tells request states apart, and nothing about them
}

// NewRedactor returns one that lets payloads pass, or not.
func NewRedactor(payloads bool) *Redactor {
	r := &Redactor{payloads: payloads, key: make([]byte, 32)}
	_, _ = rand.Read(r.key) // never fails since Go 1.24
	return r
}

// Payloads reports whether payloads pass.
func (r *Redactor) Payloads() bool { return r.payloads }

// place says where a value stands.
type place struct {
	name   string  // of its member; that of the array for elements
	parent string  // of the object around it
	about  bool    // in a message whose params name a tool or prompt: that itself, its params and their members
	list   bool    // it is an element, which stands for nothing that the member alone does
	free   bool    // in what people, models and servers fill as they like
	secret secrecy // of what it is called, or of what it stands in
	of     secrecy // of what the schema is of that it stands in
	role   role    // what it is of a schema
	called bool    // somebody else named it: the name says what it is of, and nothing of the value itself
}

// role says what of a schema a value is. The protocol says where schemas begin; whatever looks like one elsewhere
// is what somebody gave.
type role uint8

const (
	given  role = iota // no schema, or what one says of values
	schema             // a schema, or a list of them
	fields             // an object of schemas, by the names of what they are of
)

// member returns the place of a member of the object there.
func (at place) member(name string, value []byte) place {
	in := place{name: name, parent: at.name, secret: at.secret, of: at.of}
	object := rawjson.KindOf(value) == rawjson.Object
	in.free = at.free || filled[name] || name == "content" && object
	in.about = at.about && (at == place{about: true} && name == "params" || at.name == "params" && at.parent == "")
	switch at.name {
	case "params": // the message's, or those of a request in a result: no others are the protocol's
		in.free = in.free || at.list || at.parent != "" && at.parent != inputRequest
	case "result", "error": // the message's, or those of a task
		in.free = in.free || at.list || at.parent != "" && at.parent != "result" && at.parent != "params"
	case "_meta":
		in.free = in.free || !at.has(name)
	}
	if name == "" || name == inputRequest { // the names of places that no member gives one
		in.name = "-"
	}
	switch {
	case object && at.role == fields:
		in.role, in.called = schema, true
		in.of = max(in.of, secrecyOf(name))
	case object && !at.free && !at.list && inputs[at.name][at.parent]:
		in.called = true
		if at.name == "inputRequests" {
			in.name = inputRequest
		}
	default:
		in.secret = max(in.secret, secrecyOf(name))
		switch {
		case at.role == given:
			if begins[name] && !in.free {
				in.role = schema
			}
		case at.role == schema && parts[name]:
			in.role = schema
		case at.role == schema && maps[name]:
			in.role = fields
		case at.role == schema && !object && forms[name]:
		case at.called && !object && captions[name]:
			in.free = true
		default: // it may say the value itself
			in.free = true
			in.secret = max(in.secret, in.of)
		}
	}
	return in
}

// has reports whether the _meta there is one in which the protocol has a member of this name: only requests ask for
// progress, and content blocks, tools and whatever else has a _meta have nothing of the protocol's in it.
func (at place) has(name string) bool {
	switch at.parent {
	case "params":
		return name == "progressToken" || strings.HasPrefix(name, "io.modelcontextprotocol/")
	case "result":
		return strings.HasPrefix(name, "io.modelcontextprotocol/")
	}
	return false
}

// inputRequest is what the places of the server's requests are called that stand in a result.
const inputRequest = "inputRequest"

// own reports whether it is a place for what steers the protocol.
func (at place) own() bool { return !at.free && !at.list && own[at.name][at.parent] }

// Message returns a JSON-RPC message, which must be valid, as it may be seen.
func (r *Redactor) Message(text []byte) []byte {
	method, _ := rawjson.Text(rawjson.Get(text, "method"))
	return r.value(make([]byte, 0, len(text)), text, place{about: mcp.HasName(method)})
}

func (r *Redactor) value(dst, v []byte, at place) []byte {
	kind := rawjson.KindOf(v)
	if at.name == "requestState" && kind != rawjson.Null && !at.called {
		return r.state(dst, v) // of whatever type: a server may break the rules
	}
	if at.role != given && kind != rawjson.Object && kind != rawjson.Array { // no schema, though it stands for one
		at.secret = max(at.secret, at.of)
	}
	switch kind {
	case rawjson.Object:
		return r.object(dst, v, at)
	case rawjson.Array:
		return r.array(dst, v, at)
	case rawjson.String:
		return r.text(dst, v, at)
	case rawjson.Null:
		return append(dst, v...)
	case rawjson.Number:
		if r.payloads && at.secret < hidden || at.own() {
			return append(dst, v...)
		}
		return append(dst, `"number()"`...)
	}
	if r.payloads || !at.free && switches[at.name] {
		return append(dst, v...)
	}
	return append(dst, `"boolean()"`...)
}

func (r *Redactor) object(dst, v []byte, at place) []byte {
	var secret secrecy // of what it names itself
	switch {
	case at.name == "argument" && at.parent == "params": // of a prompt or a template, to be completed
		name, _ := rawjson.Text(rawjson.Get(v, "name"))
		secret = secrecyOf(name)
	case at.role == schema && rawjson.Get(v, "const") != nil: // the only option
		at.called = false
	}
	dst = append(dst, '{')
	first := true
	for name, value := range rawjson.Members(v) {
		if !first {
			dst = append(dst, ',')
		}
		first = false
		word := string(name)
		if len(word) > maxName {
			word = word[:maxName] + "…"
		}
		dst = append(rawjson.AppendQuote(dst, word), ':')
		in := at.member(word, value)
		if len(name) > maxName { // what is called so ends with what it is
			in.secret = max(in.secret, secrecyOf(string(name[len(name)-maxName:])))
		}
		if word != "name" {
			in.secret = max(in.secret, secret)
		}
		dst = r.value(dst, value, in)
	}
	return append(dst, '}')
}

// maxName bounds the name of a member, in bytes.
const maxName = 64

func (r *Redactor) array(dst, v []byte, at place) []byte {
	dst = append(dst, '[')
	first := true
	for element := range rawjson.Elements(v) {
		if !first {
			dst = append(dst, ',')
		}
		first = false
		in := at
		in.list = true
		dst = r.value(dst, element, in)
	}
	return append(dst, ']')
}

func (r *Redactor) text(dst, v []byte, at place) []byte {
	switch {
	case at.secret > shown:
		return kind(dst, v)
	case r.payloads:
		return withoutCredentials(dst, v)
	case r.stays(v, at):
		return append(dst, v...)
	}
	return kind(dst, v)
}

// kind says what is not shown.
func kind(dst, v []byte) []byte { return fmt.Appendf(dst, `"string(%d)"`, len(v)-2) }

// state gives each request state a name that is the same wherever it stands.
func (r *Redactor) state(dst, v []byte) []byte {
	mac := hmac.New(sha256.New, r.key)
	mac.Write(v)
	size := len(v)
	if rawjson.KindOf(v) == rawjson.String {
		size -= len(`""`)
	}
	return fmt.Appendf(dst, `"state(%d)-%s"`, size, hex.EncodeToString(mac.Sum(nil)[:4]))
}

// What of URLs may be credentials: who asks, and what is for the place alone.
var (
	users   = regexp.MustCompile(`([A-Za-z][A-Za-z0-9+.-]*://)[^\s<>"/?#]*@`)
	queries = regexp.MustCompile(`([A-Za-z][A-Za-z0-9+.-]*://[^\s<>"?#]*[?#])[^\s<>"]*`)
)

// withoutCredentials appends a text without those of the URLs in it.
func withoutCredentials(dst, v []byte) []byte {
	text, _ := rawjson.Name(v)
	if !strings.Contains(text, "://") {
		return append(dst, v...)
	}
	shown := queries.ReplaceAllString(users.ReplaceAllString(text, "${1}…@"), "${1}…")
	if shown == text {
		return append(dst, v...)
	}
	return rawjson.AppendQuote(dst, shown)
}

// stays reports whether a string is one that the protocol knows.
func (r *Redactor) stays(v []byte, at place) bool {
	text, _ := rawjson.Text(v)
	if at.free || len(text) > maxName {
		return false
	}
	switch at.name {
	case "name", "version":
		return !at.list && named[at.parent] && (at.parent != "params" || at.about)
	case "jsonrpc", "id", "method", "progressToken", "requestId":
		return at.own()
	}
	return spoken[at.name] && words[text]
}

func set(list string) map[string]bool {
	all := map[string]bool{}
	for word := range strings.FieldsSeq(list) {
		all[word] = true
	}
	return all
}

var (
	// filled are members whose contents people, models and servers write.
	filled = set("arguments input structuredContent data metadata enum enumNames const default example examples context experimental extensions")
	// begins are the members of tools and of requests for input that are schemas.
	begins = set("inputSchema outputSchema requestedSchema")
	// inputs are objects whose members others name, and where they stand.
	inputs = map[string]map[string]bool{"inputRequests": set("params result"), "inputResponses": set("params")}
	// parts are members of schemas that are schemas, or lists of them.
	parts = set(`items prefixItems additionalItems unevaluatedItems contains additionalProperties unevaluatedProperties propertyNames
		oneOf anyOf allOf not if then else`)
	// maps are members of schemas that are objects of them.
	maps = set("properties patternProperties $defs definitions dependentSchemas")
	// forms are members of schemas that say what form a value has. All others, known or not, may say the value itself.
	forms = set(`type format pattern minLength maxLength minimum maximum exclusiveMinimum exclusiveMaximum multipleOf
		required minItems maxItems uniqueItems minContains maxContains minProperties maxProperties
		contentEncoding contentMediaType $ref $id $schema $anchor`)
	// captions are members of schemas that say to people what it is of; of the options in one they say what these are.
	captions = set("title description")
	// own are members that steer the protocol, and the objects in which they do; a message has no name.
	own = map[string]map[string]bool{
		"jsonrpc": {"": true}, "id": {"": true}, "method": {"": true, inputRequest: true},
		"requestId": set("params"), "progressToken": set("params _meta"), "progress": set("params"), "total": set("params completion"),
		"code": set("error"), "maxTokens": set("params"),
		"ttl": set("params result task"), "ttlMs": set("params result task"), "pollInterval": set("params result task"),
	}
	// switches are members whose booleans do.
	switches = set("isError listChanged subscribe hasMore readOnlyHint destructiveHint idempotentHint openWorldHint")
	// named are objects whose names and versions are those of programs and tools. A tool or prompt that a request is about
	// stands in its params.
	named = set("params tools prompts clientInfo serverInfo io.modelcontextprotocol/clientInfo io.modelcontextprotocol/serverInfo")
	// spoken are members whose strings are words of the protocol.
	spoken = set(`type role mode action status resultType level stopReason cacheScope includeContext format audience taskSupport
		protocolVersion supportedVersions io.modelcontextprotocol/protocolVersion io.modelcontextprotocol/logLevel`)
	// words are those of the protocol.
	words = set(`accept decline cancel form url text image audio resource resource_link tool_use tool_result user assistant
		complete input_required task working completed failed cancelled public private
		object array string number integer boolean null email uri date date-time
		debug info notice warning error critical alert emergency none thisServer allServers auto required endTurn stopSequence maxTokens toolUse
		ref/prompt ref/resource 2024-11-05 2025-03-26 2025-06-18 2025-11-25 2026-07-28`)
)
