package channel

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/budget"
	"github.com/mcpbridge/bridge/internal/fault"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/legacy/message"
)

// ErrAgain is the cause of a conversation's end when its client began anew.
var ErrAgain = errors.New("session was initialized again")

// opening is the part of a connection that opens its session. It has no state of its own.
type opening struct{ *Channel }

// admitInitializeLocked opens the session, or begins anew: gateways hand one
// connection to one client after the other, each of which initializes it.
func (c opening) admitInitializeLocked(msg *jsonrpc.Message, answer func([]byte)) (start func(), err *jsonrpc.Error) {
	leave, err := c.place(msg, false)
	if err != nil {
		return nil, err
	}
	old, req := c.conv, *msg
	c.conv, c.opening, c.ended = nil, true, false
	if c.pusher != nil {
		c.pusher.over.Store(true)
	}
	c.pusher = &pusher{Channel: c.Channel}
	push := c.pusher
	c.work.Add(1)
	return func() {
		go func() {
			defer c.work.Done()
			if old != nil {
				c.abandonAll(old) // first: some conversations answer what is left when they end
				old.Close(ErrAgain)
			}
			c.open(req, push, answer, leave)
		}()
	}, nil
}

// abandonAll gives up the requests that are left of a conversation that ends. Their
// ids may be used again from now on, and an answer that comes late must not be taken for
// one to the next client's request.
func (c opening) abandonAll(of downstream.Conversation) {
	c.in.Lock()
	left := make([]*reply, 0, len(c.inFlight))
	for _, out := range c.inFlight {
		if out.conv == of {
			left = append(left, out)
			out.fate.CompareAndSwap(waiting, withdrawn) // of all before any is given up: its end is the time of the next
		}
	}
	c.in.Unlock()
	for _, out := range left {
		out.Abandon()
	}
}

// open opens the session, and then takes what came meanwhile. The place of initialize is free
// again once it is answered.
func (c opening) open(req jsonrpc.Message, push downstream.Pusher, answer func([]byte), leave func()) {
	var conv downstream.Conversation
	var result []byte
	err := c.declared.Set(len(req.Params))
	if err == nil {
		conv, result, err = c.backend.Open(c.ctx, c.caller, req, push)
	}
	leave()
	c.in.Lock()
	c.answering = true
	c.in.Unlock()
	if err != nil {
		answer(jsonrpc.AppendError(nil, req.ID, c.openError(err)))
	} else {
		c.in.Lock()
		c.version = conv.Version()
		c.in.Unlock()
		answer(jsonrpc.AppendResult(nil, req.ID, result))
	}
	c.in.Lock()
	c.opening, c.answering = false, false
	closed, cause := c.closed, c.cause
	if err == nil && !closed {
		c.conv = conv
	}
	q := c.nextLocked(false) // at once: what comes now is to come behind it
	c.in.Unlock()
	if err == nil && closed {
		conv.Close(cause)
	}
	for ; q != nil; q = c.next() {
		q.hold.Release() // it is charged again as what it becomes
		c.handle(&q.msg, q.held, q.own, taken, q.answer)
	}
}

// next is nextLocked for who is at it.
func (c opening) next() *queued {
	c.in.Lock()
	defer c.in.Unlock()
	return c.nextLocked(true)
}

// nextLocked returns what is to be taken next of the backlog. What comes meanwhile waits at its end. It is nil where there is no more,
// where that waits for another initialize, which came behind this one, or where somebody else is at it; at says that the caller is.
func (c opening) nextLocked(at bool) *queued {
	if c.catching && !at {
		return nil
	}
	if c.room != nil {
		close(c.room)
		c.room = nil
	}
	c.catching = !c.opening && len(c.backlog) > 0
	if !c.catching {
		return nil
	}
	q := c.backlog[0]
	c.backlog[0] = queued{}
	if c.backlog = c.backlog[1:]; len(c.backlog) == 0 {
		c.backlog = nil
	}
	return &q
}

// openError is what a client without HTTP statuses learns of a failed
// initialize.
func (c opening) openError(err error) *jsonrpc.Error {
	if c.ctx.Err() != nil { // who closes only the input still reads
		return fault.Internal("the connection ended before the server had answered")
	}
	var refusal *downstream.Refusal
	if errors.As(err, &refusal) {
		const unknown = "the upstream server wants other credentials (HTTP %d): start the bridge with --auth.mode agent, or give it a token in BRIDGE_HEADERS"
		return fault.Internal(cmp.Or(refusal.Why, fmt.Sprintf(unknown, refusal.Status)))
	}
	if budget.Short(err) {
		return fault.Internal(err.Error())
	}
	return message.AsError(err)
}
