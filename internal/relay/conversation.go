package relay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/fault"
	"github.com/mcpbridge/bridge/internal/logfield"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/observe"
	"github.com/mcpbridge/bridge/rawjson"
)

// conversation is one client's session with a server of its own era.
type conversation struct {
	relay     *Relay
	principal string
	version   mcp.Version
	push      downstream.Pusher // nil: only its own requests reach the client
	ctx       context.Context   // ends with Close
	cancel    context.CancelFunc
	deaf      atomic.Bool // the client is told of nothing but its calls
	whose     whose       // the session is

	mu     sync.Mutex
	wait   waiting
	line   Line                        // set once, before the client can say anything
	calls  map[jsonrpc.ID]*pendingCall // under way
	parted map[jsonrpc.ID]struct{}     // calls that are over, and whose cancellation is on its way to the server
	last   uint64                      // number of the newest call, or message pushed
	proven bool                        // the client has answered a question
	ended  error                       // of the line, nil while it stands
	opened bool                        // the client has it
	closed bool
}

var _ Inbox = (*conversation)(nil)

// pendingCall is a request of the client that the server has yet to answer.
type pendingCall struct {
	out    downstream.Reply
	token  []byte // raw progress token, nil for none
	number uint64
	limit  *time.Timer

	began           time.Time
	session, method string
	name            []byte // raw, of a tool or prompt

	questions []jsonrpc.ID // that came on its stream, as far as they are remembered
	open      []question   // those that have no answer yet
	sign      time.Time    // when the server last gave one

	queued    bool   // the server has not got it yet
	withdrawn bool   // while it was queued
	leave     func() // gives its place back; nil: it has none, and nothing of it was sent
}

// whose is what a client said of itself, for who looks: short, since it is kept for as long as the session lasts.
type whose struct{ info, declared []byte }

// question is one that came on the stream of a call and has no answer yet.
type question struct {
	id   jsonrpc.ID
	kind observe.Kind
	at   time.Time
}

// Orderly implements downstream.Conversation.
func (c *conversation) Orderly() bool { return true }

// Version implements downstream.Conversation.
func (c *conversation) Version() mcp.Version { return c.version }

// Serve implements downstream.Conversation. It returns before the answer.
func (c *conversation) Serve(_ context.Context, caller downstream.Caller, req downstream.Request, out downstream.Reply) {
	if c.strange(caller) || c.gone() {
		gone := downstream.Failure(req.ID, failed("this session is over: initialize a new one"))
		if !out.Refuse(&downstream.Refusal{Status: http.StatusNotFound, Body: gone.AppendTo(nil)}) { // the status that makes clients begin anew
			out.Finish(gone)
		}
		return
	}
	k, err := c.begin(&caller, &req, out)
	if err != nil {
		out.Finish(downstream.Failure(req.ID, err))
		return
	}
	c.handOver(caller, &req.Message, k)
}

// strange reports somebody else than who opened the session. Nobody on the other
// side would look at the credentials.
func (c *conversation) strange(caller downstream.Caller) bool { return caller.Principal != c.principal }

func (c *conversation) gone() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ended != nil
}

// begin admits a call.
func (c *conversation) begin(caller *downstream.Caller, req *downstream.Request, out downstream.Reply) (*pendingCall, *jsonrpc.Error) {
	if err := fault.Token(req.ProgressToken); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.closed:
		return nil, failed(errOver.Error())
	case c.usedLocked(req.ID): // B-1: the server could not tell them apart either
		return nil, fault.Request("a request with this id is already under way")
	case len(c.calls)+len(c.parted) >= c.relay.opt.Calls:
		return nil, failed("too many requests are under way in this session")
	}
	c.last++
	now := time.Now()
	k := &pendingCall{out: out, number: c.last, token: req.ProgressToken, began: now, sign: now, session: caller.Session, method: req.Method, name: req.Name}
	id := req.ID
	k.limit = time.AfterFunc(c.relay.opt.Call, func() { c.expire(id, k) })
	c.calls[id] = k
	return k, nil
}

// usedLocked reports whether the server may take an id for that of another call.
func (c *conversation) usedLocked(id jsonrpc.ID) bool {
	_, parted := c.parted[id]
	return parted || c.calls[id] != nil
}

// expire ends a call that took too long.
func (c *conversation) expire(id jsonrpc.ID, k *pendingCall) {
	c.mu.Lock()
	if c.calls[id] != k {
		c.mu.Unlock()
		return
	}
	end := c.dismissLocked(id, k, "timed out")
	c.mu.Unlock()
	end(errors.New("the server did not answer in time (timeouts.flow)"))
}

// take ends a call: whoever gets it says its last word.
func (c *conversation) take(id jsonrpc.ID) *pendingCall {
	c.mu.Lock()
	k := c.calls[id]
	c.mu.Unlock()
	if k == nil || !c.takeOut(id, k) {
		return nil
	}
	return k
}

// takeOut is take for one that is known, and reports whether it was there: its id may be another one's by now.
func (c *conversation) takeOut(id jsonrpc.ID, k *pendingCall) bool {
	c.mu.Lock()
	if c.calls[id] != k {
		c.mu.Unlock()
		return false
	}
	leave := c.takeLocked(id, k)
	c.mu.Unlock()
	leave()
	return true
}

// takeLocked takes a call out of those under way. What it returns gives its place back.
func (c *conversation) takeLocked(id jsonrpc.ID, k *pendingCall) (leave func()) {
	delete(c.calls, id)
	k.limit.Stop()
	if k.leave == nil {
		return func() {}
	}
	return k.leave
}

// Notify implements downstream.Conversation.
func (c *conversation) Notify(caller downstream.Caller, msg jsonrpc.Message) {
	if c.strange(caller) {
		return
	}
	if msg.Method != mcp.NotificationCancelled {
		_ = c.send(caller, &msg)
		return
	}
	id := jsonrpc.ID(rawjson.Get(msg.Params, "requestId"))
	k, queued := c.withdraw(id)
	if !queued { // else the server knows nothing of it, or is told behind it
		_ = c.send(caller, &msg)
	}
	if k != nil && c.takeOut(id, k) { // no answer will come
		k.out.Abandon()
	}
}

// Answer implements downstream.Conversation. Where there is no memory for an answer, the server is
// told that: it would wait for ever.
func (c *conversation) Answer(caller downstream.Caller, msg jsonrpc.Message) error {
	if c.strange(caller) {
		return downstream.ErrNotHere
	}
	c.answered(msg.ID)
	if why := (*jsonrpc.Error)(nil); errors.As(c.send(caller, &msg), &why) {
		_ = c.send(caller, &jsonrpc.Message{ID: msg.ID, Error: why})
	}
	return nil
}

// answered notes that the client has answered a question.
func (c *conversation) answered(id jsonrpc.ID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, k := range c.calls {
		if k.closeLocked(id) {
			c.proven, k.sign = true, time.Now()
		}
	}
}

// closeLocked takes a question out of those that are open, and reports whether it was one of them.
func (k *pendingCall) closeLocked(id jsonrpc.ID) bool {
	n := len(k.open)
	k.open = slices.DeleteFunc(k.open, func(q question) bool { return q.id == id })
	return len(k.open) < n
}

// Knows implements downstream.Conversation: the session is in no other process.
func (c *conversation) Knows(caller downstream.Caller, _ jsonrpc.ID) bool { return !c.strange(caller) }

// Owns implements downstream.Conversation: no call is kept.
func (c *conversation) Owns(downstream.Caller, []byte) bool { return false }

// Record implements downstream.Conversation: the session is the server's.
func (c *conversation) Record() []byte { return nil }

// Adopt implements downstream.Conversation.
func (c *conversation) Adopt(_, _ []byte) error { return nil }

// Flows implements downstream.Conversation.
func (c *conversation) Flows() [][]byte { return nil }

// Resume implements downstream.Conversation.
func (c *conversation) Resume(downstream.Caller, []byte, downstream.Reply) error { return errOver }

// GiveUp implements downstream.Conversation.
func (c *conversation) GiveUp(downstream.Caller, []byte) (func(), error) { return nil, errOver }

// Leave implements downstream.Conversation: no call is kept.
func (c *conversation) Leave() {}

// Unload implements downstream.Conversation.
func (c *conversation) Unload(func(downstream.Checkpointer, time.Time) bool) bool { return false }

// Remind implements downstream.Conversation: the server's questions are not known here.
func (*conversation) Remind([]string) {}

// Renew implements downstream.Conversation.
func (c *conversation) Renew() {}

// Awaits implements downstream.Conversation.
func (*conversation) Awaits(jsonrpc.Message) bool { return false }

// Reauthorize implements downstream.Conversation: each request has its client's own.
func (*conversation) Reauthorize(string) {}

// StopListening implements downstream.Conversation. The line stays: questions of calls may come on it.
func (c *conversation) StopListening() { c.deaf.Store(true) }

// Watch implements downstream.Conversation: nothing is known of its calls.
func (*conversation) Watch(func(observe.Flow, downstream.Reply) downstream.Reply) {}

// Conclude implements downstream.Conversation. Whoever ends the session lets nothing more in.
func (c *conversation) Conclude() {}

// Close implements downstream.Conversation. It does not wait for the server.
func (c *conversation) Close(cause error) {
	c.mu.Lock()
	closed := c.closed
	c.closed = true
	c.mu.Unlock()
	if closed {
		return
	}
	c.cancel()
	c.finish(downstream.Unknown(downstream.EndOfCalls(cause, errOver)))
	go func() {
		defer c.relay.gate.Exit()
		c.line.Close()
		c.wait.work.Wait()
	}()
}

// finish ends every call.
func (c *conversation) finish(why error) {
	c.mu.Lock()
	ids := make([]jsonrpc.ID, 0, len(c.calls))
	for id := range c.calls {
		ids = append(ids, id)
	}
	c.mu.Unlock()
	for _, id := range ids {
		c.Fail(id, why)
	}
}

// Fail implements Inbox.
func (c *conversation) Fail(id jsonrpc.ID, why error) {
	if k := c.take(id); k != nil {
		c.over(id, k, why)
	}
}

// over tells the client of a call that was taken why it has failed.
func (c *conversation) over(id jsonrpc.ID, k *pendingCall, why error) {
	if refusal := (*downstream.Refusal)(nil); errors.As(why, &refusal) && k.out.Refuse(refusal) {
		return
	}
	if !errors.Is(why, errOver) { // its own client's wish
		k.tell(&c.relay.failed, why)
	}
	e := (*jsonrpc.Error)(nil)
	if !errors.As(why, &e) {
		e = failed(why.Error())
	}
	k.out.Finish(downstream.Failure(id, e))
}

// Unanswered implements Inbox: the call that asked would wait for ever.
func (c *conversation) Unanswered(question jsonrpc.ID, why error) {
	var ends []func(error) // one at most
	c.mu.Lock()
	for id, k := range c.calls {
		if slices.Contains(k.questions, question) {
			ends = append(ends, c.dismissLocked(id, k, "an answer got lost"))
		}
	}
	c.mu.Unlock()
	for _, end := range ends {
		end(fmt.Errorf("the answer to a question of this call did not reach the server: %w", why))
	}
}

// tell writes the line of a call that failed: whose, of what, for how long, why.
func (k *pendingCall) tell(log *zerolog.Logger, why error) {
	line := log.Warn().Err(why).Str(logfield.Method, fault.Clip(k.method))
	if k.session != "" {
		line = line.Str(logfield.SessionID, logfield.Short(k.session))
	}
	if name, ok := rawjson.Text(k.name); ok {
		line = line.Str(logfield.Tool, fault.Clip(name))
	}
	line.Dur(logfield.Duration, time.Since(k.began)).Msg("a relayed request failed")
}

var errEnded = errors.New("the connection to the server has ended")

// Ended implements Inbox: the calls get their errors, and then the client loses its
// session, if it is this conversation that serves it: another one may where this did not open. At least the line is given back, unless Open has yet to see this.
func (c *conversation) Ended(why error) {
	why = cmp.Or(why, errEnded)
	c.mu.Lock()
	c.ended = cmp.Or(c.ended, why)
	opened := c.opened
	c.mu.Unlock()
	c.finish(why)
	switch {
	case !opened:
	case c.push != nil:
		c.push.End(why)
	default:
		c.Close(why)
	}
}

// maxBatch is the largest batch that is taken from a server. Of a larger one it cannot
// be told which calls it answers, so it ends the session.
const maxBatch = 1024
