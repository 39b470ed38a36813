package legacy

import (
	"bytes"
	"io"
	"net/http"

	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/rawjson"
)

// isModern judges a request that belongs to no live session. The body
// decides, because legacy clients are seen with modern headers on initialize;
// the version header alone only names a version that legacy clients never speak.
func isModern(h http.Header, msg *jsonrpc.Message) bool {
	return msg.Method == mcp.MethodDiscover ||
		rawjson.Has(rawjson.Get(msg.Params, "_meta"), mcp.MetaProtocolVersion) ||
		header(h, mcp.HeaderProtocolVersion) == string(mcp.V20260728)
}

// modern hands a request of the modern era on unchanged, or refuses it as a
// legacy server would. The error must not be one of the modern era, or a
// dual-era client would not fall back to initialize.
func (h *HTTP) modern(w http.ResponseWriter, r *http.Request, body []byte, id jsonrpc.ID) {
	next := h.backend.Modern()
	if next == nil {
		writeError(w, http.StatusBadRequest, id, jsonrpc.CodeInvalidRequest, "no session: initialize first")
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	r.ContentLength = int64(len(body))
	next.ServeHTTP(w, r)
}
