package h1

import (
	"context"
	"sync/atomic"
	"time"
)

// reqContext is a request's context. What tells of its end is made when somebody
// asks: most handlers answer at once, and never do.
type reqContext struct {
	cn    *conn
	inner atomic.Pointer[cancellation]
	over  bool // the handler has returned; guarded by cn.in.mu
}

// cancellation is a context that can be cancelled. Contexts that descend from
// ours find it, and need no goroutine to follow it.
type cancellation struct {
	context.Context
	cancel context.CancelFunc
}

// Deadline implements context.Context.
func (c *reqContext) Deadline() (time.Time, bool) { return time.Time{}, false }

// Done implements context.Context.
func (c *reqContext) Done() <-chan struct{} { return c.ask().Done() }

// Err implements context.Context.
func (c *reqContext) Err() error { return c.ask().Err() }

// Value implements context.Context.
func (c *reqContext) Value(key any) any {
	if inner := c.inner.Load(); inner != nil {
		return inner.Value(key)
	}
	return c.cn.values.Value(key)
}

// ask makes the cancellation, and has the connection watched.
func (c *reqContext) ask() *cancellation {
	if inner := c.inner.Load(); inner != nil {
		return inner
	}
	in := &c.cn.in
	in.mu.Lock()
	inner := c.inner.Load()
	over := c.over
	if inner == nil {
		ctx, cancel := context.WithCancel(c.cn.values)
		inner = &cancellation{ctx, cancel}
		c.inner.Store(inner)
		if !over {
			over = in.askLocked(c)
		}
	}
	in.mu.Unlock()
	if over {
		inner.cancel()
	}
	return inner
}

// clientLeft ends the context before the handler does. No lock may be held.
func (c *reqContext) clientLeft() {
	if inner := c.inner.Load(); inner != nil {
		inner.cancel()
	}
}

// end ends the context when the handler has returned.
func (c *reqContext) end() {
	in := &c.cn.in
	in.mu.Lock()
	c.over = true
	in.asker, in.custom = nil, time.Time{}
	inner := c.inner.Load()
	in.mu.Unlock()
	if inner != nil {
		inner.cancel()
	}
}
