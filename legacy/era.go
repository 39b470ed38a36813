package legacy

import (
	"net/http"

	"github.com/mcpbridge/bridge/internal/turns"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/legacy/web"
	"github.com/mcpbridge/bridge/mcp"
)

// modern hands a request of the modern era on unchanged, or refuses it as a
// legacy server would. The error must not be one of the modern era, or a
// dual-era client would not fall back to initialize.
func (h *HTTP) modern(w http.ResponseWriter, r *http.Request, body []byte, msg *jsonrpc.Message, from *sender) {
	next := h.backend.Modern()
	if next == nil {
		web.WriteError(w, http.StatusBadRequest, msg.ID, jsonrpc.CodeInvalidRequest, "no session: initialize first")
		return
	}
	if msg.Method == mcp.MethodListen { // which never ends by itself, and takes nothing up
		handOn(w, r, body, next)
		return
	}
	if h.tooBusy(w, r, from, 1, msg.ID) {
		return
	}
	who := turns.Who{Principal: web.Header(r.Header, "Authorization")} // as good as its digest, and for nothing
	if who.Principal == "" {
		who.Session = h.senderOf(r).Address
	}
	if _, err := h.opt.Turns.Enter(r.Context(), who); err != nil {
		w.WriteHeader(statusLeft)
		return
	}
	defer h.opt.Turns.Leave(who)
	handOn(w, r, body, next)
}
