package call

import (
	"crypto/sha256"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpbridge/bridge/ask"
	"github.com/mcpbridge/bridge/bridge/again"
	"github.com/mcpbridge/bridge/bridge/catalog"
	"github.com/mcpbridge/bridge/bridge/flight"
	"github.com/mcpbridge/bridge/bridge/tasks"
	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/hop"
	"github.com/mcpbridge/bridge/internal/inorder"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/mrtr"
	"github.com/mcpbridge/bridge/observe"
)

// Call is one client request from its arrival to its one end. Its flow decides,
// the call carries out:
//
//	event ──▶ decide, under mu ──▶ effects, in order ──▶ carry out, without mu
//	   ▲                      └──▶ the next upstream request, by whoever stepped
//	   └──────── its outcome ──────────────┘
//
// What goes to the client is an effect (outbox.go): a client that reads slowly holds
// up the effects behind it, and no lock. All else that an event leads to is done
// under mu, since none of it waits: the timer, the cancellation of the request in
// flight, the tables of the session.
//
// Its states are those of the flow, and only an event changes them: whoever has one takes
// mu, feeds it (feedLocked), and lets go.
//
//	admitted ──Start──▶ sending ◀──────────────────┐
//	                       │ the server wants       │ answers, a pause's end,
//	                       │ input, time or a task  │ the task's
//	                       ▼                        │
//	             gathering, pausing, polling ───────┘
//	                       │
//	     any of these ─────┴──▶ over: one last word is in the outbox, or none was wanted
//	                       └──▶ left: kept, and another process goes on with it
//
// While sending, the request in flight belongs to the goroutine that steps; in the other
// states none does, and the call is data and a timer. It is in the tables of its
// session from Start to its end.
//
// Here are what it is and its timer; its steps are in step.go, their effects in outbox.go,
// what a session does to it in begin.go. The rest is done by its parts: a speaker
// carries effects out, an asker asks, saving keeps it beyond the process, a round is its request in flight, a
// serverTask what the server has made of that, an ending words how it ends, and a reporter
// tells who watches.
type Call struct {
	client     *Client
	out        downstream.Reply
	task       *tasks.Task  // behind which it runs, and its out; nil for most
	repeatable *again.Reply // its out, when it may outlive its request; nil for most
	roots      []byte       // of the configuration for this request; nil: none
	serial     uint64
	link       *inorder.Link // its place among the requests of its connection
	name       []byte        // raw, of the tool or prompt
	slot       *catalog.Slot // of the result; nil where it is not to be kept

	held     flight.Held
	overhead flight.Overhead // of whoever works at it: only one does

	mu        sync.Mutex
	flow      mrtr.Flow                        // what stands before its state in the struct never changes, and needs no lock
	seen      atomic.Pointer[downstream.Reply] // its out for whoever began to look after it began; nil: nobody. It needs no lock
	caller    downstream.Caller                // with the newest credentials of the principal
	before    string                           // the authorization that the caller's has replaced; empty: none
	token     []byte                           // of progress in the round in flight, as told upstream
	left      atomic.Bool                      // to another process; needs no lock
	http      observe.HTTP                     // in which it came; never changes, and stands where a byte is free
	apart     bool                             // nobody else holds its params any more; never changes
	concluded bool                             // nothing of it goes to the server any more
	suspended bool                             // it is in the session's LRU, unless it was evicted
	silences  uint8                            // how often nobody answered in time; 255: or more
	timer     *timer                           // nil before the first request
	ctx       *flight.Context                  // of the request in flight; nil before the first
	first     flight.Context                   // that of the first request, which is the only one of most calls
	outbox    outbox
	asking    asker
	saving    saving
}

// Of reports whether caller may answer and cancel the call: it acts for whom the
// call was made, or for somebody where nobody was known (D-I11).
func (k *Call) Of(caller downstream.Caller) bool {
	return caller.Owns(k.flow.Principal)
}

// By implements again.Flow: many people may stand behind one principal.
func (k *Call) By(caller downstream.Caller) bool {
	return k.Of(caller) && k.Person() == hop.Person("", caller.Header)
}

// Person implements again.Flow.
func (k *Call) Person() string { return k.person("") }

// person names who made the call, among those behind a principal.
func (k *Call) person(principal string) string {
	k.mu.Lock()
	header := k.headerLocked()
	k.mu.Unlock()
	return hop.Person(principal, header)
}

// Unproven reports whether who made the call has brought no credentials that its session
// is bound to. Whoever asks holds the call's lock.
func (k *Call) Unproven() bool { return k.caller.Unproven }

// session is the call's, as it is to who makes the call.
func (k *Call) session() Session {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.sessionLocked()
}

func (k *Call) sessionLocked() Session {
	if k.caller.Unproven {
		return k.client.Session.Visitors()
	}
	return k.client.Session
}

// audienceLocked names for whom a request of the call with these headers is: what the server says of tools it says
// to them. Who may know no more than the session's id is nobody of its audience.
func (k *Call) audienceLocked(header http.Header) string {
	principal := k.client.Principal
	if k.caller.Unproven {
		sum := sha256.Sum256([]byte(k.caller.Authorization))
		principal = "unproven " + string(sum[:])
	}
	return hop.Audience(principal, header)
}

// Reply is where what the call says goes. As what a request upstream is made for it
// implements downstream.Origin.
func (k *Call) Reply() downstream.Reply {
	if seen := k.seen.Load(); seen != nil {
		return *seen
	}
	return k.out
}

// Watch has what the call says from now on go through what see returns; nil: as before.
// served is that of Sight.
func (k *Call) Watch(served mcp.InputKindSet, see func(observe.Flow, downstream.Reply) downstream.Reply) {
	flow, alive := k.Sight(served)
	if !alive {
		return
	}
	if out := see(flow, k.Reply()); out != nil {
		k.seen.Store(&out)
	}
}

// Name is the call's name in log lines.
func (k *Call) Name() string { return observe.CallID(k.serial) }

// asker is the part of a call that asks: its client, or somebody else (elsewhere.go,
// invite.go). Its fields are guarded by the call's lock.
type asker struct {
	*Call
	declared []byte              // capabilities of the client itself; others are served elsewhere
	tickets  map[string]*inquiry // of input requests asked elsewhere, by key; nil until there is one
}

// inquiry is an input request that somebody else than the client is asked.
type inquiry struct {
	ask.Ticket
	kind     observe.Kind
	reported bool // what became of it was told to who watches
	answered bool
}

// This file keeps calls that wait for their client, and goes on with those of another
// process. What a client may rely on is kept before it is told: a question with the
// flow before it leaves, an answer before its 202. A call that never asks is never
// kept.

// saving is the part of a call that saves it. Its fields are guarded by the call's lock;
// to never changes.
type saving struct {
	*Call
	to    downstream.Checkpointer // nil: the call ends with the process
	saves uint64                  // records made for it
	told  float64                 // the client's progress in the newest of them
	// unsaved: nobody knows whether the store has the newest of them. The client is told the
	// end and nothing before it: the store may have a question under that event's number.
	unsaved bool
	refused string // the id of a question that was never sent: the store, or memory, has no room for it
	unsent  bool   // the newest of them says that no request is at the server: whoever goes on with it may send one
}

// timer rings for a call whenever its flow's clock says so. It stands between the
// runtime's timer and the call: the runtime may go on holding timers that were
// stopped, thousands of them after a rush, and must not hold calls by them.
type timer struct {
	call    atomic.Pointer[Call] // nil once the call is over
	runtime *time.Timer
}

// noteHeaderLocked has the flow say what the caller's headers tell the server of who it is.
func (k *Call) noteHeaderLocked() {
	if k.caller.Header != nil {
		k.flow.Header = hop.Lasting(k.caller.Header)
	}
}

// headerLocked returns the caller's headers; of a call that has waited those that last.
func (k *Call) headerLocked() http.Header {
	if k.caller.Header != nil {
		return k.caller.Header
	}
	return hop.Lasted(k.flow.Header)
}

// GoesBy returns the id of the request that waits for the call; empty: none does.
func (k *Call) GoesBy() jsonrpc.ID {
	if k.repeatable == nil {
		return k.flow.ID
	}
	return k.repeatable.GoesBy()
}

// besidesLocked is what the call keeps in memory besides its flow, in bytes.
func (k *Call) besidesLocked() (size int) {
	if k.apart {
		size = len(k.flow.Params)
	}
	if k.repeatable != nil {
		size += k.repeatable.Size()
	}
	return size
}

// Size implements again.Flow.
func (k *Call) Size() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.flow.Params) + k.flow.Size()
}
