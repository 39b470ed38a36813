package legacy

import (
	"bytes"
	"io"
	"net/http"

	"github.com/mcpbridge/bridge/jsonrpc"
)

// Relayer is a Backend that knows a server of the clients' own era, to which
// whole HTTP exchanges can be handed.
type Relayer interface {
	Backend
	// Relay returns who serves a request that belongs to no session here, or nil
	// when it is to be served as if there were no such server. msg is the message
	// of a POST, nil when there is none or several. caller tells who the request
	// acts for; it may be called once.
	Relay(r *http.Request, msg *jsonrpc.Message, caller func() Caller) http.Handler
}

// Holds reports whether id names a live session of Streamable HTTP or HTTP+SSE
// here. It counts as a use of it.
func (h *HTTP) Holds(id string) bool {
	if id == "" {
		return false
	}
	_, live := h.table.Get(id)
	return live || h.channels.get(id) != nil
}

// relayed hands a request without a session on, if the backend wants that.
func (h *HTTP) relayed(w http.ResponseWriter, r *http.Request, body []byte, msg *jsonrpc.Message) bool {
	if h.relayer == nil {
		return false
	}
	next := h.relayer.Relay(r, msg, func() Caller { return h.caller(r) })
	if next == nil {
		return false
	}
	handOn(w, r, body, next)
	return true
}

// handOn lets next serve a request whose body was read.
func handOn(w http.ResponseWriter, r *http.Request, body []byte, next http.Handler) {
	if body != nil {
		r.Body = io.NopCloser(bytes.NewReader(body))
		r.ContentLength = int64(len(body))
	}
	next.ServeHTTP(w, r)
}

// Orderly is a Conversation whose Serve only hands requests on. On a connection
// it is called in the order in which they came.
type Orderly interface {
	Conversation
	Orderly()
}

// Ender is a Pusher whose session can be ended from this side.
type Ender interface {
	Pusher
	// End closes the connection that is the session after what was sent, or makes
	// the client's next request find no session. The error is for the log.
	End(why error)
}

var (
	_ Ender = (*channel)(nil)
	_ Ender = (*session)(nil)
)

// End implements Ender.
func (c *channel) End(why error) { c.hangUp(why) }
