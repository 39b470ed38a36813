package legacy

import (
	"bytes"
	"io"
	"net/http"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/jsonrpc"
)

// Holds reports whether id names a live session of Streamable HTTP or HTTP+SSE
// here. It counts as a use of it.
func (h *HTTP) Holds(id string) bool {
	if id == "" {
		return false
	}
	return h.sessions.Holds(id) || h.channels.Get(id) != nil
}

// relayed hands a request without a session on, if the backend wants that.
func (h *HTTP) relayed(w http.ResponseWriter, r *http.Request, body []byte, msg *jsonrpc.Message) bool {
	if h.relayer == nil {
		return false
	}
	next := h.relayer.Relay(r, msg, func() downstream.Caller { return h.sessions.Caller(r) })
	if next == nil {
		return false
	}
	handOn(w, r, body, next)
	return true
}

// handOn lets next serve a request whose body was read.
func handOn(w http.ResponseWriter, r *http.Request, body []byte, next http.Handler) {
	if body != nil {
		r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
		r.Body, _ = r.GetBody()
		r.ContentLength = int64(len(body))
		r.TransferEncoding, r.Trailer = nil, nil
	}
	next.ServeHTTP(w, r)
}
