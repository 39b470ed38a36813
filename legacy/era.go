package legacy

import (
	"net/http"

	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/legacy/web"
)

// modern hands a request of the modern era on unchanged, or refuses it as a
// legacy server would. The error must not be one of the modern era, or a
// dual-era client would not fall back to initialize.
func (h *HTTP) modern(w http.ResponseWriter, r *http.Request, body []byte, id jsonrpc.ID) {
	next := h.backend.Modern()
	if next == nil {
		web.WriteError(w, http.StatusBadRequest, id, jsonrpc.CodeInvalidRequest, "no session: initialize first")
		return
	}
	handOn(w, r, body, next)
}
