package legacy

import (
	"net/http"

	"github.com/mcpbridge/bridge/internal/transport"
	"github.com/mcpbridge/bridge/legacy/web"
	"github.com/mcpbridge/bridge/mcp"
)

// ServeHTTP serves the MCP endpoint.
func (h *HTTP) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !h.admit(w, r) || h.handOn(w, r) {
		return
	}
	switch r.Method {
	case http.MethodPost:
		h.post(w, r)
	case http.MethodGet:
		h.listen(w, r)
	case http.MethodDelete:
		h.delete(w, r)
	case http.MethodOptions:
		web.Preflight(w, r)
	default:
		web.WriteNotAllowed(w, "", "GET, POST, DELETE, OPTIONS")
	}
}

// listen sorts out what a GET on the MCP endpoint opens.
func (h *HTTP) listen(w http.ResponseWriter, r *http.Request) {
	switch {
	case !h.opt.NoWebSocket && transport.IsWebSocket(r):
		h.webSocket(w, r)
	case h.opt.SSEMessages != "" && web.Header(r.Header, mcp.HeaderSessionID) == "" && web.Header(r.Header, mcp.HeaderLastEventID) == "":
		h.openSSE(w, r, h.opt.SSEMessages) // E-28
	default:
		h.get(w, r)
	}
}
