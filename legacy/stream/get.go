package stream

import (
	"net/http"

	"github.com/mcpbridge/bridge/internal/logfield"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/legacy/web"
	"github.com/mcpbridge/bridge/observe"
	"github.com/mcpbridge/bridge/sessions"
)

// Listen serves a GET with the stream that belongs to no call. It reports false,
// and answers nothing, when the session has ended.
func (s *Set) Listen(w http.ResponseWriter, r *http.Request) bool {
	st := s.ensureStandalone()
	if st == nil {
		return false
	}
	s.attach(w, r, st, func(c *Response) { s.listen(c, st, false, 0) })
	return true
}

// Resume serves a GET with exactly the stream of the event that the client saw last
// (E-21).
func (s *Set) Resume(w http.ResponseWriter, r *http.Request, last EventID) {
	st, seq := s.Find(last.Stream), last.Seq
	switch {
	case st == nil || !st.Holds(seq):
		s.RefuseEventID(w)
	case st.Exhausted(seq):
		s.endpoint.resumed(observe.Replayed)
		// The client has everything. This status is what tells readers of
		// event streams to stop reconnecting.
		w.WriteHeader(http.StatusNoContent)
	case isStandalone(last.Stream):
		s.endpoint.resumed(observe.Replayed)
		s.attach(w, r, st, func(c *Response) {
			c.remind(seq)
			s.listen(c, st, true, seq)
		})
	default:
		s.attach(w, r, st, func(c *Response) { s.resume(c, st, seq) })
	}
}

// resume attaches a GET to the stream of a call.
func (s *Set) resume(c *Response, st *sessions.Stream, seq uint64) {
	c.remind(seq)
	missed := st.Attach(c, seq)
	if missed == 0 {
		s.endpoint.resumed(observe.Replayed)
	} else {
		s.endpoint.resumed(observe.Gap)
		s.endpoint.gaps.Warn().Str(logfield.SessionID, logfield.Short(s.session.ID)).Uint64(logfield.StreamID, st.ID()).
			Uint64("missed", missed).Msg("resumed a stream whose log had overflowed")
	}
	st.Flush()
}

// RefuseEventID answers a GET whose Last-Event-ID names nothing.
func (s *Set) RefuseEventID(w http.ResponseWriter) {
	s.endpoint.resumed(observe.Unknown)
	web.WriteError(w, http.StatusBadRequest, "", jsonrpc.CodeInvalidRequest, "unknown or expired event id")
}

// attach serves a GET: the goroutine waits until the stream, the client or a
// newer GET ends it, or until it is no longer needed.
func (s *Set) attach(w http.ResponseWriter, r *http.Request, st *sessions.Stream, join func(*Response)) {
	s.attached.Add(1)
	c := s.endpoint.newResponse(w, st, s)
	defer c.Leave()
	join(c) // before the head: a client that sees it is listening
	drain := s.endpoint.opt.Gate.Shutting()
	if !isStandalone(st.ID()) { // a running call may finish
		drain = nil
	}
	if c.Open() == nil && c.attend(r, drain, true) {
		return
	}
	s.attached.Add(-1)
}
