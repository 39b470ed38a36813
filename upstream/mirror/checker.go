package mirror

import (
	"encoding/base64"
	"net/http"
	"net/textproto"
	"strings"
	"sync/atomic"

	"github.com/mcpbridge/bridge/internal/fault"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/rawjson"
)

// Checker judges whether the headers of a modern HTTP request say the same as its
// body, for servers that cannot see headers. It knows which arguments must be
// repeated there from the lists of tools that it was shown. It is safe for
// concurrent use.
type Checker struct {
	tools *Tools
	shown atomic.Bool
}

// NewChecker returns a Checker that keeps what it learns in tools; nil: for itself.
func NewChecker(tools *Tools) *Checker {
	if tools == nil {
		tools = new(Tools)
	}
	return &Checker{tools: tools}
}

// Learn reads a result of tools/list.
func (m *Checker) Learn(result []byte) {
	m.tools.Learn("", result)
	m.shown.Store(true)
}

// Blind reports whether no list of tools was shown yet.
func (m *Checker) Blind() bool { return !m.shown.Load() }

// Fault returns what is wrong with the headers of a message, nil when nothing
// is: a -32020, or a -32602 where the body itself lacks what they repeat.
func (m *Checker) Fault(h http.Header, msg *jsonrpc.Message) *jsonrpc.Error {
	request := msg.Kind() == jsonrpc.Request
	version, declared := rawjson.Text(rawjson.Get(rawjson.Get(msg.Params, "_meta"), mcp.MetaProtocolVersion))
	switch {
	case request && !declared && len(h[mcp.HeaderProtocolVersion]) > 0:
		return fault.Params("_meta lacks " + mcp.MetaProtocolVersion)
	case request || declared:
		if e := (repeated{text: version, exists: true, required: true, plain: true}).compare(h, mcp.HeaderProtocolVersion); e != nil {
			return e
		}
	}
	if e := (repeated{text: msg.Method, exists: true, required: request, plain: true}).compare(h, mcp.HeaderMethod); e != nil || !request {
		return e
	}
	source := NameSource(msg.Method)
	if source == "" {
		return nil
	}
	name, named := rawjson.Text(rawjson.Get(msg.Params, source))
	if e := (repeated{text: name, exists: named, required: named && source != "taskId"}).compare(h, mcp.HeaderName); e != nil || msg.Method != mcp.MethodToolsCall {
		return e
	}
	tool, _ := rawjson.Name(rawjson.Get(msg.Params, source)) // a header has it as Text reads it
	return m.arguments(h, tool, rawjson.Get(msg.Params, "arguments"))
}

// arguments compares the headers that stand for arguments of a tool.
func (m *Checker) arguments(h http.Header, tool string, args []byte) *jsonrpc.Error {
	plan := m.tools.Plan("", []byte(tool))
	if plan == nil || plan.illegal != "" {
		return nil
	}
	var f finder
	for _, b := range plan.bindings {
		v := f.find(args, b.path)
		text, ok := argumentText(v)
		r := repeated{text: text, exists: ok, required: ok, number: rawjson.KindOf(v) == rawjson.Number}
		if e := r.compare(h, textproto.CanonicalMIMEHeaderKey(b.header)); e != nil {
			return e
		}
	}
	return nil
}

// repeated is what a header repeats.
type repeated struct {
	text     string
	exists   bool // the body has it
	required bool // the header must be there
	plain    bool // the header knows no Base64 form
	number   bool // numbers are compared as such: 42.0 is 42
}

// compare returns what is wrong with a header, nil when nothing is.
func (r repeated) compare(h http.Header, name string) *jsonrpc.Error {
	values := h[name]
	switch {
	case len(values) == 0 && r.required:
		return mismatch(name + " header is missing")
	case len(values) == 0:
		return nil
	case len(values) > 1:
		return mismatch(name + " header is there more than once")
	}
	value, ok := decodeValue(values[0], r.plain)
	switch {
	case !ok:
		return mismatch(name + " header has characters that it must not have")
	case !r.exists, value != r.text && !(r.number && sameInteger(value, r.text)):
		return mismatch(name + " header does not match the body")
	}
	return nil
}

func mismatch(what string) *jsonrpc.Error {
	return fault.New(mcp.CodeHeaderMismatch, "Header mismatch: "+what)
}

func sameInteger(header, text string) bool {
	literal := []byte(header)
	if rawjson.KindOf(literal) != rawjson.Number || rawjson.Validate(literal) != nil {
		return false
	}
	number, ok := integerText(header)
	return ok && number == text
}

// decodeValue returns what a header value stands for (B-14).
func decodeValue(v string, plain bool) (string, bool) {
	v = strings.Trim(v, " \t")
	for i := range len(v) {
		if v[i] < 0x20 && v[i] != '\t' || v[i] > 0x7e {
			return "", false
		}
	}
	if plain || len(v) < len(sentinelPrefix)+len(sentinelSuffix) || !looksEncoded(v) {
		return v, true
	}
	text, err := base64.StdEncoding.DecodeString(v[len(sentinelPrefix) : len(v)-len(sentinelSuffix)])
	return string(text), err == nil
}
