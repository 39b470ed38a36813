package legacy

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/mcpbridge/bridge/internal/logfield"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/legacy/web"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/observe"
	"github.com/mcpbridge/bridge/sessions"
)

// get opens the standalone stream, or resumes the stream that Last-Event-ID
// names (A-31, E-21).
func (h *HTTP) get(w http.ResponseWriter, r *http.Request) {
	s, ok := h.sessionFor(w, r, h.opt.NoGET, "POST, DELETE, OPTIONS")
	if !ok {
		return
	}
	if !web.AcceptOf(r.Header).Has(web.AcceptSSE) {
		web.WriteNotAcceptable(w, "text/event-stream")
		return
	}
	last := web.Header(r.Header, mcp.HeaderLastEventID)
	if h.gate.IsShut() && !ofCall(last) {
		web.WriteShuttingDown(w, "")
		return
	}
	if last != "" && !s.heardBefore(last) {
		h.resume(w, r, s, last)
		return
	}
	if s.refuse(w, web.Header(r.Header, "Authorization")) {
		return
	}
	st := s.standaloneStream()
	if st == nil {
		h.refuseUnknown(w, web.Header(r.Header, mcp.HeaderSessionID), "")
		return
	}
	h.attach(w, r, s, st, func(c *carrier) { s.listen(c, st, false, 0) })
}

// heardBefore reports whether an event id is one of the standalone stream of another
// process. What came there afterwards is made up for when the session is brought back.
func (s *session) heardBefore(last string) bool {
	stream, _, ok := parseEventID(last)
	return ok && isStandalone(stream) && stream < s.kept.first()
}

// resume continues exactly the stream of the event that the client saw last.
func (h *HTTP) resume(w http.ResponseWriter, r *http.Request, s *session, last string) {
	id, seq, ok := parseEventID(last)
	st := s.stream(id)
	if ok && st != nil && st.ID() != id {
		seq = s.translated(id, seq)
	}
	switch {
	case !ok || st == nil || !st.Holds(seq):
		h.resumed(observe.Unknown)
		web.WriteError(w, http.StatusBadRequest, "", jsonrpc.CodeInvalidRequest, "unknown or expired event id")
	case st.Exhausted(seq):
		h.resumed(observe.Replayed)
		// The client has everything. This status is what tells readers of
		// event streams to stop reconnecting.
		w.WriteHeader(http.StatusNoContent)
	case isStandalone(id):
		h.resumed(observe.Replayed)
		h.attach(w, r, s, st, func(c *carrier) {
			c.remind(seq)
			s.listen(c, st, true, seq)
		})
	default:
		h.attach(w, r, s, st, func(c *carrier) {
			c.remind(seq)
			missed := st.Attach(c, seq)
			if missed == 0 {
				h.resumed(observe.Replayed)
			} else {
				h.resumed(observe.Gap)
				h.opt.Logger.Warn().Str(logfield.SessionID, logfield.Short(s.rec.ID)).Uint64(logfield.StreamID, id).
					Uint64("missed", missed).Msg("resumed a stream whose log had overflowed")
			}
			st.Flush()
		})
	}
}

// attach serves a GET: the goroutine waits until the stream, the client or a
// newer GET ends it, or until it is no longer needed.
func (h *HTTP) attach(w http.ResponseWriter, r *http.Request, s *session, st *sessions.Stream, join func(*carrier)) {
	s.active.Add(1)
	c := h.newCarrier(w, st, s)
	defer c.leave()
	join(c) // before the head: a client that sees it is listening
	drain := h.gate.Shutting()
	if !isStandalone(st.ID()) { // a running call may finish
		drain = nil
	}
	if c.open() == nil && c.attend(r, drain, s) {
		return
	}
	s.active.Add(-1)
}

// ofCall reports whether an event id is one of a call's stream.
func ofCall(last string) bool {
	stream, _, ok := parseEventID(last)
	return ok && !isStandalone(stream)
}

// delete ends a session at its client's wish.
func (h *HTTP) delete(w http.ResponseWriter, r *http.Request) {
	s, ok := h.sessionFor(w, r, false, "")
	if !ok {
		return
	}
	h.table.Remove(s.rec.ID)
	w.WriteHeader(http.StatusNoContent)
}

// sessionFor finds the session of a GET or DELETE, or answers why there is none.
// Without a session there is nothing to listen to or to end: 405, the only
// refusal that clients take quietly.
func (h *HTTP) sessionFor(w http.ResponseWriter, r *http.Request, off bool, allow string) (*session, bool) {
	s, _, named := h.find(r)
	switch {
	case s == nil && h.relayed(w, r, nil, nil):
	case off:
		web.WriteNotAllowed(w, "", allow)
	case named == nameless:
		web.WriteNotAllowed(w, " without a session", "POST, OPTIONS")
	case named == unavailable:
		web.WriteUnavailable(w, "")
	case s == nil:
		h.refuseUnknown(w, web.Header(r.Header, mcp.HeaderSessionID), "")
	case !versionAllowed(s.rec.Version, mcp.Version(web.Header(r.Header, mcp.HeaderProtocolVersion))):
		web.WriteBadVersion(w, "")
	default:
		return s, true
	}
	return nil, false
}

// parseEventID reads `<stream>-<seq>`.
func parseEventID(s string) (stream, seq uint64, ok bool) {
	a, b, found := strings.Cut(s, "-")
	stream, err1 := strconv.ParseUint(a, 10, 64)
	seq, err2 := strconv.ParseUint(b, 10, 64)
	return stream, seq, found && err1 == nil && err2 == nil
}
