package legacy

import (
	"context"
	"net/http"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/budget"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/legacy/exchange"
	"github.com/mcpbridge/bridge/legacy/message"
	"github.com/mcpbridge/bridge/legacy/session"
	"github.com/mcpbridge/bridge/legacy/web"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/negotiate"
	"github.com/mcpbridge/bridge/observe"
)

// poster takes what comes by POST: messages, arrays of them, and what opens a session. It
// has no state of its own.
type poster struct{ *HTTP }

// post takes a message from a client.
func (h poster) post(w http.ResponseWriter, r *http.Request) {
	accept := h.acceptOf(r)
	if accept == 0 {
		h.guard.Refused(observe.BadAccept)
		web.WriteNotAcceptable(w, "application/json or text/event-stream")
		return
	}
	if !web.IsJSON(r.Header) {
		h.guard.Refused(observe.BadContentType)
		web.WriteNotJSON(w)
		return
	}
	var from sender
	from.session, from.caller, from.named, from.refusal = h.sessions.Find(r)
	from.hold = budget.On(h.admission.accountOf(from.session, r))
	defer from.release()
	body, ok := h.admission.body(w, r, &from)
	if !ok {
		return
	}
	if !from.enter() { // it left memory while the body came
		from.find(r, h.sessions)
	}
	if jsonrpc.IsBatch(body) {
		h.postBatch(w, r, accept, body, &from)
		return
	}
	msg, err := jsonrpc.Parse(body)
	if err != nil {
		if s := from.session; s != nil && message.IsBrokenAnswer(&msg) {
			_ = s.Conversation().Answer(from.caller, msg) // C.9: no better answer will come
		}
		web.WriteParseError(w, message.ErrorID(&msg), err)
		return
	}
	h.postMessage(w, r, accept, body, &msg, &from)
}

// acceptOf returns what a client takes of what it may be given.
func (h poster) acceptOf(r *http.Request) web.Accept {
	a := web.AcceptOf(r.Header)
	if h.opt.AlwaysStream && a.Has(web.AcceptSSE) {
		return web.AcceptSSE
	}
	return a
}

func (h poster) postMessage(w http.ResponseWriter, r *http.Request, accept web.Accept, body []byte, msg *jsonrpc.Message, from *sender) {
	s, caller := from.session, from.caller
	if s == nil && from.named == session.Unknown {
		s, caller = from.visit(r, h.sessions, msg)
	}
	if msg.Kind() == jsonrpc.Request && h.admission.tooFast(w, r, s, from.visits != nil, 1, msg.ID) {
		return
	}
	if (session.IsOwners(msg) || from.repeats(r, msg)) && from.prove(r, h.sessions) {
		s, caller = from.session, from.caller
	}
	switch {
	case msg.Method == mcp.MethodInitialize && msg.Kind() == jsonrpc.Request:
		if hasEnded(s) {
			s = nil // it goes on without this client
		}
		if !h.admission.tooBusy(w, r, from, 1, msg.ID) && (s != nil || !forwarder(h).relayed(w, r, body, msg, from)) {
			h.initialize(w, r, accept, s, *msg)
		}
		return
	case s == nil && negotiate.Classify(msg.Method, msg.Params, r.Header) == negotiate.Modern:
		h.modern(w, r, body, msg, from)
		return
	case s == nil && forwarder(h).relayed(w, r, body, msg, from):
		return
	}
	conv, caller, ok := h.conversation(w, r, body, from, s, caller, message.ErrorID(msg))
	if !ok {
		return
	}
	switch msg.Kind() {
	case jsonrpc.Notification:
		h.replicas.notify(w, r, s, conv, caller, msg)
	case jsonrpc.Response:
		paid := from.hold.Move()
		defer paid.Release()
		caller.Paid = &paid
		h.replicas.answer(w, r, s, conv, caller, msg)
	default:
		if s == nil || !h.refusals.challenged(w, r, s, caller.Authorization) && !h.replicas.elsewhere(w, r, body, s, msg) {
			h.serve(w, r, accept, s, conv, caller, *msg, from)
		}
	}
}

// conversation finds who answers a request: its session's conversation, or one
// without a session. It answers the request itself when there is none.
func (h poster) conversation(w http.ResponseWriter, r *http.Request, body []byte, from *sender, s *session.Session, caller downstream.Caller, id jsonrpc.ID) (downstream.Conversation, downstream.Caller, bool) {
	asked := mcp.Version(web.Header(r.Header, mcp.HeaderProtocolVersion))
	switch {
	case s != nil:
		if !versionAllowed(s.Version(), asked) {
			web.WriteBadVersion(w, id)
			return nil, caller, false
		}
		return s.Conversation(), caller, true
	case from.named == session.Unavailable:
		h.unavailable(w, r, body, from, id)
		return nil, caller, false
	case from.named == session.Unknown:
		h.refusals.refuseUnknown(w, web.Header(r.Header, mcp.HeaderSessionID), id)
		return nil, caller, false
	case h.opt.RequireSession:
		h.guard.Refused(observe.NoSession)
		web.WriteError(w, http.StatusBadRequest, id, jsonrpc.CodeInvalidRequest, mcp.HeaderSessionID+" header is missing; initialize first")
		return nil, caller, false
	}
	if asked == "" {
		asked = mcp.V20250326 // what a missing header stands for
	}
	if !asked.IsLegacy() {
		web.WriteBadVersion(w, id)
		return nil, caller, false
	}
	caller = h.sessions.Caller(r)
	caller.Account = h.opt.Memory.Guest(caller.Tenant)
	return h.backend.Stateless(caller, asked), caller, true
}

// versionAllowed judges the MCP-Protocol-Version header of a session.
// Another supported version than the session's is let pass, since clients do
// send them, and changes nothing.
func versionAllowed(session, asked mcp.Version) bool {
	return asked == "" || asked == session || asked.IsLegacy() || !message.VersionHeader(session)
}

// serve runs one request as an exchange.
func (h poster) serve(w http.ResponseWriter, r *http.Request, accept web.Accept, s *session.Session, conv downstream.Conversation, caller downstream.Caller, msg jsonrpc.Message, from *sender) {
	about := s != nil && downstream.AboutTasks(msg.Method) // takes no place besides that of the task
	if !about && h.admission.tooBusy(w, r, from, 1, msg.ID) || h.admission.owes(w, r, from, msg.ID) {
		return
	}
	ex := h.exchanges.Begin(w, r, s, accept, &from.hold, &caller, about)
	if ex == nil {
		if hasEnded(s) || !h.replicas.leaves(w, r, msg.AppendTo(nil)) {
			h.refuseBegin(w, s, msg.ID)
		}
		return
	}
	if s == nil {
		from.place = h.guests.host(conv, from.place)
	}
	from.hand(ex)
	defer detach(ex)
	ctx := context.WithoutCancel(r.Context())
	req := downstream.NewRequest(msg)
	if s != nil && s.Streams().Polled() {
		go h.work(ctx, conv, caller, req, ex)
	} else {
		h.work(ctx, conv, caller, req, ex)
	}
	ex.Wait(r)
}

// detach takes the response away from an exchange. A client that was taken for gone before it got anything gets no
// response: it may have closed only its sending half, and would take an empty one for its answer.
func detach(ex *exchange.Exchange) {
	if !ex.Detach() {
		panic(http.ErrAbortHandler)
	}
}

// refuseBegin answers what cannot begin: its session has ended, or the bridge stops.
func (h poster) refuseBegin(w http.ResponseWriter, s *session.Session, id jsonrpc.ID) {
	if hasEnded(s) {
		h.refusals.refuseUnknown(w, s.ID(), id)
		return
	}
	h.refusals.refuseStopping(w, id)
}

func hasEnded(s *session.Session) bool { return s != nil && s.Ended() }

func (h poster) work(ctx context.Context, conv downstream.Conversation, caller downstream.Caller, req downstream.Request, out downstream.Reply) {
	defer message.Recover(h.opt.Logger, req.Method, req.ID, out)
	conv.Serve(ctx, caller, req, out)
}
