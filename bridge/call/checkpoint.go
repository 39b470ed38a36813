package call

import (
	"errors"
	"time"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/budget"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mrtr"
	"github.com/mcpbridge/bridge/upstream"
)

// spare is how long a record outlives the call's own deadline: longer than it is tried to bring the call back, which has
// a last word where that fails (legacy/session).
const spare = 3 * time.Minute

// recordLocked makes the record that is to be kept after a step: with each question that
// the step puts, or at once after an answer. And before a request leaves that the store has as one that has not: whoever
// went on with the call would send it a second time (D-15).
func (k *saving) recordLocked(ev *mrtr.Event, d *decision) {
	if k.to == nil {
		return
	}
	if k.flow.Over() {
		d.cancelled = k.saves > 0 && k.flow.State == mrtr.Silent && !k.left.Load()
		return
	}
	var record *downstream.Checkpoint
	if k.outbox.waiting != nil {
		for i := range *k.outbox.waiting {
			if e := &(*k.outbox.waiting)[i]; e.question && e.checkpoint == nil {
				if record == nil {
					record = k.encodeLocked()
				}
				one := *record
				one.Message, one.Over = &e.msg, k.isOver
				e.checkpoint = &one
			}
		}
	}
	d.departs = d.next != nil && k.unsent && !k.flow.Repeatable && k.flow.State == mrtr.Sending && !ev.Settles()
	if k.saves > 0 && ev.Settles() || d.departs {
		d.checkpoint = record
		if record == nil {
			d.checkpoint = k.encodeLocked()
		}
	}
	if d.departs { // no client waits to be told that it was not kept
		d.checkpoint.Again, d.checkpoint.Over = true, k.isOver
	}
}

// isOver reports whether the call has ended: nobody needs its question any more.
func (k *saving) isOver() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.flow.Over()
}

// encodeLocked returns the call as it is now.
func (k *saving) encodeLocked() *downstream.Checkpoint {
	k.saves++
	k.unsent = k.flow.State != mrtr.Sending
	k.told = k.flow.Progress.Last
	k.noteHeaderLocked()
	k.flow.Repeatable = repeatableLocked(k.Call, k.headerLocked())
	checkpoint := &downstream.Checkpoint{Request: k.flow.ID, N: k.saves, TTL: time.Until(k.flow.Clock.Deadline) + spare, Owed: k.flow.Owes()}
	checkpoint.Record, _ = k.flow.Encode() // it is strings, numbers and times
	for _, in := range k.flow.Outstanding() {
		if in.ServerRequestID != "" {
			checkpoint.Open = append(checkpoint.Open, jsonrpc.ID(in.ServerRequestID))
		}
	}
	return checkpoint
}

// errUnsaved ends a call whose question could not be kept: sent all the same, it might be
// answered in vain.
var errUnsaved = errors.New("the bridge could not keep the call while it waits for the client: its store of sessions fails")

// tell sends a message, after what is to be kept before.
func (k *saving) tell(e *effect) {
	if e.checkpoint == nil {
		if !e.withdraws || k.isHeard() {
			k.Reply().Send(e.msg)
		}
		return
	}
	err := k.to.Save(*e.checkpoint)
	if err == nil {
		return
	}
	if errors.Is(err, downstream.ErrGone) {
		k.notKept()
		k.leave()
	} else if budget.Short(err) || errors.Is(err, budget.ErrNoRoom) {
		k.refuse(e.msg.ID)
		k.Drive(mrtr.Failed(err))
	} else {
		k.client.Driver.Log.Error().Err(err).Msg("a question cannot be kept")
		k.notKept()
		k.Drive(mrtr.Failed(errUnsaved))
	}
}

// refuse notes that a question was not sent: there is nothing to withdraw.
func (k *saving) refuse(question jsonrpc.ID) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.refused = string(question)
}

func (k *saving) notKept() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.unsaved = true
}

// isHeard reports whether the client may be told more than the end. The call may have ended while
// the store was to take its question: the notice that withdraws that is in the outbox then.
func (k *saving) isHeard() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return !k.unsaved
}

// save saves what has an answer, or is to be sent. It returns false when another process goes on with the call, or the answer
// is not kept: then it is none (downstream.Checkpointer). A request whose sending cannot be noted is not sent: it waits, as at
// a server that is away.
func (k *saving) save(d *decision) bool {
	err := k.to.Save(*d.checkpoint)
	switch {
	case err == nil:
	case d.departs && !errors.Is(err, downstream.ErrGone):
		d.next = holdBack
		k.stillUnsent()
	default:
		k.leave()
		return false
	}
	return true
}

// stillUnsent notes that the store may have what it had before.
func (k *saving) stillUnsent() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.unsent = true
}

// errUnnoted ends a call whose request could not leave for as long as the outage of a server may last.
var errUnnoted = errors.New("the bridge could not note that the request of this call leaves: its store of sessions fails; nothing was sent")

// holdBack is the round trip of a request that does not leave.
func holdBack(k *Call) (mrtr.Event, *upstream.Answer) {
	k.mu.Lock()
	ctx := k.ctx
	k.mu.Unlock()
	ctx.Cancel()
	return mrtr.Unsent(errUnnoted), nil
}

// leave ends the call in this process and leaves it to another one.
func (k *saving) leave() {
	k.left.Store(true)
	k.mu.Lock()
	over := k.flow.Over()
	if !over {
		k.leaveLocked()
	}
	k.mu.Unlock()
	if !over {
		k.held.End()
		k.to.Leave()
	}
}

func (k *saving) leaveLocked() {
	act := k.flow.Step(mrtr.Cancelled(), mrtr.Moment{Now: time.Now()})
	for _, in := range act.Withdraw {
		k.client.Tables.Drop(jsonrpc.ID(in.ServerRequestID))
	}
	k.endLocked(&decision{})
}

// waitsElsewhere leaves a call that waits for its client, and is kept, to another process.
func (k *saving) waitsElsewhere() bool { return k.goesElsewhere(k.waitsKeptLocked) }

// repeatsElsewhere leaves a call that is kept to another process which sends its request again.
func (k *saving) repeatsElsewhere() bool { return k.goesElsewhere(k.mayRepeatLocked) }

func (k *saving) mayRepeatLocked() bool {
	return k.saves > 0 && !k.unsaved && k.flow.State == mrtr.Sending && !k.outbox.busy && k.outbox.waiting == nil &&
		repeatableLocked(k.Call, k.headerLocked())
}

// goesElsewhere leaves the call to another process if it may.
func (k *saving) goesElsewhere(mayLocked func() bool) bool {
	var last *downstream.Checkpoint
	k.mu.Lock()
	goes := mayLocked()
	if goes { // at once: an answer that comes now is for whoever goes on
		if k.flow.State == mrtr.Pausing {
			last = k.encodeLocked()
		}
		k.left.Store(true)
		k.leaveLocked()
	}
	k.mu.Unlock()
	if last != nil {
		k.keepUnsent(last)
	}
	if goes {
		k.held.End()
		k.to.Leave()
	}
	return goes
}

// keepUnsent keeps a call that waits until its request can be sent. The store has it with its answers, as one whose
// request is at the server: nobody would dare to send that. If this fails that is what remains (D-15).
func (k *saving) keepUnsent(last *downstream.Checkpoint) {
	last.Again, last.Over = true, func() bool { return true } // a store that does not take it is not waited for
	if err := k.to.Save(*last); err != nil && !errors.Is(err, downstream.ErrGone) {
		k.client.Driver.Log.Warn().Msg("a call that waits for its server cannot be kept as one: whoever goes on with it takes its request for sent")
	}
}

// refresh keeps the call as it is, whatever it is at, or learns that another process has it. While the
// server works on it, too: the client is elsewhere by then, has perhaps cancelled it there, or been told that
// nobody knows what comes of this round.
func (k *saving) refresh() {
	checkpoint, unsent := k.asItIs()
	if checkpoint == nil {
		return
	}
	if err := k.to.Save(*checkpoint); errors.Is(err, downstream.ErrGone) {
		k.leave()
	} else if err != nil && unsent {
		k.stillUnsent()
	}
}

// noteTaken keeps that the server has taken an answer. A store that does not take that at once is not waited for: the client's next
// answer would wait behind it for as long, and without it whoever goes on sends the first one again.
func (k *saving) noteTaken() {
	if checkpoint, _ := k.asItIs(); checkpoint != nil {
		checkpoint.Over = func() bool { return true }
		_ = k.to.Save(*checkpoint)
	}
}

// asItIs returns what is to be kept of a call that was kept before, and whether the store had it as one whose request is not at the
// server; nil: nothing.
func (k *saving) asItIs() (checkpoint *downstream.Checkpoint, unsent bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	unsent = k.unsent
	if k.saves > 0 && !k.flow.Over() {
		checkpoint = k.encodeLocked()
		checkpoint.Again, checkpoint.Over = true, k.isOver
	}
	return checkpoint, unsent
}

func (k *saving) waitsKeptLocked() bool {
	// What is still to be said may be the question itself, which is kept as it leaves.
	return k.saves > 0 && k.suspended && !k.flow.Over() && k.flow.State != mrtr.Sending && !k.outbox.busy && k.outbox.waiting == nil
}

func (k *saving) record() []byte {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.task != nil || k.flow.Over() || k.flow.State == mrtr.Admitted {
		return nil
	}
	k.noteHeaderLocked()
	stored, err := k.flow.Encode()
	if err != nil {
		panic(err) // nothing in it can fail
	}
	return stored
}

// interrupted is the event of a call that is taken over, which nobody else knows yet. If it had a request in
// flight, what that did is unknown (D-15).
func (k *saving) interrupted() mrtr.Event {
	lost := &upstream.Failure{Cause: upstream.Lost, Sent: true,
		Detail: "the bridge was interrupted while the server worked on this call; whether it was done is unknown"}
	switch {
	case k.flow.State == mrtr.Sending && !repeatableLocked(k.Call, k.caller.Header):
		return mrtr.Failed(lost)
	case !time.Now().Before(k.flow.Clock.Deadline): // nothing is sent only to be cut off
		return mrtr.Tick(true)
	}
	return mrtr.Lost(lost)
}

// idleUntil returns when something is due to a call that does nothing but wait for its
// client's answers.
func (k *saving) idleUntil() (due time.Time, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.waitsKeptLocked() || k.flow.State != mrtr.Gathering || len(k.asking.tickets) > 0 {
		return due, false
	}
	return k.flow.Clock.Unattended(), true
}

// unload leaves the call to the store. Heartbeats are not kept each; progress that its
// client was told since must not come again (C-4).
func (k *saving) unload() {
	k.mu.Lock()
	var checkpoint *downstream.Checkpoint
	if k.waitsKeptLocked() && k.told != k.flow.Progress.Last {
		checkpoint = k.encodeLocked()
		checkpoint.Aside = true
	}
	k.mu.Unlock()
	if checkpoint != nil {
		if err := k.to.Save(*checkpoint); errors.Is(err, downstream.ErrGone) {
			k.leave()
			return
		} else if err != nil {
			return // it stays
		}
	}
	k.waitsElsewhere()
}
