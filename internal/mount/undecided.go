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
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/negotiate"
	"github.com/mcpbridge/bridge/observe"
	"github.com/mcpbridge/bridge/rawjson"
)

// undecided is the session of a client that came before anybody had signed in, when
// nobody could know of which era the server is. The bridge serves it, and has the person
// sign in. When the server then proves to be a legacy one, the client is connected to it
// with the initialize that it sent, and what it has asked meanwhile goes there.
//
//	unseen ──▶ modern: a translated session like any other
//	   └─────▶ legacy ──▶ next is there
//	              └─────▶ the session ends: it cannot be connected
//
// Nothing of what the bridge serves while the server is unseen has been executed there:
// it was refused for want of credentials. So it can be asked again.
type undecided struct {
	downstream.Conversation // of the bridge
	relay                   *relay.Relay
	work                    *gate.Gate       // is waited for before the relay is closed
	dismissed               func(*undecided) // called at the end
	push                    downstream.Pusher
	caller                  downstream.Caller
	opened                  jsonrpc.Message // initialize
	ctx                     context.Context // ends with the session
	stop                    context.CancelFunc

	next   atomic.Pointer[downstream.Conversation] // with the server, once it is there
	server atomic.Pointer[downstream.Conversation] // the same, from when it gets what waited: it may ask at once

	mu     sync.Mutex
	era    era
	begun  *downstream.Caller        // who said that the client is ready; nil: not yet
	asked  map[jsonrpc.ID]*entrusted // what the bridge serves, or nobody yet
	held   []*entrusted              // what waits for next, in order
	closed error                     // why; nil: it is open
}

// era is what an undecided session knows of its server.
type era int

const (
	unseen era = iota
	modernEra
	legacyEra
	lostEra // a legacy one that the client could not be connected to
)

// begin completes a session.
func (u *undecided) begin() {
	u.caller.Header = maps.Clone(u.caller.Header) // which is the request's
	u.asked = map[jsonrpc.ID]*entrusted{}
	u.ctx, u.stop = context.WithCancel(context.Background())
}

// errLegacy ends what the bridge has of a session that is the server's.
var errLegacy = errors.New("the server has become a legacy one")

// errEra ends the sessions of a server that cannot serve them any more.
var errEra = errors.New("the server has become one of another era")

// errOnlyOlder ends calls and sessions that the bridge cannot serve.
var errOnlyOlder = errors.New("the server speaks only older revisions of the protocol than the bridge was made for, as it shows now that you are signed in: start your client's connection anew")

// decide is told what the server is. The first time counts; later on it reports that the
// server is another one, with which the session is over.
func (u *undecided) decide(legacy bool) (over bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	switch {
	case u.closed != nil:
	case u.era != unseen:
		return legacy == (u.era == modernEra)
	case legacy:
		u.era = legacyEra
		u.work.Go(u.connect)
	default:
		u.era = modernEra
	}
	return false
}

// connect opens the client's session with the server, and hands over what waits.
func (u *undecided) connect() {
	next, result, err := u.relay.Open(u.ctx, u.caller, u.opened, u.push)
	if err == nil && !negotiate.Serves(u.Conversation.Version(), next.Version()) {
		next.Close(errOnlyOlder)
		err = errOnlyOlder
	}
	if err != nil {
		u.lose(err)
		return
	}
	// Whoever ends the session does not know next yet, and a server that takes nothing more
	// would hold up what is handed over until next is closed.
	defer context.AfterFunc(u.ctx, func() { next.Close(errLegacy) })()
	if !u.handOver(next) {
		return
	}
	u.tell(result)
}

// handOver serves what waits, in order, and then has everything else go to next itself.
// It reports false when the session ended meanwhile.
func (u *undecided) handOver(next downstream.Conversation) bool {
	ready := false
	u.server.Store(&next)
	for {
		u.mu.Lock()
		held, begun, closed := u.held, u.begun, u.closed
		u.held = nil
		if closed == nil && len(held) == 0 && (ready || begun == nil) {
			u.next.Store(&next)
			u.mu.Unlock()
			u.retire()
			return true
		}
		u.mu.Unlock()
		if closed != nil {
			next.Close(closed)
			end(held, closed)
			return false
		}
		if begun != nil && !ready {
			next.Notify(*begun, jsonrpc.Message{Method: mcp.NotificationInitialized})
			ready = true
		}
		for _, e := range held {
			next.Serve(e.ctx, e.caller, e.req, e.Reply)
		}
	}
}

// tell has the client look at what there is.
func (u *undecided) tell(result []byte) {
	u.push.Changed() // the session is the server's now
	if !u.push.Reaches() {
		return
	}
	offers := rawjson.Get(result, "capabilities")
	for _, list := range []struct{ capability, method string }{
		{"tools", mcp.NotificationToolsListChanged}, {"prompts", mcp.NotificationPromptsListChanged}, {"resources", mcp.NotificationResourcesListChanged},
	} {
		if rawjson.Has(offers, list.capability) {
			u.push.Push(list.method, downstream.Notification(list.method, nil))
		}
	}
}

// lose ends a session that cannot be connected.
func (u *undecided) lose(why error) {
	u.mu.Lock()
	held := u.held
	u.era, u.held = lostEra, nil
	u.mu.Unlock()
	end(held, why)
	u.push.End(errors.Join(errLegacy, why))
}

// end answers what nobody will serve any more.
func end(held []*entrusted, why error) {
	for _, e := range held {
		e.Reply.Finish(downstream.Failure(e.req.ID, asError(why)))
	}
}

// retire ends the bridge's part, when nothing is left of it.
func (u *undecided) retire() {
	u.mu.Lock()
	over := u.next.Load() != nil && len(u.asked) == 0
	u.mu.Unlock()
	if over {
		u.Conversation.Close(errLegacy)
	}
}

// Serve implements downstream.Conversation.
func (u *undecided) Serve(ctx context.Context, caller downstream.Caller, req downstream.Request, out downstream.Reply) {
	u.mu.Lock()
	next, state := u.next.Load(), u.era
	var e *entrusted
	if next == nil && (state == unseen || state == legacyEra) {
		e = &entrusted{Reply: out, session: u, ctx: ctx, caller: caller, req: req}
		if state == legacyEra {
			u.held = append(u.held, e)
		} else {
			u.asked[req.ID] = e
		}
	}
	u.mu.Unlock()
	switch {
	case next != nil:
		(*next).Serve(ctx, caller, req, out)
	case state == lostEra:
		out.Finish(downstream.Failure(req.ID, asError(errOnlyOlder)))
	case e == nil:
		u.Conversation.Serve(ctx, caller, req, out)
	case state == unseen:
		u.Conversation.Serve(ctx, caller, req, e)
	}
}

// Notify implements downstream.Conversation.
func (u *undecided) Notify(caller downstream.Caller, msg jsonrpc.Message) {
	u.mu.Lock()
	next := u.next.Load()
	if msg.Method == mcp.NotificationInitialized && !caller.Unproven {
		u.begun = &caller
	}
	id, withdrawn := jsonrpc.ID(""), (*entrusted)(nil)
	if msg.Method == mcp.NotificationCancelled {
		id = jsonrpc.ID(rawjson.Get(msg.Params, "requestId"))
		withdrawn = u.withdrawLocked(caller, id)
		next = u.server.Load()
		if u.asked[id] != nil {
			next = nil // it is still the bridge's
		}
	}
	u.mu.Unlock()
	switch {
	case withdrawn != nil:
		withdrawn.Reply.Abandon()
	case next != nil:
		(*next).Notify(caller, msg)
	default:
		u.Conversation.Notify(caller, msg)
	}
}

// withdrawLocked takes a request back that nobody serves yet.
func (u *undecided) withdrawLocked(caller downstream.Caller, id jsonrpc.ID) *entrusted {
	for i, e := range u.held {
		if e.isOf(caller, id) {
			u.held = append(u.held[:i:i], u.held[i+1:]...)
			return e
		}
	}
	return nil
}

// Answer implements downstream.Conversation. What the bridge asked it knows itself.
func (u *undecided) Answer(caller downstream.Caller, msg jsonrpc.Message) error {
	err := u.Conversation.Answer(caller, msg)
	if server := u.server.Load(); server != nil && errors.Is(err, downstream.ErrNotHere) {
		return (*server).Answer(caller, msg)
	}
	return err
}

// Close implements downstream.Conversation.
func (u *undecided) Close(cause error) {
	u.dismissed(u)
	u.mu.Lock()
	held, next := u.held, u.next.Load()
	u.held = nil
	if u.closed == nil {
		u.closed = cause
		if cause == nil {
			u.closed = errLegacy
		}
	}
	u.mu.Unlock()
	u.stop()
	end(held, downstream.EndOfCalls(cause, errors.New("the session has ended")))
	u.Conversation.Close(cause)
	if next != nil {
		(*next).Close(cause)
	}
}

// present is who serves the session now.
func (u *undecided) present() downstream.Conversation {
	if next := u.next.Load(); next != nil {
		return *next
	}
	return u.Conversation
}

// Orderly implements downstream.Conversation.
func (u *undecided) Orderly() bool { return u.present().Orderly() }

// Knows implements downstream.Conversation.
func (u *undecided) Knows(caller downstream.Caller, id jsonrpc.ID) bool {
	u.mu.Lock()
	holds := slices.ContainsFunc(u.held, func(e *entrusted) bool { return e.isOf(caller, id) })
	u.mu.Unlock()
	return holds || u.present().Knows(caller, id)
}

// Record implements downstream.Conversation.
func (u *undecided) Record() []byte { return u.present().Record() }

// Watch implements downstream.Conversation.
func (u *undecided) Watch(see func(observe.Flow, downstream.Reply) downstream.Reply) {
	u.present().Watch(see)
}

// StopListening implements downstream.Conversation.
func (u *undecided) StopListening() {
	u.Conversation.StopListening()
	u.present().StopListening()
}

// EndCall implements downstream.Conversation.
func (u *undecided) EndCall(id string) bool { return u.present().EndCall(id) }

// Look implements downstream.Conversation.
func (u *undecided) Look() observe.Conversation { return u.present().Look() }
