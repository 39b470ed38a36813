package stream

import (
	"time"

	"github.com/mcpbridge/bridge/sse"
)

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
