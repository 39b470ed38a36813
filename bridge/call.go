package bridge

import (
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	"github.com/mcpbridge/bridge/bridge/catalog"
	"github.com/mcpbridge/bridge/bridge/tasks"
	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/budget"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/mrtr"
	"github.com/mcpbridge/bridge/rawjson"
	"github.com/mcpbridge/bridge/translate"
	"github.com/mcpbridge/bridge/upstream"
)

// call is one client request from its arrival to its one end. Its flow decides,
// the call carries out:
//
//	event ──▶ decide, under mu ──▶ effects, in order ──▶ carry out, without mu
//	   ▲                      └──▶ the next upstream request, by whoever stepped
//	   └──────── its outcome ──────────────┘
//
// What goes to the client is an effect (outbox.go): a client that reads slowly holds
// up the effects behind it, and no lock. All else that an event leads to is done
// under mu, since none of it waits: the timer, the cancellation of the request in
// flight, the tables of the conversation.
//
// Its states are those of the flow. While Sending, the request in flight belongs to
// the goroutine that steps; in the other states none does, and the call is data and
// a timer. A call is in the tables of its conversation from start to its end.
//
// Here are its steps, their effects (outbox.go) and its clock (timer.go). The rest is
// done by its parts: an asker asks, saving keeps it beyond the process, a round is its
// request in flight, a serverTask what the server has made of that, an ending words how
// it ends, and a reporter tells who watches.
type call struct {
	conv   *conversation
	out    downstream.Reply
	task   *tasks.Task // behind which it runs, and its out; nil for most
	kept   *keptCall   // its out, when it may outlive its request; nil for most
	roots  []byte      // of the configuration for this request; nil: none
	serial uint64
	name   []byte        // raw, of the tool or prompt
	slot   *catalog.Slot // of the result; nil where it is not to be kept

	held held

	mu        sync.Mutex
	flow      mrtr.Flow         // what stands before its state in the struct never changes, and needs no lock
	caller    downstream.Caller // with the newest credentials of the principal
	token     []byte            // of progress in the round in flight, as told upstream
	suspended bool              // it is in the conversation's LRU, unless it was evicted
	timer     *timer            // nil before the first request
	ctx       *roundContext     // of the request in flight; nil before the first
	first     roundContext      // that of the first request, which is the only one of most calls
	outbox    outbox
	asking    asker
	saving    saving
}

func (c *conversation) newCall(caller downstream.Caller, req downstream.Request, out downstream.Reply) *call {
	k := &call{conv: c, name: req.Name, caller: caller, out: out, serial: c.b.serial.Add(1)}
	k.held.hold = budget.On(c.account)
	k.flow = mrtr.Flow{
		ID: req.ID, Method: req.Method, Params: req.Params, Principal: caller.Principal, Limits: &c.b.flows, Home: mrtr.Address{Session: caller.Session},
		ListsAsk: c.b.opt.Draft != nil && c.b.opt.Draft(), TasksDeclared: c.server.Tasks && req.Method == mcp.MethodToolsCall,
	}
	k.flow.Capabilities, k.flow.Level = c.declares()
	if out.Interactive() {
		k.flow.Progress.Token = req.ProgressToken
	} else { // nothing can reach the client before the response
		k.flow.Capabilities, k.flow.Level = emptyObject, ""
	}
	k.asking = asker{call: k, own: k.flow.Capabilities}
	k.saving = saving{call: k, safe: out.Safe()}
	if room := c.asks(); room != nil {
		k.roots = room.Roots(caller.Header)
		k.flow.Capabilities = c.b.catalog.Share(room.Capabilities(k.asking.own, k.asking.reach()))
	}
	if k.flow.TasksDeclared {
		k.flow.Capabilities = translate.WithTasks(k.flow.Capabilities)
	}
	return k
}

// start registers the call, for a cancellation to find, and makes its requests. It
// returns when the call is over or waits.
func (k *call) start() {
	if !k.conv.enter(k) { // over before it began
		k.out.Abandon()
		return
	}
	k.drive(mrtr.Started())
}

// drive takes an event, and makes upstream requests for as long as the flow wants
// them.
func (k *call) drive(ev mrtr.Event) { k.goOn(k.step(ev, nil)) }

// resume is drive for callers that must not wait for the upstream: the client's
// POST with the answer gets its 202 at once.
func (k *call) resume(ev mrtr.Event) {
	if next := k.step(ev, nil); next != nil {
		k.out.Continue(func() { k.goOn(next) })
	}
}

// goOn makes an upstream request and those that its outcome leads to. A fault of one
// call ends that call and nothing else.
func (k *call) goOn(next roundTrip) {
	defer k.survive()
	for next != nil {
		ev, answer := next(k)
		next = k.step(ev, answer)
	}
}

// step takes one event, carries out what follows from it, and returns the upstream
// request to make next, if any. It uses answer up.
func (k *call) step(ev mrtr.Event, answer *upstream.Answer) roundTrip {
	d := k.decide(ev, answer)
	if d.kept != nil && !k.saving.keep(d.kept) {
		return nil
	}
	if d.cancelled { // which counts before its 202, whoever tells the client
		k.saving.safe.Drop()
	}
	k.carryOut(d.effects)
	if d.evicted != nil {
		d.evicted.resume(mrtr.Failed(&mrtr.LimitReached{Limit: "limits.flows", Value: k.conv.b.limits.FlowsPerSession}))
	}
	return d.next
}

// decision is what came of one event.
type decision struct {
	next    roundTrip // to be made
	effects *[]effect // to be carried out by whoever decided; nil: none, or somebody else is at it
	evicted *call     // had to make room for this one

	kept      *downstream.Kept // to be kept before anything else
	cancelled bool             // what was kept is to be removed

	answer    *upstream.Answer // that the event is part of; nil when an effect has taken it
	suspended bool             // the flow waits for somebody
}

// decide is the part of a step that needs the lock. It never waits.
func (k *call) decide(ev mrtr.Event, answer *upstream.Answer) (d decision) {
	k.mu.Lock()
	defer k.mu.Unlock()
	defer func() {
		if v := recover(); v != nil {
			d = decision{}
			k.crashLocked(v)
		}
		d.effects = k.outbox.claimLocked()
	}()
	d.answer = answer
	k.feedLocked(ev, &d)
	d.answer.Release()
	k.saving.recordLocked(&ev, &d)
	return d
}

// feedLocked feeds an event to the flow, and those that it leads to at once.
func (k *call) feedLocked(ev mrtr.Event, d *decision) {
	at := mrtr.Moment{Now: time.Now(), Luck: rand.Float64()}
	var space [2]mrtr.Event
	for events := append(space[:0], ev); len(events) > 0; events = events[1:] {
		act := k.flow.Step(events[0], at)
		events = append(events, k.applyLocked(&act, d)...)
	}
	if k.flow.Over() {
		k.endLocked(d)
		return
	}
	if waits := k.flow.State != mrtr.Sending; waits && (d.suspended || !k.suspended && k.flow.State != mrtr.Admitted) {
		k.suspendLocked(d)
	}
	k.armLocked(at.Now)
}

// applyLocked turns an action into effects and the next request, and returns events
// that it leads to.
func (k *call) applyLocked(act *mrtr.Action, d *decision) []mrtr.Event {
	k.asking.withdrawLocked(act)
	k.asking.tellLocked(act)
	if err := k.held.waits(act.Do, &k.flow, k.task != nil); err != nil {
		return []mrtr.Event{mrtr.Failed(err)}
	}
	switch act.Do {
	case mrtr.Send:
		k.resumedLocked()
		k.beginRequestLocked()
		d.next = sendRound
	case mrtr.Fetch:
		k.beginRequestLocked()
		d.next = fetchTask
	case mrtr.Wait:
		d.suspended = true
	case mrtr.Poll:
		k.ctx.cancel() // of the request that told of the task: now it is over
		d.suspended = true
		return k.asking.askLocked(act.Ask)
	case mrtr.Ask:
		d.suspended = true
		return k.asking.askLocked(act.Ask)
	case mrtr.Update:
		serverTask{k}.update(act.Key)
		return k.asking.askLocked(act.Ask)
	case mrtr.Deliver, mrtr.Fail, mrtr.Stop:
		k.outbox.addLocked(lastWord(act, d))
		if act.Task != nil {
			serverTask{k}.cancel(act.Task)
		}
	}
	return nil
}

// beginRequestLocked makes the context of an upstream request, for a cancellation to
// find. It descends from nothing: neither the client's HTTP request (E-12) nor the
// process, whose end closes every session and so every call.
func (k *call) beginRequestLocked() {
	if k.ctx == nil {
		k.ctx = &k.first
	} else {
		k.ctx = &roundContext{}
	}
}

// suspendLocked puts the call into the session's LRU. A call that must make room is
// ended after the step.
func (k *call) suspendLocked(d *decision) {
	k.caller.Header = nil // a whole request's headers, for as long as a person thinks
	k.suspended = true
	d.evicted = k.conv.suspend(k)
}

func (k *call) resumedLocked() {
	if k.suspended {
		k.suspended = false
		k.conv.resumed(k)
	}
}

// endLocked releases what the call holds. Its last word is in the outbox. It is
// idempotent.
func (k *call) endLocked(d *decision) {
	d.next = nil
	if k.ctx != nil {
		k.ctx.cancel() // closing the response stream cancels the call upstream (E-37)
	}
	k.disarmLocked()
	k.conv.exit(k)
}

// of reports whether caller may answer and cancel the call: it acts for whom the
// call was made, or for somebody where nobody was known (D-I11).
func (k *call) of(caller downstream.Caller) bool {
	return k.flow.Principal == caller.Principal || k.flow.Principal == ""
}

// id is the call's name in log lines.
func (k *call) id() string { return "f" + strconv.FormatUint(k.serial, 10) }

// renew notes the newest credentials of the principal (H-2).
func (k *call) renew(caller downstream.Caller) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.caller = caller
}

// goesBy returns the id of the request that waits for the call; empty: none does.
func (k *call) goesBy() jsonrpc.ID {
	if k.kept == nil {
		return k.flow.ID
	}
	k.kept.mu.Lock()
	defer k.kept.mu.Unlock()
	if k.kept.out == nil {
		return ""
	}
	return k.kept.id
}

// elicitationOver tells the client, if the id is one of this call's.
func (k *call) elicitationOver(params []byte) {
	id, _ := rawjson.Text(rawjson.Get(params, "elicitationId"))
	k.step(mrtr.Announced(id), nil)
}
