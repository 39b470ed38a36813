package mount

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/gate"
	"github.com/mcpbridge/bridge/internal/relay"
	"github.com/mcpbridge/bridge/internal/turns"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/negotiate"
)

// handover is a backend that connects legacy clients to a server of their own
// era where that is more faithful than translating for them. It decides
// by the server's verdict, once per session; a session whose server is no longer
// of that era is ended, but for one that began before anybody could see the server.
type handover struct {
	downstream.Backend // serves everybody else
	verdicts           *verdicts
	relay              *relay.Relay

	work *gate.Gate // connects sessions that began before anybody had signed in, and asks for those that doubt

	mu        sync.Mutex
	relying   map[*relying]struct{}   // sessions that rely on what the server was when they began
	undecided map[*undecided]struct{} // those that began before the server was seen
}

// newHandover returns one for servers to which opening admits what opens sessions; nil: their
// number is bounded already.
func newHandover(inner downstream.Backend, v *verdicts, server relay.Server, opt *Options, opening *turns.Queue) *handover {
	h := &handover{Backend: inner, verdicts: v, work: gate.New(), relying: map[*relying]struct{}{}, undecided: map[*undecided]struct{}{}, relay: relay.New(relay.Options{
		Server: server, Start: opt.Probe.Timeout, Call: opt.Bridge.Limits.Flow.Call, Calls: opt.Legacy.MaxInFlight, Turns: opt.Legacy.Turns, Opening: opening, Log: opt.Bridge.Log,
	})}
	v.changed, v.outgrown, v.seen = append(v.changed, h.changed), append(v.outgrown, h.outgrown), h.seen
	return h
}

// Open implements downstream.Backend.
func (h *handover) Open(ctx context.Context, caller downstream.Caller, req jsonrpc.Message, push downstream.Pusher) (downstream.Conversation, []byte, error) {
	was := h.verdicts.legacyOnly.Load()
	if !h.verdicts.relays(ctx, caller, req.Params) {
		return h.translate(ctx, caller, req, push)
	}
	conv, result, err := h.connect(ctx, caller, req, push, was)
	if err == nil {
		return conv, result, nil
	}
	h.verdicts.prober.Forget() // perhaps it is another server by now
	if refused, ok := errors.AsType[*jsonrpc.Error](err); ok && provesModern(refused.Code) && !h.verdicts.relays(ctx, caller, req.Params) {
		return h.translate(ctx, caller, req, push)
	}
	return nil, nil, err
}

// provesModern reports whether a server that answers initialize with this error
// cannot be a legacy one.
func provesModern(code int) bool {
	return code == mcp.CodeUnsupportedVersion || code == jsonrpc.CodeMethodNotFound
}

// connect opens a session that is relayed; was is what was known of the server before that.
func (h *handover) connect(ctx context.Context, caller downstream.Caller, req jsonrpc.Message, push downstream.Pusher, was bool) (downstream.Conversation, []byte, error) {
	conv, result, err := h.relay.Open(ctx, caller, req, push)
	if err != nil {
		return nil, nil, err
	}
	return h.enlist(&relying{Conversation: conv, push: push, relayed: true}, was), result, nil
}

func (h *handover) translate(ctx context.Context, caller downstream.Caller, req jsonrpc.Message, push downstream.Pusher) (downstream.Conversation, []byte, error) {
	unseen, was := h.verdicts.unseen.Load(), h.verdicts.legacyOnly.Load() // before anything else can look at the server
	conv, result, err := h.Backend.Open(ctx, caller, req, push)
	switch {
	case errors.As(err, new(*outdated)) && h.verdicts.relays(ctx, caller, req.Params):
		return h.connect(ctx, caller, req, push, h.verdicts.legacyOnly.Load())
	case err != nil:
		return conv, result, err
	case unseen:
		return h.doubt(&undecided{Conversation: conv, relay: h.relay, work: h.work, dismissed: h.dismiss, push: push, caller: caller, opened: req}), result, nil
	}
	return h.enlist(&relying{Conversation: conv, push: push}, was), result, nil
}

// doubt has a conversation learn what the server is, which may be known by now.
func (h *handover) doubt(u *undecided) *undecided {
	u.begin()
	h.mu.Lock()
	h.undecided[u] = struct{}{}
	h.mu.Unlock()
	if legacy, guess := h.verdicts.latest(); !guess {
		u.decide(legacy)
	}
	return u
}

// dismiss forgets a conversation that has ended.
func (h *handover) dismiss(u *undecided) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.undecided, u)
}

// seen learns that the server, which refused everybody before, is a modern one.
func (h *handover) seen() {
	for _, u := range h.doubtful() {
		u.decide(false)
	}
}

func (h *handover) doubtful() []*undecided {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Collect(maps.Keys(h.undecided))
}

// Restore implements downstream.Backend: only sessions that were translated for are
// kept. They end with the era of their server as those in memory do.
func (h *handover) Restore(ctx context.Context, caller, by downstream.Caller, record []byte, push downstream.Pusher) (downstream.Conversation, error) {
	was := h.verdicts.legacyOnly.Load()
	if was && h.outdates(ctx, caller) {
		return nil, downstream.ErrForeignEra
	}
	conv, err := h.Backend.Restore(ctx, caller, by, record, push)
	if err != nil {
		if h.outdates(ctx, caller) { // which nobody knew before
			err = downstream.ErrForeignEra
		}
		return conv, err
	}
	h.verdicts.relied()
	return h.enlist(&relying{Conversation: conv, push: push}, was), nil
}

// outdates reports whether the server has shown to be a legacy one, for which sessions that are
// translated for are nothing.
func (h *handover) outdates(ctx context.Context, caller downstream.Caller) bool {
	if h.verdicts.policy == negotiate.RelayNever && !h.verdicts.legacyOnly.Load() {
		return false
	}
	verdict := h.verdicts.judge(ctx, caller)
	return verdict.LegacyServer() && !h.verdicts.guessed(&verdict)
}

// enlist has a conversation end when the server is no longer what it relies on: at once if that
// has changed since was, when it began to open.
func (h *handover) enlist(r *relying, was bool) downstream.Conversation {
	r.handover = h
	h.mu.Lock()
	h.relying[r] = struct{}{}
	h.mu.Unlock()
	if legacy := h.verdicts.legacyOnly.Load(); legacy != was && legacy != r.relayed {
		r.push.End(errEra)
	}
	return r
}

// changed learns that the server became, or ceased to be, a legacy one. It does
// not wait for the sessions that end.
func (h *handover) changed(legacy bool) {
	if legacy { // else somebody may only have been refused
		h.leave(legacy)
	}
}

// outgrown learns that the server has proved to be none any more for sessions that are relayed.
func (h *handover) outgrown() { h.leave(false) }

// leave ends the sessions that are nothing for a server that is a legacy one, or none.
func (h *handover) leave(legacy bool) {
	for _, u := range h.doubtful() {
		if over := u.decide(legacy); over {
			go u.push.End(errEra)
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for r := range h.relying {
		if r.relayed != legacy {
			go r.push.End(errEra)
			delete(h.relying, r)
		}
	}
}

// relying is a conversation that ends when the server becomes a legacy one, or, if it is
// relayed to one, when the server ceases to be that.
type relying struct {
	downstream.Conversation
	handover *handover
	push     downstream.Pusher
	relayed  bool
	asking   atomic.Bool // what the server is to its client
}

// Serve implements downstream.Conversation.
func (r *relying) Serve(ctx context.Context, caller downstream.Caller, req downstream.Request, out downstream.Reply) {
	if v := r.handover.verdicts; v.disputed.Load() && !caller.Unproven && r.asking.CompareAndSwap(false, true) {
		r.handover.work.Go(func() { r.doubt(context.WithoutCancel(ctx), caller) })
	}
	r.Conversation.Serve(ctx, caller, req, out)
}

// doubt ends the conversation if the server is another one to its own client.
func (r *relying) doubt(ctx context.Context, caller downstream.Caller) {
	defer r.asking.Store(false)
	if is := r.handover.verdicts.of(ctx, func() downstream.Caller { return caller }); r.relayed && is.modern || !r.relayed && is.legacy {
		r.push.End(errEra)
	}
}

// Close implements downstream.Conversation.
func (r *relying) Close(cause error) {
	r.handover.mu.Lock()
	delete(r.handover.relying, r)
	r.handover.mu.Unlock()
	r.Conversation.Close(cause)
}

// close waits for what was opened for single clients.
func (h *handover) close() {
	h.work.Shut()
	_ = h.work.Wait(context.Background()) // which doesn't end
	h.relay.Close()
}
