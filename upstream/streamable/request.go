package streamable

import (
	"fmt"
	"net/url"
	"sync"

	"github.com/mcpbridge/bridge/internal/fault"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/rawjson"
	"github.com/mcpbridge/bridge/upstream"
	"github.com/mcpbridge/bridge/upstream/mirror"
)

// maxHeaderBytes bounds the header values computed from one request's params,
// in bytes. Servers refuse heads much above it.
const maxHeaderBytes = 32 << 10

// request is a call on its way: what its body says, read once, and the headers
// that mirror it (B.2, B-26).
type request struct {
	call   *upstream.Call
	id     jsonrpc.ID
	params []byte // call.Params, or a copy that declares another version
	said   []byte // raw _meta; nil until somebody asks
	// version is what _meta declares; the header repeats it.
	version string
	name    []byte // decoded source of Mcp-Name (rawjson.Name); may alias params
	named   bool
	rawName bool           // send Mcp-Name undecorated
	custom  []mirror.Field // Mcp-Param-*
	// target is where a redirect led, nil for the configured URL.
	target *url.URL
}

var requests = sync.Pool{New: func() any { return new(request) }}

// prepare learns what the headers repeat: from the call, or from the params. The request
// must be released.
func prepare(call *upstream.Call) *request {
	r := requests.Get().(*request)
	*r = request{call: call, params: call.Params, version: string(mcp.V20260728), custom: r.custom[:0]}
	source := mirror.NameSource(call.Method)
	if call.About.Version != "" {
		r.version = call.About.Version
		if source != "" {
			r.name, r.named = rawjson.NameBytes(call.About.Name)
		}
		return r
	}
	for name, value := range rawjson.Members(call.Params) {
		switch string(name) {
		case "_meta":
			r.said = value
			if v, ok := rawjson.TextBytes(rawjson.Get(value, mcp.MetaProtocolVersion)); ok && string(v) != r.version {
				r.version = string(v)
			}
		case source:
			r.name, r.named = rawjson.NameBytes(value)
		}
	}
	return r
}

// meta is the raw _meta, which few requests need.
func (r *request) meta() []byte {
	if r.said == nil {
		r.said = rawjson.Get(r.params, "_meta")
	}
	return r.said
}

// release ends the use of r.
func (r *request) release() {
	clear(r.custom)
	*r = request{custom: r.custom[:0]}
	requests.Put(r)
}

// appendName appends the value of Mcp-Name (B-15).
func (r *request) appendName(dst []byte) []byte {
	if r.rawName && mirror.LegalRaw(r.name) {
		return append(dst, rawjson.Readable(string(r.name))...)
	}
	return mirror.AppendValue(dst, r.name)
}

// redeclare makes the request declare another protocol version (E-39).
func (r *request) redeclare(version string) {
	if version != r.version {
		r.params, r.said, r.version = upstream.Redeclare(r.params, version), nil, version
	}
}

// applyPlan computes the Mcp-Param-* headers of a tools/call anew. It returns
// an error to answer with when the tool may not be called (B-23).
func (r *request) applyPlan(p *mirror.Plan) *jsonrpc.Error {
	r.custom = r.custom[:0]
	if p == nil {
		return nil
	}
	if illegal := p.Illegal(); illegal != "" {
		return refuse(jsonrpc.CodeInvalidParams, "illegal_tool", fmt.Sprintf(
			"tool %q cannot be called: its definition breaks the rules for %s (%s)", upstream.Clip(string(r.name)), mirror.Annotation, illegal))
	}
	r.custom = p.AppendFields(r.custom, rawjson.Get(r.params, "arguments"))
	return nil
}

// check refuses what no header can carry, before anything is sent.
func (r *request) check() *jsonrpc.Error {
	if m := r.call.Method; m == "" || !mirror.Plain(m) {
		return refuse(jsonrpc.CodeMethodNotFound, "method_name", "the method name cannot stand in an HTTP header")
	}
	total := len(r.name)
	for _, f := range r.custom {
		total += len(f.Value)
	}
	if total > maxHeaderBytes {
		return refuse(jsonrpc.CodeInvalidParams, "header_too_large", fmt.Sprintf(
			"the parts of the request that HTTP headers must repeat exceed %d bytes", maxHeaderBytes))
	}
	if !mirror.Plain(r.version) {
		return refuse(jsonrpc.CodeInternal, "version", "the protocol version cannot stand in an HTTP header")
	}
	return nil
}

// refuse makes an error about a request that cannot be sent.
func refuse(code int, reason, text string) *jsonrpc.Error {
	return fault.New(code, text, fault.Reason(reason))
}
