package legacy

import (
	"net/http"
	"sync"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/turns"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/legacy/message"
	"github.com/mcpbridge/bridge/legacy/web"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/rawjson"
)

// forwarder hands requests on to a server of their own era.
type forwarder struct{ *HTTP }

// relayed hands a request without a session here on, if the backend wants that. from is
// nil for what takes nothing up.
func (h forwarder) relayed(w http.ResponseWriter, r *http.Request, body []byte, msg *jsonrpc.Message, from *sender) bool {
	if h.relayer == nil {
		return false
	}
	next := h.relayer.Relay(r, msg, func() downstream.Caller { return h.sessions.Caller(r) })
	switch {
	case next == nil:
		return false
	case r.Method == http.MethodGet:
		h.handOnStream(w, r, body, next, "")
	case from == nil || !takesUp(msg):
		h.lendOn(w, r, body, next, idOf(msg))
	case !h.crowds(w, r, body, msg, from):
		h.inTurn(w, r, idOf(msg), func(w http.ResponseWriter) { h.handOnCharged(w, r, body, next, idOf(msg)) })
	}
	return true
}

// crowds refuses what is more than may be under way, and of arrays, whose members nobody has
// counted yet, what comes too fast, or is so long that nobody else of its address could come for hours.
func (h forwarder) crowds(w http.ResponseWriter, r *http.Request, body []byte, msg *jsonrpc.Message, from *sender) bool {
	if msg != nil {
		return h.admission.tooBusy(w, r, from, 1, msg.ID)
	}
	requests, all := countRequests(body, h.opt.MaxBatch)
	if all > h.opt.MaxBatch {
		web.WriteParseError(w, "", message.TooLong(h.opt.MaxBatch))
		return true
	}
	return h.admission.tooBusy(w, r, from, requests, "") || h.admission.tooFast(w, r, nil, false, requests, "")
}

// countRequests returns how many members an array has, and how many of them its receiver may take for
// requests: all that are not notifications or responses beyond doubt. What has no end is one. Beyond most
// nothing is counted.
func countRequests(array []byte, most int) (requests, all int) {
	if rawjson.Balanced(array) != nil {
		return 1, 1
	}
	for member := range rawjson.Elements(array) {
		if all++; all > most {
			break
		}
		if msg, err := jsonrpc.Parse(member); err != nil || msg.Kind() == jsonrpc.Request {
			requests++
		}
	}
	return requests, all
}

// lendOn hands on what may end something that its client holds. It waits for no turn, and is
// bounded as what has none.
func (h forwarder) lendOn(w http.ResponseWriter, r *http.Request, body []byte, next http.Handler, id jsonrpc.ID) {
	free, refused := h.admission.tooManyAnswers(w, r, id)
	if refused {
		return
	}
	defer free()
	hold, refused := h.admission.handsOn(w, r, id, true)
	if refused {
		return
	}
	defer hold.Release()
	handOn(w, r, body, next)
}

// takesUp reports whether a message has the server work: a request, or, when msg is nil,
// an array. What opens a session may come back to be served here, where what it asks the server
// has a turn of its own.
func takesUp(msg *jsonrpc.Message) bool {
	return msg == nil || msg.Kind() == jsonrpc.Request && msg.Method != mcp.MethodInitialize
}

func idOf(msg *jsonrpc.Message) jsonrpc.ID {
	if msg == nil {
		return ""
	}
	return msg.ID
}

// tenant is whose turn a request takes that is handed on.
func (h forwarder) tenant(r *http.Request) turns.Who {
	return turns.Who{Principal: h.sessions.Tenant(r), Session: web.Header(r.Header, mcp.HeaderSessionID)}
}

// inTurn hands a request on when it is its turn. The turn is over when the server has
// begun to answer: it may ask the client something then, and a person takes time. What is at
// the server without a turn is bounded all the same.
func (h forwarder) inTurn(w http.ResponseWriter, r *http.Request, id jsonrpc.ID, serve func(http.ResponseWriter)) {
	who := h.tenant(r)
	if _, err := h.opt.Turns.Enter(r.Context(), who); err != nil {
		panic(http.ErrAbortHandler) // its client left
	}
	t := &turn{ResponseWriter: w, leave: sync.OnceFunc(func() { h.opt.Turns.Leave(who) })}
	defer t.leave()
	free, refused := h.admission.tooManyAnswers(w, r, id)
	if refused {
		return
	}
	defer free()
	serve(t)
}

// turn is a response that ends a turn when it begins.
type turn struct {
	http.ResponseWriter
	leave func()
}

// Unwrap is for http.ResponseController.
func (t *turn) Unwrap() http.ResponseWriter { return t.ResponseWriter }

// WriteHeader implements http.ResponseWriter.
func (t *turn) WriteHeader(status int) {
	if status >= http.StatusOK {
		t.leave()
	}
	t.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (t *turn) Write(b []byte) (int, error) {
	t.leave()
	return t.ResponseWriter.Write(b)
}
