package mount

import (
	"context"

	"github.com/mcpbridge/bridge/internal/turns"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/negotiate"
	"github.com/mcpbridge/bridge/upstream"
)

// admitting is a Caller whose requests take turns. It is around all others, and is what the rooms
// are given to ask the server with: whoever asks it something takes a turn without doing
// anything for it. Listens take none; they have places (subscriptions.Options).
//
// What the server is (server/discover and what follows from it) has a queue of its own, as
// has what ends a task or goes on with it: calls wait for that while they have their turn, so
// it must not wait for them. Nothing that has a turn of that queue waits for another turn.
type admitting struct {
	upstream.Caller
	calls, brief *turns.Queue
	// All requests take one way, and are on it in the order in which they came, but for those that had to wait for their turn:
	// they have passed by then, and of several that get it at once any may be first (E-35).
	piped bool
}

var _ upstream.Wrapper = (*admitting)(nil)

// askInTurn has all who ask the server do so through what it returns.
func (o *Options) askInTurn(caller upstream.Caller, v *verdicts) upstream.Caller {
	v.caller = &admitting{caller, o.Legacy.Turns, o.brief, o.Command != nil}
	o.Bridge.Upstream = v.caller
	return v.caller
}

// Unwrap implements upstream.Wrapper.
func (a *admitting) Unwrap() upstream.Caller { return a.Caller }

// Do implements upstream.Caller.
func (a *admitting) Do(ctx context.Context, call *upstream.Call, notify func(jsonrpc.Message)) (*upstream.Answer, error) {
	if !a.piped {
		call.Link.Pass()
	}
	queue, who := a.turnOf(call)
	waited, err := queue.EnterPassing(ctx, who, call.Link)
	if err != nil {
		return nil, notInTurn(ctx)
	}
	defer queue.Leave(who)
	if call.Admitted != nil {
		if err := call.Admitted(waited); err != nil {
			return nil, err
		}
	}
	return a.Caller.Do(ctx, call, notify)
}

// turnOf is whose turn a request takes, and where. What is asked in nobody's name is for all
// who want to know it, whoever was first.
func (a *admitting) turnOf(call *upstream.Call) (*turns.Queue, turns.Who) {
	who := turns.Who{Principal: call.Tenant, Session: call.Session}
	switch call.Method {
	case mcp.MethodDiscover:
		if call.Principal == "" {
			who = turns.Who{}
		}
		return a.brief, who
	case mcp.MethodTasksUpdate, mcp.MethodTasksCancel:
		return a.brief, who
	}
	return a.calls, who
}

// notInTurn is the outcome of a request whose turn has not come.
func notInTurn(ctx context.Context) *upstream.Failure {
	failure := upstream.Interrupted(ctx, false)
	if failure.Cause == upstream.Timeout { // of the wait: it says nothing about the server
		failure.Cause, failure.Detail = upstream.Busy, "too many requests are at the upstream (limits.concurrency): it was not this one's turn in time"
	}
	return failure
}

// LegacyOffer asks a server that looks legacy what it is, in turn as well.
func (a *admitting) LegacyOffer(ctx context.Context, call *upstream.Call) negotiate.Offer {
	queue, who := a.turnOf(call)
	if _, err := queue.Enter(ctx, who); err != nil {
		return negotiate.Offer{}
	}
	defer queue.Leave(who)
	return upstream.LegacyOffer(ctx, a.Caller, call)
}

// Signs returns what else but a refusal is evidence of a legacy server.
func (a *admitting) Signs() upstream.Signs { return upstream.SignsOf(a.Caller) }
