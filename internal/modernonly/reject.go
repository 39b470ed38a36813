package modernonly

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
)

// Version is the version that a modern-only server speaks.
const Version = "2026-07-28"

// RejectLegacy refuses what a modern-only server refuses: every request without
// the modern protocol version in its _meta, initialize above all. The Go SDK
// alone would answer initialize with a legacy version.
func RejectLegacy(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(io.LimitReader(r.Body, 8<<20))
		if err != nil {
			http.Error(w, "unreadable body", http.StatusBadRequest)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		var msg struct {
			ID     json.RawMessage
			Method string
			Params struct {
				ProtocolVersion string
				Meta            map[string]json.RawMessage `json:"_meta"`
			}
		}
		_ = json.Unmarshal(body, &msg) // the SDK answers what is not JSON
		_, modern := msg.Params.Meta["io.modelcontextprotocol/protocolVersion"]
		if msg.Method == "" || msg.ID == nil || modern {
			next.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		_ = json.NewEncoder(w).Encode(map[string]any{"jsonrpc": "2.0", "id": msg.ID, "error": map[string]any{
			"code": -32022, "message": "this server speaks " + Version + " only",
			"data": map[string]any{"supported": []string{Version}, "requested": msg.Params.ProtocolVersion},
		}})
	})
}
