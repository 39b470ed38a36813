package relay

import (
	"errors"
	"sync"

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
	queue []*queued
	clerk sync.WaitGroup
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
	who := c.who(caller)
	c.mu.Lock()
	switch {
	case c.closed || c.calls[msg.ID] != k: // over already
		c.mu.Unlock()
		return
	case len(c.wait.queue) == 0 && c.relay.opt.Turns.TryEnter(who):
		c.enterLocked(k, who)
		c.mu.Unlock()
		c.transmit(caller, msg)
		return
	}
	defer c.mu.Unlock()
	k.queued = true
	c.wait.queue = append(c.wait.queue, &queued{caller, *msg, k})
	if len(c.wait.queue) == 1 {
		c.wait.clerk.Go(c.attend)
	}
}

// who is whose turn a request takes.
func (c *conversation) who(caller downstream.Caller) turns.Who {
	return turns.Who{Principal: caller.Tenant, Session: c}
}

// enterLocked notes that a call has a place.
func (c *conversation) enterLocked(k *pendingCall, who turns.Who) {
	k.leave = sync.OnceFunc(func() { c.relay.opt.Turns.Leave(who) })
}

// transmit sends a request, or fails it.
func (c *conversation) transmit(caller downstream.Caller, msg *jsonrpc.Message) {
	if err := c.send(caller, msg); err != nil {
		c.Fail(msg.ID, err)
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
			c.Fail(next.msg.ID, errLeft)
		default:
			c.transmit(next.caller, &next.msg)
			if c.sent(next.call) {
				c.cancelled(next.msg.ID, "withdrawn")
			}
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

// withdraw has a request not sent that is yet to be, and reports whether there is one.
func (c *conversation) withdraw(id jsonrpc.ID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	k := c.calls[id]
	if k == nil || !k.queued {
		return false
	}
	k.withdrawn = true
	return true
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
