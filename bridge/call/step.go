package call

import (
	"math/rand/v2"
	"runtime/debug"
	"time"

	"github.com/mcpbridge/bridge/bridge/ends"
	"github.com/mcpbridge/bridge/bridge/flight"
	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/logfield"
	"github.com/mcpbridge/bridge/mrtr"
	"github.com/mcpbridge/bridge/upstream"
)

// Drive takes an event, and makes upstream requests for as long as the flow wants
// them.
func (k *Call) Drive(ev mrtr.Event) { k.goOn(k.step(ev, nil)) }

// Resume is Drive for callers that must not wait for the upstream: the client's
// POST with the answer gets its 202 at once.
func (k *Call) Resume(ev mrtr.Event) {
	if next := k.step(ev, nil); next != nil {
		k.out.Continue(func() { k.goOn(next) })
	}
}

// goOn makes an upstream request and those that its outcome leads to. A fault of one
// call ends that call and nothing else.
func (k *Call) goOn(next roundTrip) {
	defer k.survive()
	for next != nil {
		ev, answer := next(k)
		next = k.step(ev, answer)
	}
}

// step takes one event, carries out what follows from it, and returns the upstream
// request to make next, if any. It uses answer up.
func (k *Call) step(ev mrtr.Event, answer *upstream.Answer) roundTrip {
	d := k.decide(ev, answer)
	if d.checkpoint != nil && !k.saving.save(&d) {
		speaker{k}.leave(d.effects)
		return nil
	}
	if d.cancelled { // which counts before its 202, whoever tells the client
		k.saving.to.Drop()
	}
	for _, send := range d.updates {
		send()
	}
	speaker{k}.carryOut(d.effects)
	if d.evicted != nil {
		d.evicted.Resume(mrtr.Failed(&mrtr.LimitReached{Limit: "limits.flows", Value: k.client.Driver.Waiting}))
	}
	return d.next
}

// decision is what came of one event.
type decision struct {
	next    roundTrip // to be made
	effects *[]effect // to be carried out by whoever decided; nil: none, or somebody else is at it
	evicted *Call     // had to make room for this one

	checkpoint *downstream.Checkpoint // to be kept before anything else
	departs    bool                   // it says that a request leaves, which does not before
	cancelled  bool                   // what was kept is to be removed
	updates    []func()               // send answers to the server's task, once they are kept

	answer    *upstream.Answer // that the event is part of; nil when an effect has taken it
	suspended bool             // the flow waits for somebody
}

// decide is the part of a step that needs the lock. It never waits.
func (k *Call) decide(ev mrtr.Event, answer *upstream.Answer) (d decision) {
	k.mu.Lock()
	defer k.mu.Unlock()
	defer func() {
		if v := recover(); v != nil {
			d = decision{}
			k.crashLocked(v)
		}
		d.effects = k.outbox.claimLocked()
	}()
	if k.holdLocked(&ev) {
		return d // and the answer is kept, which the event is part of
	}
	d.answer = answer
	k.feedLocked(ev, &d)
	d.answer.Release()
	k.saving.recordLocked(&ev, &d)
	return d
}

// holdLocked keeps what was learnt of the server's task for the same call again, and reports whether
// no request waits for it.
func (k *Call) holdLocked(ev *mrtr.Event) bool {
	if k.repeatable == nil {
		return false
	}
	later, ok := ev.Look()
	return ok && k.repeatable.Hold(later)
}

// feedLocked feeds an event to the flow, and those that it leads to at once.
func (k *Call) feedLocked(ev mrtr.Event, d *decision) {
	at := mrtr.Moment{Now: time.Now(), Luck: rand.Float64()}
	var space [2]mrtr.Event
	for events := append(space[:0], ev); len(events) > 0; events = events[1:] {
		resent, stateOnly := k.flow.Resent, k.flow.StateOnly
		act := k.flow.Step(events[0], at)
		reporter{k}.repeatedLocked(resent, stateOnly)
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

// causeLocked is why a call ends before its time, and says of one that is more than asked for at its server, or may be, that nobody
// knows what became of it.
func (k *Call) causeLocked(cause error) error {
	if k.flow.State == mrtr.Admitted || k.flow.State == mrtr.Gathering {
		return cause
	}
	return downstream.Unknown(cause)
}

// applyLocked turns an action into effects and the next request, and returns events
// that it leads to.
func (k *Call) applyLocked(act *mrtr.Action, d *decision) []mrtr.Event {
	k.asking.withdrawLocked(act)
	k.asking.tellLocked(act)
	if k.flow.Waits() { // for as long as a person thinks: no longer with a whole request's headers
		k.noteHeaderLocked()
		k.caller.Header = nil
	}
	if err := k.held.Waits(&k.flow, k.besidesLocked()); err != nil {
		return []mrtr.Event{mrtr.Failed(err)}
	}
	if k.concluded && act.Do > mrtr.Tell && !k.flow.Over() { // whatever it wants to go on with
		return []mrtr.Event{mrtr.Failed(k.causeLocked(downstream.ErrOutdated))}
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
		k.ctx.Cancel() // of the request that told of the task: now it is over
		d.suspended = true
		return k.asking.askLocked(act.Ask)
	case mrtr.Ask:
		d.suspended = true
		return k.asking.askLocked(act.Ask)
	case mrtr.Update:
		d.updates = append(d.updates, serverTask{k}.updateLocked(act.Key, false, k.Drive))
		return k.asking.askLocked(act.Ask)
	case mrtr.Deliver, mrtr.Fail, mrtr.Stop:
		k.outbox.addLocked(lastWord(act, d))
		if act.Task != nil {
			serverTask{k}.cancelLocked(act.Task)
		}
	}
	return nil
}

// beginRequestLocked makes the context of an upstream request, for a cancellation to
// find. It descends from nothing: neither the client's HTTP request (E-12) nor the
// process, whose end closes every session and so every call.
func (k *Call) beginRequestLocked() {
	if k.ctx == nil {
		k.ctx = &k.first
	} else {
		k.ctx = &flight.Context{}
	}
}

// suspendLocked puts the call into the session's LRU. A call that must make room is
// ended after the step.
func (k *Call) suspendLocked(d *decision) {
	k.suspended = true
	d.evicted = k.client.Tables.Suspend(k)
}

func (k *Call) resumedLocked() {
	if k.suspended {
		k.suspended = false
		k.client.Tables.Resumed(k)
	}
}

// endLocked releases what the call holds. Its last word is in the outbox. It is
// idempotent.
func (k *Call) endLocked(d *decision) {
	d.next = nil
	if k.ctx != nil {
		k.ctx.Cancel() // closing the response stream cancels the call upstream (E-37)
	}
	k.disarmLocked()
	k.client.Tables.Exit(k)
}

// ElicitationOver tells the client, if the id is one of this call's.
func (k *Call) ElicitationOver(id string) { k.step(mrtr.Announced(id), nil) }

func (t *timer) ring() {
	if k := t.call.Load(); k != nil {
		k.tick()
	}
}

// armLocked sets the timer to whatever is due first.
func (k *Call) armLocked(now time.Time) {
	if k.flow.State == mrtr.Admitted {
		return // nothing is due before it starts
	}
	wait := k.flow.Clock.Next().Sub(now)
	if k.timer != nil {
		k.timer.runtime.Reset(wait)
		return
	}
	if t, ok := k.client.Driver.timers.Get().(*timer); ok {
		k.timer = t
		t.call.Store(k)
		t.runtime.Reset(wait)
		return
	}
	k.timer = new(timer)
	k.timer.call.Store(k)
	k.timer.runtime = time.AfterFunc(wait, k.timer.ring)
}

// disarmLocked stops the timer for good, and leaves it to the next call.
func (k *Call) disarmLocked() {
	if k.timer == nil {
		return
	}
	k.timer.call.Store(nil)
	if k.timer.runtime.Stop() { // else it may be ringing
		k.client.Driver.timers.Put(k.timer)
	}
	k.timer = nil
}

// tick runs in the timer's own goroutine.
func (k *Call) tick() {
	defer k.survive()
	if k.pauses() {
		return
	}
	k.Drive(mrtr.Tick(!k.looks() || k.out.Reachable()))
}

// pauses reports whether nothing is due because no request waits for the call: but for
// its end, its clock goes on with the next request. That the time of its question is over is told at once. A look at the server's task that was under way
// takes no longer than a round: then it is made anew.
func (k *Call) pauses() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	at := mrtr.Moment{Now: time.Now()}
	left := k.flow.Clock.Deadline.Sub(at.Now)
	if k.repeatable == nil || k.timer == nil || left <= 0 || k.flow.Over() || k.repeatable.Waits() {
		return false
	}
	if by := k.flow.Clock.AnswerBy; at.Now.Before(by) {
		left = min(left, by.Sub(at.Now))
	} else if !by.IsZero() {
		reporter{k}.reportOverdueLocked()
	}
	if task := k.flow.Task; task != nil && task.Fetching {
		if due := k.flow.Clock.Due.Sub(at.Now); due > 0 {
			left = min(left, due)
		} else {
			k.flow.Step(mrtr.Lost(nil), at) // which asks nothing: what can be asked was, by the step that made it so
			k.ctx.Cancel()
		}
	}
	k.timer.runtime.Reset(left)
	return true
}

// looks reports whether it is time to look whether the client is there.
func (k *Call) looks() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	look := k.flow.Clock.Look
	return !look.IsZero() && !time.Now().Before(look)
}

// lastWord is the effect that ends the call. It takes the answer that the end came
// with.
func lastWord(act *mrtr.Action, d *decision) effect {
	e := effect{do: act.Do, err: act.Err, answer: d.answer}
	if d.answer != nil {
		e.result, d.answer = d.answer.Result, nil
	}
	if act.Result != nil {
		e.result = act.Result
	}
	return e
}

// survive ends a call that panicked, and nothing but that call. It must be deferred
// itself.
func (k *Call) survive() {
	if v := recover(); v != nil {
		k.crash(v)
	}
}

func (k *Call) crash(v any) {
	k.mu.Lock()
	k.crashLocked(v)
	claimed := k.outbox.claimLocked()
	k.mu.Unlock()
	speaker{k}.carryOut(claimed)
}

// crashLocked ends the call after a panic: with an error, unless the client has had
// another last word.
func (k *Call) crashLocked(v any) {
	k.client.Driver.Log.Error().Interface("panic", v).Bytes("stack", debug.Stack()).Str(logfield.Method, k.flow.Method).Msg("request failed")
	if k.flow.Over() { // while the last word was being said
		k.outbox.addLocked(effect{do: mrtr.Fail, err: ends.ErrFault, again: true})
		return
	}
	k.feedLocked(mrtr.Failed(ends.ErrFault), &decision{})
}
