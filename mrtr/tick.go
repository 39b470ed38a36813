package mrtr

import (
	"cmp"
	"time"
)

// begin sets the bounds of the whole call.
func (f *Flow) begin(at Moment) Action {
	l := f.limits()
	f.Clock.Began = at.Now
	f.Clock.Deadline = at.Now.Add(l.Call)
	f.Clock.Look = at.Now.Add(l.Grace)
	return f.send(at)
}

// onTick does the first of the things that are due.
func (f *Flow) onTick(reachable bool, at Moment) Action {
	l, c := f.limits(), &f.Clock
	switch {
	case came(c.Deadline, at.Now):
		return f.fail(&LimitReached{"timeouts.flow", l.Call})
	case came(c.AnswerBy, at.Now):
		return f.onSilence(at)
	case came(c.Look, at.Now) && f.deserted(reachable, at):
		return f.fail(&LimitReached{"timeouts.grace", l.Grace})
	case came(c.Due, at.Now) && f.State != Gathering:
		return f.onDue(at)
	case came(c.Beat, at.Now):
		c.Beat = at.Now.Add(l.Heartbeat)
		act := Action{Do: Tell}
		f.Progress.say(&act, cmp.Or(f.Note, waiting)) // D-17
		return act
	}
	return Action{}
}

// waiting is what heartbeats say while a person decides.
const waiting = "Waiting for your answer"

// onDue ends a pause, or a round that took too long (D-T20).
func (f *Flow) onDue(at Moment) Action {
	switch {
	case f.State == Pausing && !f.Outage.Until.IsZero():
		return f.send(at)
	case f.State == Pausing:
		return f.nextRound(at)
	case f.State == Polling && !f.Task.Fetching:
		return f.fetch(at)
	}
	return f.fail(&LimitReached{"timeouts.round", f.limits().Round})
}

// onSilence gives up on every open question. At most one of them is an elicitation,
// which becomes a cancel (C.9, C-37); any other ends the flow (C-34).
func (f *Flow) onSilence(at Moment) Action {
	open := f.Outstanding()
	f.Clock.AnswerBy, f.Clock.Beat = time.Time{}, time.Time{}
	if len(open) == 0 {
		return Action{}
	}
	in := open[0]
	for _, other := range open {
		if other.unanswered() == "" {
			in = other
		}
	}
	reason := "the client did not answer " + in.Method + " within " + f.AnswerTime().String()
	act := f.onNoInput(in.Key, &Abort{Key: in.Key, Reason: reason}, at)
	act.Withdraw, act.Ignored = open, open
	return act
}

// deserted notes whether the client can still be reached, and reports that it could
// not the last time either (E-23).
func (f *Flow) deserted(reachable bool, at Moment) bool {
	before := f.Clock.Gone
	f.Clock.Gone = !reachable
	f.Clock.Look = at.Now.Add(f.limits().Grace)
	return before && f.Clock.Gone
}
