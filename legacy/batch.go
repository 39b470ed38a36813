package legacy

import (
	"context"
	"net/http"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/budget"
	"github.com/mcpbridge/bridge/legacy/exchange"
	"github.com/mcpbridge/bridge/legacy/message"
	"github.com/mcpbridge/bridge/legacy/session"
	"github.com/mcpbridge/bridge/legacy/web"
)

// postBatch takes an array, which only one version allows (E-1, E-2).
func (h poster) postBatch(w http.ResponseWriter, r *http.Request, accept web.Accept, body []byte, from *sender) {
	from.prove(r, h.sessions)
	s := from.session
	if s == nil && forwarder(h).relayed(w, r, body, nil, from) {
		return
	}
	conv, caller, ok := h.conversation(w, r, body, from, s, from.caller, "")
	if !ok {
		return
	}
	if !message.Batches(conv.Version()) {
		web.WriteParseError(w, "", message.NoBatches())
		return
	}
	b, err := message.ParseBatch(body, h.opt.MaxBatch)
	if err != nil {
		web.WriteParseError(w, "", err)
		return
	}
	requests := len(b.Requests) + len(b.Broken)
	if requests > 0 && (h.admission.tooBusy(w, r, from, requests, "") || h.admission.owes(w, r, from, "") || h.admission.tooFast(w, r, s, false, requests, "")) {
		return
	}
	if refused := h.deliver(r, b, s, conv, caller, &from.hold); refused != nil {
		refused.tell(w) // and no request of the array begins: its client may send it again, and what was heard is heard once
		return
	}
	if requests == 0 {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	ex := h.exchanges.BeginBatch(w, r, s, accept, &from.hold, &caller, requests)
	if ex == nil {
		h.refuseBegin(w, s, "")
		return
	}
	if s == nil {
		from.place = h.guests.host(conv, from.place)
	}
	from.hand(ex)
	defer detach(ex)
	h.serveBatch(context.WithoutCancel(r.Context()), conv, caller, b, ex)
	ex.Wait(r)
}

// deliver hands on what needs no response, until an answer cannot be taken now.
func (h poster) deliver(r *http.Request, b *message.Batch, s *session.Session, conv downstream.Conversation, caller downstream.Caller, hold *budget.Hold) (refused *unheard) {
	for i := range b.Notifications {
		h.replicas.notify(&unheard{}, r, s, conv, caller, &b.Notifications[i])
	}
	paid := hold.Move()
	defer func() { *hold = paid }()
	caller.Paid = &paid
	for i := range b.Responses {
		part := &unheard{}
		if h.replicas.answer(part, r, s, conv, caller, &b.Responses[i]); part.status >= http.StatusBadRequest {
			return part
		}
	}
	return nil
}

// serveBatch runs the requests side by side: each is a flow of its own (E-15).
func (h poster) serveBatch(ctx context.Context, conv downstream.Conversation, caller downstream.Caller, b *message.Batch, ex *exchange.Exchange) {
	for _, msg := range b.Broken {
		ex.Member().Finish(downstream.Message{Text: msg})
	}
	for _, msg := range b.Requests {
		go h.work(ctx, conv, caller, downstream.NewRequest(msg), ex.Member())
	}
}
