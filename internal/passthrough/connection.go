package passthrough

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/budget"
	"github.com/mcpbridge/bridge/internal/fault"
	"github.com/mcpbridge/bridge/internal/logfield"
	"github.com/mcpbridge/bridge/internal/turns"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/observe"
	"github.com/mcpbridge/bridge/rawjson"
	"github.com/mcpbridge/bridge/upstream"
)

// Sender sends the request of a modern client to its server as it is, under an id of its
// own, and returns the response. notify gets what belongs to it meanwhile. Ending ctx
// cancels it.
type Sender interface {
	Verbatim(ctx context.Context, call *upstream.Call, notify func(jsonrpc.Message)) (*upstream.Answer, error)
}

// ConnectionOptions configures Connections. Server is required.
type ConnectionOptions struct {
	Server Sender
	// Legacy and Logs are those of ProcessOptions.
	Legacy func(context.Context) bool
	Logs   func(caller string) (may func() bool, done func())
	// Modern reports whether the server has shown to be a modern one: one strange answer sends no
	// client back to initialize then. nil: it never has.
	Modern func() bool
	// Turns admits requests; nil: all at once.
	Turns  *turns.Queue
	Limits Limits
	Log    zerolog.Logger
}

// Connections serves modern requests that come over connections, stdio and WebSockets,
// from a server of any kind. Such requests have no headers and no streams of their own:
// what belongs to one of them is told by its progress token or the name of its
// subscription, and a notification cancels it.
type Connections struct {
	opt    ConnectionOptions
	seldom zerolog.Logger // for requests that fail
	serial atomic.Uint64  // numbers connections
}

// NewConnections returns Connections. Nothing is sent before the first request.
func NewConnections(opt ConnectionOptions) *Connections {
	opt.Limits.defaults()
	return &Connections{opt: opt, seldom: logfield.Seldom(opt.Log)}
}

// Open begins to serve one connection. Its requests end with the context that each is
// served with.
func (c *Connections) Open() downstream.Conversation {
	return &connection{all: c, name: "connection " + string(jsonrpc.IntID(int64(c.serial.Add(1))))}
}

// connection is one client's connection. It remembers nothing.
type connection struct {
	all  *Connections
	name string // of the caller, for Logs
}

// Version implements downstream.Conversation.
func (*connection) Version() mcp.Version { return mcp.V20260728 }

// Orderly implements downstream.Conversation.
func (*connection) Orderly() bool { return false }

// Serve implements downstream.Conversation.
func (c *connection) Serve(ctx context.Context, caller downstream.Caller, req downstream.Request, out downstream.Reply) {
	opt, began := &c.all.opt, time.Now()
	if opt.Legacy != nil && opt.Legacy(ctx) {
		out.Finish(downstream.Failure(req.ID, notModern()))
		return
	}
	if err := fault.Token(req.ProgressToken); err != nil {
		out.Finish(downstream.Failure(req.ID, err))
		return
	}
	leave, err := c.turn(ctx, caller, &req)
	if err != nil {
		c.left(ctx, req.ID, out)
		return
	}
	defer leave()
	ctx, end, heard := opt.Limits.within(ctx, req.Method)
	defer end()
	to := &exchange{out: out, id: req.ID, listen: req.Method == mcp.MethodListen}
	to.modern = req.Method != mcp.MethodDiscover && opt.Modern != nil && opt.Modern()
	if opt.Logs != nil && rawjson.Has(req.Meta, mcp.MetaLogLevel) {
		may, done := opt.Logs(c.name)
		to.mayLog = may
		defer done()
	}
	hold := budget.On(caller.Account)
	defer hold.Release()
	call := &upstream.Call{
		Held: &hold, Account: hold.Account(), Method: req.Method, Params: req.Params, Authorization: caller.Authorization,
		Principal: caller.Principal, Header: caller.Header, Tenant: caller.Tenant, Idle: out.Flush, Link: req.Link,
	}
	ans, err := opt.Server.Verbatim(ctx, call, func(msg jsonrpc.Message) { heard(); to.notify(msg) })
	switch {
	case errors.Is(context.Cause(ctx), downstream.ErrCancelled):
		out.Abandon()
	case err == nil:
		to.finish(ans)
		ans.Release()
	default:
		name, _ := rawjson.Text(req.Name)
		failed{method: req.Method, tool: name, began: began}.tell(&c.all.seldom, err)
		to.fail(ctx, err)
	}
}

// turn waits until a request may take up the server. One that only listens takes nothing up, one
// that is over gets none.
func (c *connection) turn(ctx context.Context, caller downstream.Caller, req *downstream.Request) (leave func(), err error) {
	if req.Method == mcp.MethodListen || ctx.Err() != nil {
		return func() {}, ctx.Err()
	}
	who := turns.Who{Principal: caller.Tenant, Session: c}
	if _, err := c.all.opt.Turns.EnterPassing(ctx, who, req.Link); err != nil {
		return nil, err
	}
	return func() { c.all.opt.Turns.Leave(who) }, nil
}

// left ends a request that never had its turn: its client has cancelled it, or the
// connection ends.
func (c *connection) left(ctx context.Context, id jsonrpc.ID, out downstream.Reply) {
	if errors.Is(context.Cause(ctx), downstream.ErrCancelled) {
		out.Abandon()
		return
	}
	out.Finish(downstream.Failure(id, fault.Internal("the connection ended before it was this request's turn")))
}

// Notify implements downstream.Conversation. Modern clients have only one notification, which ends
// the context of the request that it cancels.
func (*connection) Notify(downstream.Caller, jsonrpc.Message) {}

// Answer implements downstream.Conversation: there are no questions.
func (*connection) Answer(downstream.Caller, jsonrpc.Message) error { return nil }

// Knows implements downstream.Conversation.
func (*connection) Knows(downstream.Caller, jsonrpc.ID) bool { return false }

// Owns implements downstream.Conversation.
func (*connection) Owns(downstream.Caller, []byte) bool { return false }

// Record implements downstream.Conversation: nothing outlives the connection.
func (*connection) Record() []byte { return nil }

// Adopt implements downstream.Conversation.
func (*connection) Adopt(_, _ []byte) error { return nil }

// Leave implements downstream.Conversation: no call is kept.
func (*connection) Leave() {}

// Unload implements downstream.Conversation.
func (*connection) Unload(func(downstream.Checkpointer, time.Time) bool) bool { return false }

// Remind implements downstream.Conversation.
func (*connection) Remind([]string) {}

// Renew implements downstream.Conversation.
func (*connection) Renew() {}

// Awaits implements downstream.Conversation.
func (*connection) Awaits(jsonrpc.Message) bool { return false }

// Reauthorize implements downstream.Conversation.
func (*connection) Reauthorize(string) {}

// StopListening implements downstream.Conversation: listens end with the contexts of their requests.
func (*connection) StopListening() {}

// Conclude implements downstream.Conversation.
func (*connection) Conclude() {}

// Flows implements downstream.Conversation.
func (*connection) Flows() [][]byte { return nil }

// Resume implements downstream.Conversation.
func (*connection) Resume(downstream.Caller, []byte, downstream.Reply) error {
	return downstream.ErrGone
}

// GiveUp implements downstream.Conversation.
func (*connection) GiveUp(downstream.Caller, []byte) (func(), error) {
	return nil, downstream.ErrGone
}

// Watch implements downstream.Conversation: nothing is known of its calls.
func (*connection) Watch(func(observe.Flow, downstream.Reply) downstream.Reply) {}

// EndCall implements downstream.Conversation.
func (*connection) EndCall(string) bool { return false }

// Look implements downstream.Conversation.
func (c *connection) Look() observe.Conversation {
	return observe.Conversation{Version: c.Version(), Relayed: true}
}

// Close implements downstream.Conversation: requests end with their contexts.
func (*connection) Close(error) {}

// notModern is the error with which clients of both eras fall back to initialize.
func notModern() *jsonrpc.Error {
	return fault.Method("method not found: initialize first")
}

// exchange is where the answer to one request goes.
type exchange struct {
	out    downstream.Reply
	id     jsonrpc.ID
	listen bool
	modern bool // the server is known to be; and its client does not ask whether it is
	mayLog func() bool
}

// notify takes a notification that belongs to the request.
func (a *exchange) notify(msg jsonrpc.Message) {
	params := msg.Params
	switch {
	case msg.Method == mcp.NotificationMessage && a.mayLog != nil && !a.mayLog(): // C-8
		return
	case a.listen:
		params = subscription(params, a.id)
	}
	a.out.Queue(downstream.Notification(msg.Method, params))
}

func (a *exchange) finish(ans *upstream.Answer) {
	switch {
	case ans.Error != nil:
		a.out.Finish(downstream.Failure(a.id, ans.Error))
	case a.listen:
		a.out.Finish(downstream.Result(a.id, subscription(ans.Result, a.id)))
	default:
		a.out.Finish(downstream.Result(a.id, ans.Result))
	}
}

// fail ends a request to which the server has no response.
func (a *exchange) fail(ctx context.Context, err error) {
	failed, _ := errors.AsType[*upstream.Failure](err)
	switch {
	case a.listen && ctx.Err() != nil: // the connection ends, and with it the subscription
		a.out.Finish(downstream.Result(a.id, unsubscribed(a.id)))
	case failed != nil && failed.Cause == upstream.NotModern && !a.modern:
		a.out.Finish(downstream.Failure(a.id, notModern()))
	case failed != nil && failed.Cause == upstream.Unauthorized && a.out.Refuse(&downstream.Refusal{Status: failed.Status, Challenge: failed.Challenge}):
	default:
		_, _, refusal := failure(err)
		a.out.Finish(downstream.Failure(a.id, refusal))
	}
}
