package stream

import (
	"net/http"
	"time"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/logfield"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/legacy/message"
	"github.com/mcpbridge/bridge/legacy/web"
	"github.com/mcpbridge/bridge/observe"
	"github.com/mcpbridge/bridge/sessions"
	"github.com/mcpbridge/bridge/sse"
)

// Listen serves a GET with the stream that belongs to no call, until its term is over. It
// reports false, and answers nothing, when the session has ended.
func (s *Set) Listen(w http.ResponseWriter, r *http.Request, term downstream.Term) bool {
	st := s.ensureStandalone()
	if st == nil {
		return false
	}
	s.attach(w, r, st, term, func(c *Response) { s.listen(c, st, false, 0) })
	return true
}

// Resume serves a GET with exactly the stream of the event that the client saw last
// (E-21), if it is the caller's: that of no call until its term is over. remind is told of questions after
// it that are not kept any more.
func (s *Set) Resume(w http.ResponseWriter, r *http.Request, caller *downstream.Caller, last EventID, term downstream.Term, remind func(questions []string)) {
	st, seq := s.FindFor(caller, last.Stream), last.Seq
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
		s.attach(w, r, st, term, func(c *Response) {
			c.remind(seq)
			s.listen(c, st, true, seq)
		})
	default:
		s.attach(w, r, st, downstream.Term{}, func(c *Response) { s.resume(c, st, seq, remind) })
	}
}

// resume attaches a GET to the stream of a call.
func (s *Set) resume(c *Response, st *sessions.Stream, seq uint64, remind func(questions []string)) {
	c.remind(seq)
	lost := st.Lost(seq)
	missed := st.Attach(c, seq)
	if missed == 0 {
		s.endpoint.resumed(observe.Replayed)
	} else {
		s.endpoint.resumed(observe.Gap)
		s.endpoint.gaps.Warn().Str(logfield.SessionID, logfield.Short(s.session.ID)).Uint64(logfield.StreamID, st.ID()).
			Uint64("missed", missed).Msg("resumed a stream whose log had overflowed")
	}
	st.Flush()
	if len(lost) > 0 {
		remind(lost)
	}
}

// RefuseEventID answers a GET whose Last-Event-ID names nothing.
func (s *Set) RefuseEventID(w http.ResponseWriter) {
	s.endpoint.resumed(observe.Unknown)
	web.WriteError(w, http.StatusBadRequest, "", jsonrpc.CodeInvalidRequest, "unknown or expired event id")
}

// attach serves a GET: the goroutine waits until the stream, the client or a
// newer GET ends it, or until it is no longer needed.
func (s *Set) attach(w http.ResponseWriter, r *http.Request, st *sessions.Stream, term downstream.Term, join func(*Response)) {
	s.attached.Add(1)
	c := s.endpoint.newResponse(w, st, s, term)
	c.request = r
	defer c.Leave()
	join(c) // before the head: a client that sees it is listening
	drain := s.endpoint.opt.Gate.Shutting()
	if !isStandalone(st.ID()) { // a running call may finish
		drain = nil
	}
	if c.Open() == nil && c.attend(r, drain, true) {
		return
	}
	s.detach()
}

// Polled reports whether responses to calls may end early: if that is wanted and
// the client knows how to come back (E-8). The goroutines of their handlers must
// then be free to return, so they don't carry the calls.
func (s *Set) Polled() bool { return s.endpoint.opt.Poll > 0 && message.Polls(s.session.Version) }

// Tell answers a GET for a call that waits in a store, with the events that its client has not
// had, and when to come again (E-8).
func (s *Set) Tell(w http.ResponseWriter, last EventID, events []sessions.Event) {
	var out message.Frames
	defer out.Release()
	for _, e := range events {
		if e.Seq > last.Seq {
			appendEvent(&out, true, EventID{last.Stream, e.Seq}, e.Data)
		}
	}
	if out.None() {
		appendEvent(&out, true, last, nil)
	}
	buf := out.Buffer()
	*buf = sse.AppendRetry(*buf, s.endpoint.opt.PollPause)
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(s.endpoint.opt.WriteTimeout))
	web.EndConnection(s.endpoint.opt.Gate, w)
	web.BeginStream(w)
	for _, piece := range out.Pieces(nil, 0) {
		if _, err := w.Write(piece); err != nil {
			return
		}
	}
	s.endpoint.resumed(observe.Replayed)
}

// until returns when a response that begins now is to end, though the stream of its
// call goes on; zero: never.
func (s *Set) until(st *sessions.Stream) time.Time {
	if s == nil || isStandalone(st.ID()) || !s.Polled() {
		return time.Time{}
	}
	return time.Now().Add(s.endpoint.opt.Poll)
}
