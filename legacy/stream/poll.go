package stream

import (
	"time"

	"github.com/mcpbridge/bridge/legacy/message"
	"github.com/mcpbridge/bridge/sessions"
	"github.com/mcpbridge/bridge/sse"
)

// pollAgain is how long a client is to stay away when the stream of a call was
// ended before the response.
const pollAgain = 500 * time.Millisecond

// Polled reports whether responses to calls may end early: if that is wanted and
// the client knows how to come back (E-8). The goroutines of their handlers must
// then be free to return, so they don't carry the calls.
func (s *Set) Polled() bool { return s.endpoint.opt.Poll > 0 && message.Polls(s.session.Version) }

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
	if !c.spent() || !c.stream.Hold(c) {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.beginLocked()
	c.extendLocked(c.endpoint.opt.WriteTimeout)
	_, _ = c.w.Write(sse.AppendRetry(nil, pollAgain)) // net/http sends it with the end
	return true
}
