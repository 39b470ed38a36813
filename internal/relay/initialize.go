package relay

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/mcpbridge/bridge/downstream"
)

// initialize hands the request that opens the session over when it is its turn, and waits for
// its result.
func (c *conversation) initialize(ctx context.Context, caller downstream.Caller, req *downstream.Request) ([]byte, error) {
	waiting, cancel := context.WithTimeout(ctx, c.relay.opt.Start)
	defer cancel()
	who := c.who(caller)
	if _, err := c.relay.opt.Opening.Enter(waiting, who); err != nil {
		return nil, failed("too many sessions are being opened at the server (limits.concurrency): it was not this one's turn in time")
	}
	defer c.relay.opt.Opening.Leave(who)
	out := &outcome{done: make(chan struct{})}
	if _, err := c.begin(&caller, req, out); err != nil {
		return nil, err
	}
	if err := c.send(caller, &req.Message); err != nil {
		c.Fail(req.ID, err)
	}
	late := time.NewTimer(c.relay.opt.Start)
	defer late.Stop()
	select {
	case <-out.done:
	case <-late.C:
		c.Fail(req.ID, errors.New("the server did not answer initialize in time"))
	case <-ctx.Done():
		c.Fail(req.ID, context.Cause(ctx))
	}
	<-out.done
	return out.result, out.err
}

// outcome is the Reply of initialize.
type outcome struct {
	once   sync.Once
	done   chan struct{}
	result []byte
	err    error
}

func (o *outcome) end(result []byte, err error) {
	o.once.Do(func() {
		o.result, o.err = result, err
		close(o.done)
	})
}

// Interactive implements downstream.Reply: nothing may come before the answer.
func (o *outcome) Interactive() bool { return false }

// Send implements downstream.Reply.
func (o *outcome) Send(downstream.Message) {}

// Queue implements downstream.Reply.
func (o *outcome) Queue(downstream.Message) {}

// Flush implements downstream.Reply.
func (o *outcome) Flush() {}

// Finish implements downstream.Reply.
func (o *outcome) Finish(msg downstream.Message) {
	if msg.Error != nil {
		o.end(nil, msg.Error)
		return
	}
	o.end(bytes.Clone(msg.Result), nil)
}

// Refuse implements downstream.Reply.
func (o *outcome) Refuse(r *downstream.Refusal) bool {
	o.end(nil, r)
	return true
}

// Abandon implements downstream.Reply.
func (o *outcome) Abandon() { o.end(nil, errOver) }

// Checkpointer implements downstream.Reply: nothing is kept.
func (*outcome) Checkpointer() downstream.Checkpointer { return nil }

// Address implements downstream.Reply.
func (o *outcome) Address() downstream.Address { return downstream.Address{} }

// Reachable implements downstream.Reply.
func (o *outcome) Reachable() bool { return true }

// Attached implements downstream.Reply.
func (o *outcome) Attached() bool { return true }

// Delivered implements downstream.Reply.
func (o *outcome) Delivered() bool { return true }

// Continue implements downstream.Reply.
func (o *outcome) Continue(work func()) { go work() }

// Outlast implements downstream.Reply: nothing does.
func (*outcome) Outlast() (over func()) { return func() {} }
