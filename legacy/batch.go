package legacy

import (
	"context"
	"net/http"
	"sync/atomic"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/legacy/message"
	"github.com/mcpbridge/bridge/legacy/web"
)

// postBatch takes an array, which only one version allows (E-1, E-2).
func (h *HTTP) postBatch(w http.ResponseWriter, r *http.Request, accept web.Accept, body []byte, from *sender) {
	s := from.session
	if s == nil && h.relayed(w, r, body, nil) {
		return
	}
	conv, caller, ok := h.conversation(w, r, s, from.caller, from.named, "")
	if !ok {
		return
	}
	if !message.Batches(conv.Version()) {
		web.WriteError(w, http.StatusBadRequest, "", jsonrpc.CodeInvalidRequest, "batches are not part of this protocol version")
		return
	}
	b, err := message.ParseBatch(body, h.opt.MaxBatch)
	if err != nil {
		web.WriteParseError(w, "", err)
		return
	}
	requests := len(b.Requests) + len(b.Broken)
	if requests > 0 && (h.tooBusy(w, r, s, requests, "") || h.owes(w, r, from, "") || h.tooFast(w, r, s, requests, "")) {
		return
	}
	h.deliver(r, b, s, conv, caller)
	if requests == 0 {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	ex := h.beginBatch(w, r, s, accept, requests, true)
	if ex == nil {
		web.WriteShuttingDown(w, "")
		return
	}
	ex.hold = from.hold.Move()
	defer ex.leave()
	h.serveBatch(context.WithoutCancel(r.Context()), conv, caller, b, ex)
	ex.wait(r)
}

func (h *HTTP) deliver(r *http.Request, b *message.Batch, s *session, conv downstream.Conversation, caller downstream.Caller) {
	for i := range b.Notifications {
		h.notify(&unheard{}, r, s, conv, caller, &b.Notifications[i])
	}
	for i := range b.Responses {
		h.answer(&unheard{}, r, s, conv, caller, &b.Responses[i])
	}
}

// serveBatch runs the requests side by side: each is a flow of its own (E-15).
func (h *HTTP) serveBatch(ctx context.Context, conv downstream.Conversation, caller downstream.Caller, b *message.Batch, ex *exchange) {
	for _, msg := range b.Broken {
		ex.complete(&downstream.Message{Text: msg})
	}
	for _, msg := range b.Requests {
		go h.work(ctx, conv, caller, downstream.NewRequest(msg), &member{exchange: ex})
	}
}

// member is the Reply of one request in a batch. Its exchange counts responses,
// so each member must give exactly one.
type member struct {
	*exchange
	over atomic.Bool
}

// Send implements Reply.
func (m *member) Send(msg downstream.Message) {
	if !m.over.Load() {
		m.exchange.Send(msg)
	}
}

// Finish implements Reply.
func (m *member) Finish(msg downstream.Message) {
	if !m.over.Swap(true) {
		m.complete(&msg)
	}
}

// Abandon implements Reply.
func (m *member) Abandon() {
	if !m.over.Swap(true) {
		m.complete(nil)
	}
}
