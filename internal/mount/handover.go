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

	mu         sync.Mutex
	translated map[*translated]struct{} // sessions that Backend serves
	undecided  map[*undecided]struct{}  // those that began before the server was seen
}

// newHandover returns one for servers to which opening admits what opens sessions; nil: their
// number is bounded already.
func newHandover(inner downstream.Backend, v *verdicts, server relay.Server, opt *Options, opening *turns.Queue) *handover {
	h := &handover{Backend: inner, verdicts: v, work: gate.New(), translated: map[*translated]struct{}{}, undecided: map[*undecided]struct{}{}, relay: relay.New(relay.Options{
		Server: server, Start: opt.Probe.Timeout, Call: opt.Bridge.Limits.Flow.Call, Calls: opt.Legacy.MaxInFlight, Turns: opt.Legacy.Turns, Opening: opening, Log: opt.Bridge.Log,
	})}
	v.changed, v.seen = append(v.changed, h.changed), h.seen
	return h
}

// Open implements downstream.Backend.
func (h *handover) Open(ctx context.Context, caller downstream.Caller, req jsonrpc.Message, push downstream.Pusher) (downstream.Conversation, []byte, error) {
	if !h.verdicts.relays(ctx, caller, req.Params) {
		return h.translate(ctx, caller, req, push)
	}
	conv, result, err := h.relay.Open(ctx, caller, req, push)
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

func (h *handover) translate(ctx context.Context, caller downstream.Caller, req jsonrpc.Message, push downstream.Pusher) (downstream.Conversation, []byte, error) {
	unseen := h.verdicts.unseen.Load() // before anything else can look at the server
	conv, result, err := h.Backend.Open(ctx, caller, req, push)
	switch {
	case err != nil:
		return conv, result, err
	case unseen:
		return h.doubt(&undecided{Conversation: conv, relay: h.relay, work: h.work, dismissed: h.dismiss, push: push, caller: caller, opened: req}), result, nil
	}
	return h.enlist(conv, push), result, nil
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
// kept.
func (h *handover) Restore(ctx context.Context, caller downstream.Caller, record []byte, push downstream.Pusher) (downstream.Conversation, error) {
	conv, err := h.Backend.Restore(ctx, caller, record, push)
	if err != nil {
		return conv, err
	}
	h.verdicts.relied()
	return h.enlist(conv, push), nil
}

// enlist has a conversation end when the server becomes a legacy one.
func (h *handover) enlist(conv downstream.Conversation, push downstream.Pusher) downstream.Conversation {
	t := &translated{Conversation: conv, handover: h, push: push}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.translated[t] = struct{}{}
	return t
}

// changed learns that the server became, or ceased to be, a legacy one. It does
// not wait for the sessions that end.
func (h *handover) changed(legacy bool) {
	if !legacy {
		return // the ends of relayed sessions are the server's to tell
	}
	for _, u := range h.doubtful() {
		if over := u.decide(true); over {
			go u.push.End(errLegacy)
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for t := range h.translated {
		go t.push.End(errLegacy)
	}
	clear(h.translated)
}

// translated is a conversation that ends when the server becomes a legacy one.
type translated struct {
	downstream.Conversation
	handover *handover
	push     downstream.Pusher
	asking   atomic.Bool // what the server is to its client
}

// Serve implements downstream.Conversation.
func (t *translated) Serve(ctx context.Context, caller downstream.Caller, req downstream.Request, out downstream.Reply) {
	if v := t.handover.verdicts; v.disputed.Load() && !caller.Unproven && t.asking.CompareAndSwap(false, true) {
		t.handover.work.Go(func() { t.doubt(context.WithoutCancel(ctx), caller) })
	}
	t.Conversation.Serve(ctx, caller, req, out)
}

// doubt ends the conversation if the server is a legacy one to its own client.
func (t *translated) doubt(ctx context.Context, caller downstream.Caller) {
	defer t.asking.Store(false)
	if t.handover.verdicts.of(ctx, func() downstream.Caller { return caller }).legacy {
		t.push.End(errLegacy)
	}
}

// Close implements downstream.Conversation.
func (t *translated) Close(cause error) {
	t.handover.mu.Lock()
	delete(t.handover.translated, t)
	t.handover.mu.Unlock()
	t.Conversation.Close(cause)
}

// close waits for what was opened for single clients.
func (h *handover) close() {
	h.work.Shut()
	_ = h.work.Wait(context.Background()) // which doesn't end
	h.relay.Close()
}
