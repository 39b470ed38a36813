package legacy

import (
	"net/http"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/budget"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/legacy/session"
	"github.com/mcpbridge/bridge/legacy/stream"
	"github.com/mcpbridge/bridge/legacy/web"
	"github.com/mcpbridge/bridge/mcp"
)

// get opens the standalone stream, or resumes the stream that Last-Event-ID
// names (A-31, E-21).
func (h *HTTP) get(w http.ResponseWriter, r *http.Request) {
	s, caller, ok := h.sessionFor(w, r, h.opt.NoGET, "POST, DELETE, OPTIONS")
	if !ok {
		return
	}
	if !web.AcceptOf(r.Header).Has(web.AcceptSSE) {
		web.WriteNotAcceptable(w, "text/event-stream")
		return
	}
	if head := web.HeadCost(r.Header); head > 0 {
		hold := budget.On(caller.Account)
		defer hold.Release()
		if err := hold.Grow(head); err != nil {
			h.admission.writeShort(w, r, s, "", err)
			return
		}
	}
	last := web.Header(r.Header, mcp.HeaderLastEventID)
	id, ok := stream.ParseEventID(last)
	switch {
	case h.gate.IsShut() && !(ok && id.OfCall()):
		if !h.replicas.leaves(w, r, nil) {
			h.refusals.refuseStopping(w, "")
		}
	case last != "" && !ok:
		s.Streams().RefuseEventID(w)
	case last != "" && !s.Streams().HeardBefore(id):
		if !s.Enter() { // it has just left memory
			h.get(w, r)
			return
		}
		h.resume(w, r, s, caller, id)
	case h.refusals.challenged(w, r, s, web.Header(r.Header, "Authorization")):
	case !s.Streams().Listen(w, r, h.credentialsEnd(r)):
		h.refusals.refuseUnknown(w, s.ID(), "")
	}
}

// resume serves the way back to the stream of the event id, in a session that was entered. To whoever knows no more than
// the session's id there is nothing in it but their own calls.
func (h *HTTP) resume(w http.ResponseWriter, r *http.Request, s *session.Session, caller downstream.Caller, id stream.EventID) {
	switch {
	case !h.find(w, r, s, caller, id):
	case caller.Unproven && s.Streams().FindFor(&caller, id.Stream) == nil:
		h.refusals.refuseUnknown(w, s.ID(), "")
	default:
		s.Streams().Resume(w, r, &caller, id, h.credentialsEnd(r), s.Conversation().Remind)
	}
}

// find is findStream in a session that was entered, which is over then: what was found keeps the session in memory, and
// listening to nothing else does not keep one that ends.
func (h *HTTP) find(w http.ResponseWriter, r *http.Request, s *session.Session, caller downstream.Caller, id stream.EventID) bool {
	defer s.Exit()
	return h.replicas.findStream(w, r, s, caller, id)
}

// delete ends a session at its client's wish.
func (h *HTTP) delete(w http.ResponseWriter, r *http.Request) {
	s, _, ok := h.sessionFor(w, r, false, "")
	if !ok {
		return
	}
	if h.sessions.Remove(s.ID()) != nil {
		web.WriteUnavailable(w, "")
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// sessionFor finds the session of a GET or DELETE, or answers why there is none.
// Without a session there is nothing to listen to or to end: 405, the only
// refusal that clients take quietly.
func (h *HTTP) sessionFor(w http.ResponseWriter, r *http.Request, off bool, allow string) (*session.Session, downstream.Caller, bool) {
	var from sender
	from.session, from.caller, from.named, from.refusal = h.sessions.Find(r)
	if !off && !from.prove(r, h.sessions) && from.named == session.Unknown && isResumption(r) {
		if s, caller := h.sessions.Resuming(r); s != nil {
			from.session, from.caller, from.named = s, caller, session.Known
		}
	}
	s, caller, named := from.session, from.caller, from.named
	switch {
	case s == nil && (forwarder{h}).relayed(w, r, nil, nil, nil):
	case off:
		web.WriteNotAllowed(w, "", allow)
	case named == session.Nameless:
		web.WriteNotAllowed(w, " without a session", "POST, OPTIONS")
	case named == session.Unavailable:
		h.unavailable(w, r, nil, &from, "")
	case s == nil:
		h.refusals.refuseUnknown(w, web.Header(r.Header, mcp.HeaderSessionID), "")
	case !versionAllowed(s.Version(), mcp.Version(web.Header(r.Header, mcp.HeaderProtocolVersion))):
		web.WriteBadVersion(w, "")
	default:
		return s, caller, true
	}
	return nil, caller, false
}

// isResumption reports whether a request is the way back to the stream of a call.
func isResumption(r *http.Request) bool {
	id, ok := stream.ParseEventID(web.Header(r.Header, mcp.HeaderLastEventID))
	return ok && r.Method == http.MethodGet && id.OfCall()
}

// unavailable answers a request whose session is in the store, for all that is known. That the server
// refuses the credentials with which it would be brought back its client hears from it; otherwise it
// is not to give the session up.
func (h *HTTP) unavailable(w http.ResponseWriter, r *http.Request, body []byte, from *sender, id jsonrpc.ID) {
	switch {
	case from.refusal != nil:
		h.refusals.writeRefusal(w, r, from.refusal)
	case !h.replicas.leaves(w, r, body):
		web.WriteUnavailable(w, id)
	}
}
