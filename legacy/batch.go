package legacy

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
)

// batch is a parsed array of messages.
type batch struct {
	requests      []jsonrpc.Message
	notifications []jsonrpc.Message
	responses     []jsonrpc.Message
	broken        [][]byte // ready errors for members that are no messages but have an id
}

// parseBatch splits an array and applies the rules of E-14 and A-2.
func parseBatch(body []byte, limit int) (*batch, *jsonrpc.Error) {
	parts, err := jsonrpc.Split(body, limit)
	if err != nil {
		return nil, asError(err)
	}
	if len(parts) > limit {
		return nil, invalid(fmt.Sprintf("a batch of more than %d messages is too large (limits.batch)", limit))
	}
	b := new(batch)
	for _, part := range parts {
		if err := b.add(part); err != nil {
			return nil, err
		}
	}
	if len(b.responses) > 0 && len(b.requests)+len(b.broken) > 0 {
		return nil, invalid("a batch must not mix requests and responses")
	}
	return b, nil
}

func (b *batch) add(part []byte) *jsonrpc.Error {
	msg, err := jsonrpc.Parse(part)
	switch {
	case err != nil && isBrokenAnswer(&msg): // C.9
		b.responses = append(b.responses, msg)
	case err != nil && msg.ID == "":
		return asError(err)
	case err != nil:
		b.broken = append(b.broken, jsonrpc.AppendError(nil, msg.ID, asError(err)))
	case msg.Method == mcp.MethodInitialize:
		return invalid("initialize must not be part of a batch")
	case msg.Kind() == jsonrpc.Notification:
		b.notifications = append(b.notifications, msg)
	case msg.Kind() == jsonrpc.Response:
		b.responses = append(b.responses, msg)
	default:
		b.requests = append(b.requests, msg)
	}
	return nil
}

func invalid(message string) *jsonrpc.Error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: message}
}

// postBatch takes an array, which only one version allows (E-1, E-2).
func (h *HTTP) postBatch(w http.ResponseWriter, r *http.Request, accept accept, body []byte) {
	s, caller, named := h.find(r)
	if s == nil && h.relayed(w, r, body, nil) {
		return
	}
	conv, caller, ok := h.conversation(w, r, s, caller, named, "")
	if !ok {
		return
	}
	if !batches(conv.Version()) {
		writeError(w, http.StatusBadRequest, "", jsonrpc.CodeInvalidRequest, "batches are not part of this protocol version")
		return
	}
	b, err := parseBatch(body, h.opt.MaxBatch)
	if err != nil {
		writeParseError(w, "", err)
		return
	}
	requests := len(b.requests) + len(b.broken)
	if requests > 0 && h.tooBusy(w, r, s, requests, "") {
		return
	}
	b.deliver(conv, caller)
	if requests == 0 {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	ex := h.beginBatch(w, r, s, accept, requests, true)
	if ex == nil {
		writeShuttingDown(w, "")
		return
	}
	defer ex.leave()
	h.serveBatch(context.WithoutCancel(r.Context()), conv, caller, b, ex)
	ex.wait(r)
}

func (b *batch) deliver(conv downstream.Conversation, caller downstream.Caller) {
	for _, msg := range b.notifications {
		conv.Notify(caller, msg)
	}
	for _, msg := range b.responses {
		conv.Answer(caller, msg)
	}
}

// serveBatch runs the requests side by side: each is a flow of its own (E-15).
func (h *HTTP) serveBatch(ctx context.Context, conv downstream.Conversation, caller downstream.Caller, b *batch, ex *exchange) {
	for _, msg := range b.broken {
		ex.complete(&downstream.Message{Text: msg})
	}
	for _, msg := range b.requests {
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
