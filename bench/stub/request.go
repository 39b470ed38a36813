package stub

import (
	"net/http"
	"strings"

	"github.com/mcpbridge/bridge/bench/scan"
	"github.com/mcpbridge/bridge/mcp"
)

// request is one modern request after its checks.
type request struct {
	id, params, caps []byte
	method           string
}

// parseModern applies every check that a server of 2026-07-28 may apply to a
// request. A fault comes with whatever id could be read.
func parseModern(body []byte, h http.Header) (request, *fault) {
	q := request{id: scan.Get(body, "id"), params: scan.Get(body, "params")}
	method, ok := scan.Text(scan.Get(body, "method"))
	q.method = string(method)
	switch {
	case !ok || !scan.Is(scan.Get(body, "jsonrpc"), "2.0"):
		return q, &fault{-32600, "no JSON-RPC request"}
	case len(q.id) == 0 || strings.IndexByte(`"-0123456789`, q.id[0]) < 0:
		return q, &fault{-32600, "id is no string or number"}
	}
	meta := scan.Get(q.params, "_meta")
	q.caps = scan.Get(meta, mcp.MetaClientCapabilities)
	switch {
	case !scan.Is(scan.Get(meta, mcp.MetaProtocolVersion), string(mcp.V20260728)):
		return q, &fault{mcp.CodeUnsupportedVersion, "_meta names no supported version"}
	case !scan.Object(q.caps):
		return q, &fault{-32602, "_meta has no client capabilities"}
	}
	return q, checkHeaders(&q, h)
}

func checkHeaders(q *request, h http.Header) *fault {
	accept := one(h, "Accept")
	switch {
	case one(h, "Content-Type") != "application/json":
		return &fault{-32600, "content type"}
	case !strings.Contains(accept, "application/json") || !strings.Contains(accept, "text/event-stream"):
		return &fault{-32600, "accept"}
	case one(h, mcp.HeaderProtocolVersion) != string(mcp.V20260728):
		return &fault{mcp.CodeHeaderMismatch, "version header"}
	case one(h, mcp.HeaderMethod) != q.method:
		return &fault{mcp.CodeHeaderMismatch, "method header"}
	case h[mcp.HeaderSessionID] != nil || h[mcp.HeaderLastEventID] != nil || h["Cookie"] != nil || h["Origin"] != nil:
		return &fault{-32600, "a header of another era"}
	}
	name, ok := scan.Text(scan.Get(q.params, "name"))
	if q.method == mcp.MethodToolsCall && (!ok || one(h, mcp.HeaderName) != string(name)) {
		return &fault{mcp.CodeHeaderMismatch, "name header"}
	}
	return nil
}

// one returns a header's value when it stands there exactly once.
func one(h http.Header, name string) string {
	if v := h[name]; len(v) == 1 {
		return v[0]
	}
	return ""
}
