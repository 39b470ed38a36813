package mount

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpbridge/bridge/bridge"
	"github.com/mcpbridge/bridge/bridge/catalog"
	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/budget"
	"github.com/mcpbridge/bridge/internal/gate"
	"github.com/mcpbridge/bridge/internal/relay"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/negotiate"
	"github.com/mcpbridge/bridge/upstream"
	"github.com/mcpbridge/bridge/upstream/stdio"
)

// children is a backend in which each session has a process, and thus a bridge,
// of its own: nothing of one session can reach another. What has no session is
// served by the one bridge that is always there.
type children struct {
	*bridge.Bridge
	opt    Options
	places *relay.Places

	gate *gate.Gate // processes until they have ended

	common   *stdio.Client // the process that is asked what the command is
	verdicts *verdicts     // what it has said
	retired  atomic.Int64  // when that process was last replaced, in Unix nanoseconds
}

func newChildren(common *bridge.Bridge, l *local) *children {
	return &children{Bridge: common, opt: *l.opt, places: l.places, gate: gate.New(), common: l.stdio, verdicts: l.verdicts}
}

// outdates has another process asked what the command is, since that of a session has proved to be a legacy server:
// each starts the version that is installed at the time.
func (c *children) outdates() {
	if c.verdicts.legacyOnly.Load() { // as is known by now
		return
	}
	now, last := time.Now().UnixNano(), c.retired.Load()
	if now-last < int64(lookPause) || !c.retired.CompareAndSwap(last, now) {
		return
	}
	c.common.Retire()
	c.verdicts.prober.Forget()
	c.opt.other.give()
}

// witness is the Caller of a session's own process.
type witness struct {
	upstream.Caller
	legacy func() // called when it has shown to be a legacy server
}

var _ upstream.Wrapper = (*witness)(nil)

// Unwrap implements upstream.Wrapper.
func (w *witness) Unwrap() upstream.Caller { return w.Caller }

// Do implements upstream.Caller. A process that may have become a legacy server is asked whether it is one.
func (w *witness) Do(ctx context.Context, call *upstream.Call, notify func(jsonrpc.Message)) (*upstream.Answer, error) {
	answer, err := w.Caller.Do(ctx, call, notify)
	failure, _ := errors.AsType[*upstream.Failure](err)
	switch {
	case failure != nil && failure.Cause == upstream.NotModern && call.Method != mcp.MethodDiscover:
		within, cancel := context.WithTimeout(ctx, reachTimeout)
		defer cancel()
		w.LegacyOffer(within, call)
	case err == nil && call.Method == mcp.MethodDiscover && negotiate.NamesLegacy(answer.Result, answer.Error):
		w.legacy()
	}
	return answer, err
}

// Signs is that of the process.
func (w *witness) Signs() upstream.Signs { return upstream.SignsOf(w.Caller) }

// LegacyOffer is that of the process.
func (w *witness) LegacyOffer(ctx context.Context, call *upstream.Call) negotiate.Offer {
	offer := upstream.LegacyOffer(ctx, w.Caller, call)
	if len(offer.Versions) > 0 && !offer.Late {
		w.legacy()
	}
	return offer
}

// Open implements downstream.Backend: it starts a process for the session.
func (c *children) Open(ctx context.Context, caller downstream.Caller, req jsonrpc.Message, push downstream.Pusher) (conv downstream.Conversation, result []byte, err error) {
	conv, err = c.house(caller, func(own *child) (conv downstream.Conversation, err error) {
		conv, result, err = own.Open(ctx, caller, req, push)
		return conv, err
	})
	return conv, result, err
}

// Restore implements downstream.Backend: what the session's process remembered is
// gone with it.
func (c *children) Restore(ctx context.Context, caller, by downstream.Caller, record []byte, push downstream.Pusher) (downstream.Conversation, error) {
	return c.house(caller, func(own *child) (downstream.Conversation, error) { return own.Restore(ctx, caller, by, record, push) })
}

// house starts a process for the session that open opens.
func (c *children) house(caller downstream.Caller, open func(*child) (downstream.Conversation, error)) (downstream.Conversation, error) {
	release, err := c.acquire(caller.Tenant)
	if err != nil {
		return nil, err
	}
	own, err := c.start(caller.Account)
	if err != nil {
		release()
		return nil, err
	}
	conv, err := open(own)
	if err != nil {
		if own.legacy.Load() {
			err = &outdated{err}
		}
		go c.part(own, release)
		return nil, err
	}
	return &childConversation{Conversation: conv, end: func() { go own.end(release) }}, nil
}

// part ends a process whose session did not open, once it has shown what it is: it may be silent because it is a legacy server.
func (c *children) part(own *child, release func()) {
	if own.process.Shows(c.gate.Shutting()) {
		c.outdates()
	}
	own.end(release)
}

// acquire takes one of the places for processes. It is free again when the
// process has really ended.
func (c *children) acquire(tenant string) (release func(), err error) {
	if !c.gate.Enter() {
		return nil, bridge.ErrClosed
	}
	free, err := c.places.Take(tenant)
	if err != nil {
		c.gate.Exit()
		return nil, err
	}
	return func() { free(); c.gate.Exit() }, nil
}

// child is one process and the bridge in front of it.
type child struct {
	*bridge.Bridge
	process *stdio.Client
	legacy  atomic.Bool // it has shown to be a legacy server
}

// outdated is why a session does not open whose process shows that the command is no modern server any more.
type outdated struct{ error }

func (o *outdated) Unwrap() error { return o.error }

func (c *children) start(account *budget.Account) (*child, error) {
	run := c.opt.Command.Stdio
	run.Account, run.Sole, run.Modern = account, true, c.verdicts.modern()
	process, err := stdio.New(run)
	if err != nil {
		return nil, err
	}
	own, opt := &child{process: process}, c.opt.Bridge
	opt.Upstream = &admitting{&witness{c.opt.Draft.Caller(process), func() { own.legacy.Store(true); c.outdates() }}, c.opt.Legacy.Turns, nil, true} // how many there are is bounded
	opt.Catalog = catalog.New(negotiate.NewProber(probeOptions(&c.opt)), account)
	own.Bridge = bridge.New(opt)
	return own, nil
}

func (c *child) end(release func()) {
	c.Bridge.Close()
	_ = c.process.Close()
	release()
}

// childConversation is a conversation with a process of its own.
type childConversation struct {
	downstream.Conversation
	once sync.Once
	end  func()
}

// Close implements downstream.Conversation. It does not wait for the process.
func (t *childConversation) Close(cause error) {
	t.Conversation.Close(cause)
	t.once.Do(t.end)
}

// close waits for the processes of sessions that were closed before.
func (c *children) close() {
	c.gate.Shut()
	_ = c.gate.Wait(context.Background()) // which doesn't end
}
