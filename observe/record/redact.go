package record

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"

	"github.com/mcpbridge/bridge/rawjson"
)

// Redactor decides what of a message may be seen. It is safe for concurrent use.
//
// Without payloads a value stays only where the protocol says what may stand there: its
// own words, methods, names of tools, prompts and programs, and the numbers that steer
// it. All others are replaced by their kind and size, such as string(16). Names of
// members stay: they are the structure. With payloads all stays but request state,
// queries of URLs, and what is called a token or the like.
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
	name   string // of its member; that of the array for elements
	parent string // of the object around it
	free   bool   // in what people, models and servers fill as they like
}

// Message returns a JSON-RPC message, which must be valid, as it may be seen.
func (r *Redactor) Message(text []byte) []byte {
	return r.value(make([]byte, 0, len(text)), text, place{})
}

func (r *Redactor) value(dst, v []byte, at place) []byte {
	switch rawjson.KindOf(v) {
	case rawjson.Object:
		return r.object(dst, v, at)
	case rawjson.Array:
		return r.array(dst, v, at)
	case rawjson.String:
		return r.text(dst, v, at)
	case rawjson.Null:
		return append(dst, v...)
	case rawjson.Number:
		if r.payloads && !secret(at.name) || !at.free && numbers[at.name] {
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
		inside := at.free || filled[word] || word == "content" && rawjson.KindOf(value) == rawjson.Object
		dst = r.value(dst, value, place{word, at.name, inside})
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
		dst = r.value(dst, element, at)
	}
	return append(dst, ']')
}

func (r *Redactor) text(dst, v []byte, at place) []byte {
	switch {
	case at.name == "requestState":
		return r.state(dst, v)
	case secret(at.name):
		return kind(dst, v)
	case r.payloads:
		return withoutQuery(dst, v)
	case !at.free && r.stays(v, at):
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
	return fmt.Appendf(dst, `"state(%d)-%s"`, len(v)-2, hex.EncodeToString(mac.Sum(nil)[:4]))
}

// withoutQuery appends a text without the query of the URL that it is.
func withoutQuery(dst, v []byte) []byte {
	text, _ := rawjson.Text(v)
	scheme, rest, isURL := strings.Cut(text, "://")
	if before, _, query := strings.Cut(rest, "?"); isURL && query && !strings.ContainsAny(scheme, " \n") {
		return rawjson.AppendQuote(dst, scheme+"://"+before+"?…")
	}
	return append(dst, v...)
}

// stays reports whether a string is one that the protocol knows.
func (r *Redactor) stays(v []byte, at place) bool {
	text, _ := rawjson.Text(v)
	if len(text) > maxName {
		return false
	}
	switch at.name {
	case "jsonrpc", "id", "method", "progressToken", "requestId":
		return true
	case "name", "version":
		return named[at.parent]
	}
	return words[text]
}

var secrets = regexp.MustCompile(`(?i)authorization|passw|secret|api[-_]?key|cookie|credential|token$`)

// secret reports whether a member is called like something that nobody may see.
func secret(name string) bool { return name != "progressToken" && secrets.MatchString(name) }

func set(list string) map[string]bool {
	all := map[string]bool{}
	for word := range strings.FieldsSeq(list) {
		all[word] = true
	}
	return all
}

var (
	// filled are members whose contents people, models and servers write.
	filled = set("arguments structuredContent data metadata enum enumNames const default examples context")
	// numbers are members whose numbers steer the protocol.
	numbers = set("code id progress progressToken requestId total ttlMs ttl pollInterval maxTokens")
	// switches are members whose booleans do.
	switches = set("isError listChanged subscribe hasMore readOnlyHint destructiveHint idempotentHint openWorldHint")
	// named are objects whose names and versions are those of programs and tools. A tool that is called
	// stands in the params.
	named = set("params tools prompts clientInfo serverInfo io.modelcontextprotocol/clientInfo io.modelcontextprotocol/serverInfo")
	// words are those of the protocol.
	words = set(`accept decline cancel form url text image audio resource resource_link tool_use tool_result user assistant
		complete input_required task working completed failed cancelled public private
		object array string number integer boolean null email uri date date-time
		debug info notice warning error critical alert emergency none thisServer allServers auto required endTurn stopSequence maxTokens toolUse
		ref/prompt ref/resource 2024-11-05 2025-03-26 2025-06-18 2025-11-25 2026-07-28`)
)
