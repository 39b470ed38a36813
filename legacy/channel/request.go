package channel

import (
	"context"
	"time"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/budget"
	"github.com/mcpbridge/bridge/internal/fault"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/legacy/message"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/negotiate"
)

// request is handle for requests: it admits one and starts it, or answers why not.
func (c *Channel) request(msg *jsonrpc.Message, held int, own bool, at stage, answer func([]byte)) (room <-chan struct{}) {
	var start func()
	var err *jsonrpc.Error
	if at == fresh { // whatever it waits for, it has come once
		err = c.pace()
	}
	if err == nil {
		start, room, err = c.admit(msg, held, own, at, answer)
	}
	switch {
	case err != nil:
		answer(jsonrpc.AppendError(nil, msg.ID, err))
	case start != nil:
		start()
	}
	return room
}

// pace refuses a request that comes too fast.
func (c *Channel) pace() *jsonrpc.Error {
	if c.opt.Pace == nil {
		return nil
	}
	return c.opt.Pace()
}

// admit decides on a request with the inbound lock held. It returns what to run,
// which does not wait for answers, or nothing when the request waits behind
// initialize, or is to be tried again when there is room.
func (c *Channel) admit(msg *jsonrpc.Message, held int, own bool, at stage, answer func([]byte)) (start func(), room <-chan struct{}, err *jsonrpc.Error) {
	c.in.Lock()
	defer c.in.Unlock()
	if err := (lapsing{c}).mayBeginLocked(msg, own); err != nil {
		return nil, nil, err
	}
	switch {
	case c.closed:
		return nil, nil, fault.Internal("the session is closed")
	case msg.Method == mcp.MethodPing && c.conv == nil:
		// At once. Whoever reads no answers is read no further messages from.
		return func() { answer(jsonrpc.AppendResult(nil, msg.ID, []byte(`{}`))) }, nil, nil
	case c.waitsLocked(at):
		if room = c.roomLocked(at); room != nil {
			return nil, room, nil
		}
		if len(c.backlog) >= c.opt.MaxPending {
			return nil, nil, fault.Request("too many messages before initialize was answered")
		}
		hold, err := c.hold(msg, held)
		if err == nil {
			c.backlog = append(c.backlog, queued{*msg, held, own, answer, hold})
		}
		return nil, nil, err
	case msg.Method == mcp.MethodInitialize:
		start, err = opening{c}.admitInitializeLocked(msg, answer)
		return start, nil, err
	}
	conv, err := c.addresseeLocked(msg)
	if err != nil {
		return nil, nil, err
	}
	if c.ended && conv == c.conv {
		return nil, nil, fault.Internal("the session has ended: begin anew")
	}
	start, err = c.beginLocked(conv, msg, held, answer)
	return start, nil, err
}

// addresseeLocked returns who serves a request. Eras are told apart message by message: a
// modern request belongs to no session, whether there is one or not.
func (c *Channel) addresseeLocked(msg *jsonrpc.Message) (downstream.Conversation, *jsonrpc.Error) {
	era := negotiate.Classify(msg.Method, msg.Params, nil)
	if c.conv != nil {
		era = negotiate.InSession(msg.Method, msg.Params)
	}
	if era == negotiate.Modern && c.modern == nil {
		c.modern = c.backend.Connected()
	}
	switch {
	case era == negotiate.Modern && c.modern != nil:
		return c.modern, nil
	case c.conv != nil:
		return c.conv, nil
	case era == negotiate.Modern:
		// At once, and no error of the modern era, so that a dual-era client falls back
		// to initialize.
		return nil, fault.Method("method not found: initialize first")
	}
	return nil, fault.Request("initialize first")
}

// beginLocked takes a place and the id for a request, and returns what serves it.
func (c *Channel) beginLocked(conv downstream.Conversation, msg *jsonrpc.Message, held int, answer func([]byte)) (start func(), err *jsonrpc.Error) {
	if _, used := c.inFlight[msg.ID]; used {
		return nil, fault.Request("a request with this id is already under way") // B-1
	}
	about := conv == c.conv && downstream.AboutTasks(msg.Method)
	if c.running >= c.opt.MaxInFlight() && !about {
		return nil, fault.Internal("too many requests are under way on this connection")
	}
	hold, err := c.hold(msg, held)
	if err != nil {
		return nil, err
	}
	leave, err := c.place(msg, about)
	if err != nil {
		hold.Release()
		return nil, err
	}
	listens := msg.Method == mcp.MethodListen // which never ends by itself
	gated := c.opt.Gate != nil && !listens
	if gated && !c.opt.Gate.Admit(about) {
		hold.Release()
		leave()
		return nil, fault.Internal(c.opt.Late())
	}
	out := &reply{c: c, conv: conv, id: msg.ID, answer: answer, hold: hold, gated: gated, listens: listens, leave: leave}
	c.inFlight[msg.ID] = out
	c.running++
	c.work.Add(2) // serve, and the reply that may outlive it
	req, ctx := *msg, c.ctx
	if conv == c.modern {
		ctx, out.cancel = context.WithCancelCause(ctx)
	}
	if conv.Orderly() { // its notifications and answers are in the same order, and wait for no link
		return func() { c.serve(ctx, req, out) }, nil
	}
	if msg.Method != mcp.MethodPing { // that at once, whatever holds up others
		c.begin.Add(&out.link)
	}
	return func() { out.link.When(func() { go c.serve(ctx, req, out) }) }, nil
}

// place counts a request in. One about tasks takes no place besides theirs.
func (c *Channel) place(msg *jsonrpc.Message, about bool) (leave func(), err *jsonrpc.Error) {
	take := c.opt.Places
	if msg.Method == mcp.MethodListen {
		take = c.opt.Streams
	}
	if take == nil || about {
		return func() {}, nil
	}
	return take()
}

// hold charges a message for as long as it is held, or says why it is not taken. Ids are in
// memory besides the text, and in the response again.
func (c *Channel) hold(msg *jsonrpc.Message, held int) (budget.Hold, *jsonrpc.Error) {
	hold := budget.On(c.opt.Account)
	size := messageCost + held + 2*len(msg.ID) + len(msg.Method)
	if msg.Method == mcp.MethodListen {
		size += listenCost
	}
	if err := hold.Grow(size); err != nil {
		return hold, fault.Internal(err.Error())
	}
	return hold, nil
}

func (c *Channel) serve(ctx context.Context, req jsonrpc.Message, out *reply) {
	defer c.work.Done()
	defer out.link.End()
	if out.cancel != nil {
		defer out.cancel(nil)
	}
	if !out.fate.CompareAndSwap(waiting, started) {
		out.Abandon()
		return
	}
	defer message.Recover(c.log, req.Method, req.ID, out)
	served := downstream.NewRequest(req)
	served.Link = &out.link
	out.conv.Serve(ctx, c.from(), served, out)
}

// from returns who a message of the connection acts for.
func (c *Channel) from() downstream.Caller {
	caller := c.caller
	if c.opt.Tenant != nil {
		caller.Tenant = c.opt.Tenant()
	}
	return caller
}

// settle frees the id of a request that is over, and its place, too, unless something outlasts it:
// then it reports false. With the last one a session ends that lasted for it: its answer still goes out.
func (c *Channel) settle(out *reply) (left bool) {
	c.in.Lock()
	defer c.in.Unlock()
	if left = out.lasting.Add(-1) < 0; left {
		c.running--
		delete(c.lasting, out)
	} else {
		c.lasting[out] = struct{}{}
	}
	if c.inFlight[out.id] == out {
		delete(c.inFlight, out.id)
	}
	c.restLocked()
	return left
}

// restLocked lets go of a connection whose session has ended, when nothing of that is left.
func (c *Channel) restLocked() {
	if c.ended && !c.busyLocked() {
		c.HangUp(c.why)
	}
}

// busyLocked reports whether something of the session is under way.
func (c *Channel) busyLocked() bool {
	for _, out := range c.inFlight {
		if out.conv == c.conv {
			return true
		}
	}
	return c.lastsLocked()
}

// lastsLocked reports whether something of the session goes on that was answered: a task.
func (c *Channel) lastsLocked() bool {
	for out := range c.lasting {
		if out.conv == c.conv {
			return true
		}
	}
	return false
}

// awaited reports whether something is under way that a shutdown waits for: not what never ends by itself.
func (c *Channel) awaited() bool {
	c.in.Lock()
	defer c.in.Unlock()
	left := c.running // also those whose id a cancellation freed
	for _, out := range c.inFlight {
		if !out.gated {
			left--
		}
	}
	return left > 0 || c.opening || c.catching
}

// pause waits, unless the connection is of no more use.
func (c *Channel) pause(d time.Duration) {
	if d <= 0 {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-c.gone:
	}
}
