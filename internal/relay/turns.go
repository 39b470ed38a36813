package relay

import (
	"errors"
	"sync"
	"time"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/budget"
	"github.com/mcpbridge/bridge/internal/fault"
	"github.com/mcpbridge/bridge/internal/logfield"
	"github.com/mcpbridge/bridge/internal/turns"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
)

// line of requests that wait for their turn, in the order in which they came. One
// goroutine sends them while there are any; what comes meanwhile waits behind them.
// Notifications and answers wait for nobody: a call with a place may need them.
type waiting struct {
	queue []*queued // the first one may be on its way
	work  sync.WaitGroup
}

// queued is a request that the server has not got yet.
type queued struct {
	caller downstream.Caller
	msg    jsonrpc.Message
	call   *pendingCall
}

// errLeft ends a call of a client that cannot hear of it any more.
var errLeft = errors.New("its client left while the call waited for its turn")

// handOver sends a request when it is its turn. It does not wait for that.
func (c *conversation) handOver(caller downstream.Caller, msg *jsonrpc.Message, k *pendingCall) {
	next := &queued{caller, *msg, k}
	if !c.queue(next) {
		return
	}
	defer c.goOn()
	c.pass(next)
}

// goOn has what came meanwhile sent.
func (c *conversation) goOn() {
	last := c.settled()
	c.mu.Lock()
	defer c.mu.Unlock()
	if !last && !c.closed {
		c.wait.work.Go(c.attend)
	}
}

// queue has a request wait, and reports whether it is its turn at once.
func (c *conversation) queue(next *queued) (atOnce bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || c.calls[next.msg.ID] != next.call { // over already
		return false
	}
	next.call.queued = true
	if c.wait.queue = append(c.wait.queue, next); len(c.wait.queue) > 1 {
		return false
	}
	who := c.who(next.caller)
	if c.relay.opt.Turns.TryEnter(who) {
		c.enterLocked(next.call, who)
		return true
	}
	c.wait.work.Go(c.attend)
	return false
}

// who is whose turn a request takes.
func (c *conversation) who(caller downstream.Caller) turns.Who {
	return turns.Who{Principal: caller.Tenant, Session: c}
}

// enterLocked notes that a call has a place.
func (c *conversation) enterLocked(k *pendingCall, who turns.Who) {
	k.leave = sync.OnceFunc(func() { c.relay.opt.Turns.Leave(who) })
}

// pass sends a request, and behind it the cancellation if it was withdrawn meanwhile.
func (c *conversation) pass(q *queued) {
	err := c.send(q.caller, &q.msg)
	withdrawn := c.sent(q.call)
	switch {
	case err != nil && c.takeOut(q.msg.ID, q.call):
		c.over(q.msg.ID, q.call, err)
	case err == nil && withdrawn:
		c.cancelled(q.msg.ID, "withdrawn")
	}
}

// send sends a message. The error, for the client, says why not.
func (c *conversation) send(caller downstream.Caller, msg *jsonrpc.Message) error {
	err := c.line.Send(caller, msg, msg.AppendTo(nil))
	switch {
	case err == nil:
		return nil
	case !budget.Short(err):
		return errEnded
	case msg.Kind() != jsonrpc.Request: // whose failure has a line of its own
		c.relay.failed.Warn().Err(err).Str(logfield.Method, fault.Clip(msg.Method)).Msg("a message of a client was not handed on")
	}
	return notHandedOn(err)
}

// attend sends what waits, until nothing does or the conversation is closed.
func (c *conversation) attend() {
	for {
		c.mu.Lock()
		next := c.wait.queue[0]
		c.mu.Unlock()
		who := c.who(next.caller)
		if _, err := c.relay.opt.Turns.Enter(c.ctx, who); err != nil {
			return // whoever closes it ends the calls
		}
		c.mu.Lock()
		present := c.calls[next.msg.ID] == next.call
		if present {
			c.enterLocked(next.call, who)
		}
		c.mu.Unlock()
		switch {
		case !present:
			c.relay.opt.Turns.Leave(who)
		case !next.call.out.Reachable(): // nothing is executed for nobody
			if c.takeOut(next.msg.ID, next.call) {
				c.over(next.msg.ID, next.call, errLeft)
			}
		default:
			c.pass(next)
		}
		if c.settled() {
			return
		}
	}
}

// sent notes that the server has a request, and reports whether it was withdrawn meanwhile.
func (c *conversation) sent(k *pendingCall) (withdrawn bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	k.queued = false
	return k.withdrawn
}

// withdraw finds a call, and has it not sent if it is yet to be: then it is queued. The server is told behind it where
// it is on its way.
func (c *conversation) withdraw(id jsonrpc.ID) (k *pendingCall, queued bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if k = c.calls[id]; k == nil || !k.queued {
		return k, false
	}
	k.withdrawn = true
	return k, true
}

// lastWord is for how long a client does not hear of the end of its call while the server takes no cancellation.
const lastWord = time.Second

// dismissLocked takes a call that ends for a reason of the bridge's own. What it returns tells the client why. The server hears of it before:
// a client may use the id again once it knows, and the cancellation would be that other call's. So nobody gets the id while it is on its way.
func (c *conversation) dismissLocked(id jsonrpc.ID, k *pendingCall, reason string) (end func(why error)) {
	leave, told := c.takeLocked(id, k), make(chan struct{})
	switch {
	case k.queued:
		k.withdrawn = true
		close(told)
	case c.closed:
		close(told)
	default:
		c.parted[id] = struct{}{}
		c.wait.work.Go(func() { // a server that reads nothing takes it when the line is closed
			defer close(told)
			c.cancelled(id, reason)
			c.mu.Lock()
			defer c.mu.Unlock()
			delete(c.parted, id)
		})
	}
	return func(why error) {
		leave()
		limit := time.NewTimer(lastWord)
		defer limit.Stop()
		select {
		case <-told:
		case <-limit.C:
		case <-c.ctx.Done():
		}
		c.over(id, k, why)
	}
}

// cancelled tells the server in the bridge's own words that nobody wants an answer.
func (c *conversation) cancelled(id jsonrpc.ID, reason string) {
	params := []byte(`{"requestId":` + string(id) + `,"reason":"` + reason + `"}`)
	msg := jsonrpc.Message{Method: mcp.NotificationCancelled, Params: params}
	_ = c.send(downstream.Caller{Principal: c.principal}, &msg)
}

// settled takes the first of those that wait out, and reports whether it was the last.
func (c *conversation) settled() (last bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wait.queue = c.wait.queue[1:]
	return len(c.wait.queue) == 0
}

// begun gives back the places of calls that the server has begun to answer: it may ask the
// client something now, and a person takes time. A question does not say which call it is for.
func (c *conversation) begun(msg *jsonrpc.Message, out downstream.Reply) {
	c.mu.Lock()
	var places []func()
	for _, k := range c.calls {
		if k.leave != nil && (msg.Kind() == jsonrpc.Request || k.out == out) {
			places = append(places, k.leave)
		}
	}
	c.mu.Unlock()
	for _, leave := range places {
		leave()
	}
}
