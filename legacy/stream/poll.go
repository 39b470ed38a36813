package stream

import (
	"net/http"
	"time"

	"github.com/mcpbridge/bridge/legacy/message"
	"github.com/mcpbridge/bridge/legacy/web"
	"github.com/mcpbridge/bridge/observe"
	"github.com/mcpbridge/bridge/sessions"
	"github.com/mcpbridge/bridge/sse"
)

// Polled reports whether responses to calls may end early: if that is wanted and
// the client knows how to come back (E-8). The goroutines of their handlers must
// then be free to return, so they don't carry the calls.
func (s *Set) Polled() bool { return s.endpoint.opt.Poll > 0 && message.Polls(s.session.Version) }

// Tell answers a GET for a call that waits in a store, with the events that its client has not
// had, and when to come again (E-8).
func (s *Set) Tell(w http.ResponseWriter, last EventID, events []sessions.Event) {
	buf := message.Buffer()
	defer message.Release(&buf)
	for _, e := range events {
		if e.Seq > last.Seq {
			appendEvent(buf, true, EventID{last.Stream, e.Seq}, e.Data)
		}
	}
	if len(*buf) == 0 {
		appendEvent(buf, true, last, nil)
	}
	*buf = sse.AppendRetry(*buf, s.endpoint.opt.PollPause)
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(s.endpoint.opt.WriteTimeout))
	web.EndConnection(s.endpoint.opt.Gate, w)
	web.BeginStream(w)
	_, _ = w.Write(*buf)
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

// spent reports whether the client is to come again.
func (c *Response) spent() bool { return !c.until.IsZero() && !time.Now().Before(c.until) }

// adjourn ends a response whose time has come, unless an event is on its way just
// now, and tells the client when to fetch the rest. What follows is kept for it by
// the stream. It runs on the handler's goroutine, which must return then.
func (c *Response) adjourn() bool {
	if !c.spent() {
		return false
	}
	c.stream.Flush() // what is queued has the id to come back to
	if !c.stream.Hold(c) {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.beginLocked()
	c.extendLocked(c.endpoint.opt.WriteTimeout)
	_, _ = c.w.Write(sse.AppendRetry(nil, c.endpoint.opt.PollPause)) // net/http sends it with the end
	return true
}
