package bridge

import (
	"sync/atomic"
	"time"

	"github.com/mcpbridge/bridge/mrtr"
	"github.com/mcpbridge/bridge/observe"
)

// A call has one timer for everything that time does to it: the deadline of the
// call, of the round or of the client's answer, the end of a pause, the heartbeat
// while a person decides, and a look at whether the client is still there.

// arm sets the timer to whatever comes first. The caller holds mu.
func (k *call) arm(now time.Time) {
	next := k.due
	if k.deadline.Before(next) {
		next = k.deadline
	}
	for _, also := range [...]time.Time{k.answerBy, k.beat, k.look} {
		if !also.IsZero() && also.Before(next) {
			next = also
		}
	}
	if k.bell == nil {
		k.bell = new(bell)
		k.bell.call.Store(k)
		k.bell.timer = time.AfterFunc(next.Sub(now), k.bell.ring)
		return
	}
	k.bell.timer.Reset(next.Sub(now))
}

// bell stands between a timer and its call: the runtime may go on holding a timer
// that was stopped, thousands of them after a rush, and must not hold calls by it.
type bell struct {
	call  atomic.Pointer[call]
	timer *time.Timer
}

func (b *bell) ring() {
	if k := b.call.Load(); k != nil {
		k.tick()
	}
}

// disarm stops the timer for good. The caller holds mu.
func (k *call) disarm() {
	if k.bell != nil {
		k.bell.timer.Stop()
		k.bell.call.Store(nil)
	}
}

// tick runs in the timer's own goroutine.
func (k *call) tick() {
	now := time.Now()
	k.mu.Lock()
	events := k.expired(now)
	if len(events) == 0 && !k.flow.Over() {
		k.heartbeat(now)
		k.arm(now)
	}
	k.mu.Unlock()
	for _, ev := range events {
		k.drive(ev)
	}
}

// expired returns what time has done to the flow. The caller holds mu.
func (k *call) expired(now time.Time) []mrtr.Event {
	limits := &k.conv.b.limits
	switch {
	case k.flow.Over():
		return nil
	case !now.Before(k.deadline):
		return []mrtr.Event{mrtr.Failed(&mrtr.LimitReached{Limit: "timeouts.flow", Value: limits.Call})}
	case !k.answerBy.IsZero() && !now.Before(k.answerBy):
		return k.unanswered()
	case !now.Before(k.look) && k.deserted(now):
		return []mrtr.Event{mrtr.Failed(&mrtr.LimitReached{Limit: "timeouts.grace", Value: limits.Grace})}
	case now.Before(k.due):
		return nil
	}
	switch k.flow.State {
	case mrtr.Gathering:
		return nil
	case mrtr.Pausing, mrtr.Polling:
		if !k.requesting() {
			k.due = now.Add(limits.Round) // of the request that follows
			return []mrtr.Event{mrtr.Timer()}
		}
	}
	return []mrtr.Event{mrtr.Failed(&mrtr.LimitReached{Limit: "timeouts.round", Value: limits.Round})} // D-T20
}

// requesting reports whether an upstream request is under way. The caller holds mu.
func (k *call) requesting() bool { return k.ctx != nil && k.ctx.Err() == nil }

// deserted looks whether the client can still be reached, and reports that it could
// not the last time either (E-23). The caller holds mu.
func (k *call) deserted(now time.Time) bool {
	before := k.gone
	k.gone = !k.out.Reachable()
	k.look = now.Add(k.conv.b.limits.Grace)
	return before && k.gone
}

// unanswered gives up on every open server request and withdraws it (C.9).
func (k *call) unanswered() []mrtr.Event {
	open := k.flow.Outstanding()
	for _, in := range open {
		k.reportQuestion(in, observe.Unanswered)
	}
	k.withdraw(open)
	k.answerBy = time.Time{}
	var events []mrtr.Event
	for _, in := range open {
		k.conv.distrust(kindOf(in.Method), restOver*k.conv.b.limits.ServerRequest)
		events = append(events, mrtr.Unanswered(in.Key,
			"the client did not answer "+in.Method+" within "+k.conv.b.limits.ServerRequest.String()))
	}
	return events
}

// pause suspends the flow for d, with jitter so that flows that were turned
// away together do not come back together. The caller holds mu.
func (k *call) pause(d time.Duration) {
	now := time.Now()
	k.due = now.Add(jitter(d))
	k.answerBy, k.beat = time.Time{}, time.Time{}
	k.suspend()
	k.arm(now)
}

// suspend makes the flow independent of the upstream's response and puts it
// into the session's LRU. A flow that must make room is ended after the step.
func (k *call) suspend() {
	k.flow.Own()
	k.caller.Header = nil // a whole request's headers, for as long as a person thinks
	if oldest := k.conv.suspend(k); oldest != nil {
		k.evicted = oldest
	}
}
