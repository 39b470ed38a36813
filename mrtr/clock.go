package mrtr

import (
	"cmp"
	"time"
)

// Clock is when something is due to a flow. A zero time never comes.
type Clock struct {
	Began    time.Time `json:"began,omitzero"`
	Deadline time.Time `json:"deadline,omitzero"` // of the whole call
	Due      time.Time `json:"due,omitzero"`      // of the present state: round, pause or poll
	AnswerBy time.Time `json:"answerBy,omitzero"` // of the open questions
	Beat     time.Time `json:"beat,omitzero"`     // of the next heartbeat
	Look     time.Time `json:"look,omitzero"`     // at whether the client is there
	Gone     bool      `json:"gone,omitempty"`    // it was not, when we looked last
}

// Moment is what a step has to be told of the world, so that it needs no clock and
// no chance of its own.
type Moment struct {
	Now time.Time
	// Luck is a number in [0, 1), at random. It spreads pauses by a quarter either
	// way, so that flows that were turned away together do not come back together.
	Luck float64
}

// later returns when a pause of about d ends.
func (at Moment) later(d time.Duration) time.Time {
	return at.Now.Add(d*3/4 + time.Duration(at.Luck*float64(d/2)))
}

// Next returns when the flow wants a [Tick]. The flow has started and is not over.
func (c *Clock) Next() time.Time {
	next := c.Due
	for _, also := range [...]time.Time{c.Deadline, c.AnswerBy, c.Beat, c.Look} {
		if !also.IsZero() && also.Before(next) {
			next = also
		}
	}
	return next
}

func came(t, now time.Time) bool { return !t.IsZero() && !now.Before(t) }

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
		if !other.isElicitation() {
			in = other
		}
	}
	reason := "the client did not answer " + in.Method + " within " + f.limits().ServerRequest.String()
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

// asking starts the clock of questions that are about to be asked, and stops it when
// none is open.
func (f *Flow) asking(ask []*Input, at Moment) {
	l, c := f.limits(), &f.Clock
	switch {
	case len(ask) > 0:
		c.AnswerBy = at.Now.Add(l.ServerRequest)
		if f.Progress.Token != nil {
			c.Beat = at.Now.Add(l.Heartbeat)
		}
	case len(f.Outstanding()) == 0:
		c.AnswerBy, c.Beat = time.Time{}, time.Time{}
	}
}

// pause suspends the flow for about d.
func (f *Flow) pause(d time.Duration, at Moment) Action {
	f.State = Pausing
	f.Clock.Due = at.later(d)
	f.Clock.AnswerBy, f.Clock.Beat = time.Time{}, time.Time{}
	return Action{Do: Wait, For: d}
}
