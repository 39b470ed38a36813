package legacy

import (
	"net/http"

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
	var from sender
	defer from.release()
	if !h.sessionFor(w, r, &from, h.opt.NoGET, "POST, DELETE, OPTIONS") {
		return
	}
	s := from.session
	if !web.AcceptOf(r.Header).Has(web.AcceptSSE) {
		web.WriteNotAcceptable(w, "text/event-stream")
		return
	}
	if head := web.HeadCost(r.Header); head > 0 {
		from.hold = budget.On(from.caller.Account)
		if err := from.hold.Grow(head); err != nil {
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
		h.resume(w, r, &from, id)
	case h.refusals.challenged(w, r, s, web.Header(r.Header, "Authorization")):
	default:
		from.listens()
		if !s.Streams().Listen(w, r, h.credentialsEnd(r)) {
			h.refusals.refuseUnknown(w, s.ID(), "")
		}
	}
}

// resume serves the way back to the stream of the event id. To whoever knows no more than
// the session's id there is nothing in it but their own calls.
func (h *HTTP) resume(w http.ResponseWriter, r *http.Request, from *sender, id stream.EventID) {
	s, caller := from.session, from.caller
	if !h.replicas.findStream(w, r, s, caller, id) {
		return
	}
	from.listens()
	switch {
	case caller.Unproven && s.Streams().FindFor(&caller, id.Stream) == nil:
		h.refusals.refuseUnknown(w, s.ID(), "")
	default:
		s.Streams().Resume(w, r, &caller, id, h.credentialsEnd(r), s.Conversation().Remind)
	}
}

// delete ends a session at its client's wish.
func (h *HTTP) delete(w http.ResponseWriter, r *http.Request) {
	var from sender
	defer from.release()
	if !h.sessionFor(w, r, &from, false, "") {
		return
	}
	if h.sessions.Remove(from.session.ID()) != nil {
		web.WriteUnavailable(w, "")
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// sessionFor finds the session of a GET or DELETE, which stays in memory until from is released, or answers why there is none.
// Without a session there is nothing to listen to or to end: 405, the only
// refusal that clients take quietly.
func (h *HTTP) sessionFor(w http.ResponseWriter, r *http.Request, from *sender, off bool, allow string) bool {
	from.find(r, h.sessions)
	if !off && !from.prove(r, h.sessions) && from.named == session.Unknown && isResumption(r) {
		if s, caller := h.sessions.Resuming(r); s != nil {
			from.session, from.caller, from.named = s, caller, session.Known
			from.stays(s)
		}
	}
	s, named := from.session, from.named
	switch {
	case s == nil && (forwarder{h}).relayed(w, r, nil, nil, nil):
	case off:
		web.WriteNotAllowed(w, "", allow)
	case named == session.Nameless && web.IsPerson(r):
		web.WriteForPeople(w)
	case named == session.Nameless:
		web.WriteNotAllowed(w, " without a session", "POST, OPTIONS")
	case named == session.Unavailable:
		h.unavailable(w, r, nil, from, "")
	case s == nil:
		h.refusals.refuseUnknown(w, web.Header(r.Header, mcp.HeaderSessionID), "")
	case !versionAllowed(s.Version(), mcp.Version(web.Header(r.Header, mcp.HeaderProtocolVersion))):
		web.WriteBadVersion(w, "")
	default:
		return true
	}
	return false
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
