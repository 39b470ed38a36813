package legacy

import (
	"bytes"
	"context"
	"io"
	"net/http"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/agenda"
	"github.com/mcpbridge/bridge/internal/transport"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/legacy/web"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/observe"
)

// ServeHTTP serves the MCP endpoint.
func (h *HTTP) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !h.admit(w, r) || h.replicas.handOn(w, r) {
		return
	}
	switch r.Method {
	case http.MethodPost:
		poster{h}.post(w, r)
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
		connections{h}.webSocket(w, r)
	case h.opt.SSEMessages != "" && web.Header(r.Header, mcp.HeaderSessionID) == "" && web.Header(r.Header, mcp.HeaderLastEventID) == "":
		connections{h}.openSSE(w, r, h.opt.SSEMessages) // E-28
	default:
		h.get(w, r)
	}
}

// Holds reports whether id names a live session of Streamable HTTP or HTTP+SSE
// here. It counts as a use of it.
func (h *HTTP) Holds(id string) bool {
	if id == "" {
		return false
	}
	return h.sessions.Holds(id) || h.channels.Get(id) != nil
}

// Owns reports whether id names a session of this endpoint, live or ended: no server is to see it.
func (h *HTTP) Owns(id string) bool {
	if id == "" {
		return false
	}
	return h.sessions.Owns(id) || h.channels.Get(id) != nil
}

// Recall is Holds for sessions that are in the store alone, too: the request brings them back.
func (h *HTTP) Recall(r *http.Request, id string) bool { return h.sessions.Recall(r, id) }

// Keeps reports whether sessions may be in the store that are live nowhere in this process.
func (h *HTTP) Keeps() bool { return h.sessions.Keeps() }

// Astray says that calls were left to the store which nobody comes for by the clock: sessions under older settings have
// ended in this process.
func (h *HTTP) Astray() { h.sessions.Astray() }

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

// handOnStream hands on what never ends by itself, and takes nothing up but a place.
func (h *HTTP) handOnStream(w http.ResponseWriter, r *http.Request, body []byte, next http.Handler, id jsonrpc.ID) {
	leave, refused := h.admission.tooManyStreams(w, r, id)
	if refused {
		return
	}
	defer leave()
	if h.opt.Admit != nil {
		ctx, end := context.WithCancelCause(r.Context())
		defer end(nil)
		l := &hearsUntil{ctx: ctx, end: end, term: h.credentialsEnd(r)}
		l.beat.Item = l
		h.pings.Add(&l.beat)
		defer l.beat.Remove()
		r = r.WithContext(ctx)
	}
	h.handOnCharged(w, r, body, next, id)
}

// credentialsEnd returns when what only listens is to end, since the credentials of its request do and nobody else
// looks at them; the zero Term: never. Its client comes back with newer ones.
func (h *HTTP) credentialsEnd(r *http.Request) (term downstream.Term) {
	if h.opt.Admit == nil {
		return term
	}
	return h.opt.term(web.Header(r.Header, "Authorization"))
}

// hearsUntil is what was handed on and never ends by itself, on the agenda of the janitor.
type hearsUntil struct {
	beat agenda.Entry
	ctx  context.Context
	end  context.CancelCauseFunc
	term downstream.Term
}

// Due implements agenda.Item.
func (l *hearsUntil) Due() (again bool) {
	if l.ctx.Err() == nil && l.term.Over() {
		l.end(downstream.ErrLapsed)
	}
	return l.ctx.Err() == nil
}

// handOnCharged hands on what is charged for as long as that takes.
func (h *HTTP) handOnCharged(w http.ResponseWriter, r *http.Request, body []byte, next http.Handler, id jsonrpc.ID) {
	hold, refused := h.admission.handsOn(w, r, id, false)
	if refused {
		return
	}
	defer hold.Release()
	handOn(w, r, body, next)
}

// Look tells what there is to see of every session at this moment.
func (h *HTTP) Look() []observe.Sight { return append(h.sessions.Look(), h.channels.Look()...) }

// EndSession ends the session with this shortened id, and reports whether there was one.
func (h *HTTP) EndSession(short string) bool {
	return h.sessions.End(short) || h.channels.End(short, downstream.ErrOperator)
}

// EndCall ends a call that Look tells of, of the session with this shortened id, and reports whether there was one.
func (h *HTTP) EndCall(short, id string) bool {
	return h.sessions.EndCall(short, id) || h.channels.EndCall(short, id)
}

// EndStored ends the session that has this name in the store, and reports whether it was here.
func (h *HTTP) EndStored(name string) bool { return h.sessions.EndStored(name) }

// SSE returns the handler of the GET endpoint of HTTP+SSE, the transport of
// 2024-11-05 (E-25). Clients are told to POST to the path messages, where the
// handler of Messages must be; it is resolved against the GET's URL and thus
// stays on its origin.
func (h *HTTP) SSE(messages string) http.Handler {
	return h.only(http.MethodGet, func(w http.ResponseWriter, r *http.Request) { connections{h}.openSSE(w, r, messages) })
}

// Messages returns the handler of the POST endpoint of HTTP+SSE. Everything
// that is well formed is answered 202; the answers go over the stream (E-26).
func (h *HTTP) Messages() http.Handler { return h.only(http.MethodPost, connections{h}.postSSE) }

// only returns the handler of an endpoint that has one method, and what web pages ask before.
func (h *HTTP) only(method string, serve http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case !h.admit(w, r):
		case r.Method == http.MethodOptions:
			web.Preflight(w, r)
		case r.Method != method:
			web.WriteNotAllowed(w, "", method+", OPTIONS")
		default:
			serve(w, r)
		}
	})
}
