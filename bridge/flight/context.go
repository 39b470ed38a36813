package flight

import (
	"context"
	"sync"
	"time"
)

// Context is the context of one upstream request. It is nothing but a
// cancellation: no parent, no deadline, no values. It exists because every call
// needs one: context.WithCancel and context.AfterFunc together cost eight
// allocations where this costs one, and the upstream's connections register
// with it directly, by AfterFunc.
type Context struct {
	mu   sync.Mutex
	err  error
	done chan struct{} // made when somebody asks for it
	next int
	more map[int]func() // registered after the first

	hook  func() // the first registered function: in most rounds the only one
	taken bool   // it was stopped
}

// closed is what Done returns after the cancellation.
var closed = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// Deadline implements context.Context: the call's timer ends rounds.
func (*Context) Deadline() (time.Time, bool) { return time.Time{}, false }

// Value implements context.Context.
func (*Context) Value(any) any { return nil }

// Err implements context.Context.
func (c *Context) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Done implements context.Context.
func (c *Context) Done() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.done != nil:
	case c.err != nil:
		c.done = closed
	default:
		c.done = make(chan struct{})
	}
	return c.done
}

// AfterFunc runs f in its own goroutine once the context is cancelled, unless
// stop was called first, as context.AfterFunc does, which finds this method.
func (c *Context) AfterFunc(f func()) (stop func() bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		go f()
		return func() bool { return false }
	}
	if c.hook == nil {
		c.hook = f
		return c.unhook
	}
	if c.more == nil {
		c.more = make(map[int]func())
	}
	id := c.next
	c.next++
	c.more[id] = f
	return func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		_, registered := c.more[id]
		delete(c.more, id)
		return registered
	}
}

// unhook takes the first function back. The slot is not used again, so that a
// second call cannot take back somebody else's.
func (c *Context) unhook() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil || c.taken {
		return false
	}
	c.taken = true
	return true
}

// Cancel ends the round. It is idempotent.
func (c *Context) Cancel() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return
	}
	c.err = context.Canceled
	if c.done != nil {
		close(c.done)
		c.done = closed // whoever suspends the call need not keep another one
	}
	if c.hook != nil && !c.taken {
		go c.hook()
	}
	for _, f := range c.more {
		go f()
	}
	c.hook, c.more = nil, nil
}
