package mrtr

import "time"

// Clock is when something is due to a flow. A zero time never comes.
type Clock struct {
	Began    time.Time
	Deadline time.Time // of the whole call
	Due      time.Time // of the present state: round, pause or poll
	AnswerBy time.Time // of the open questions
	Beat     time.Time // of the next heartbeat
	Look     time.Time // at whether the client is there
	Gone     bool      // it was not, when we looked last
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

// Unattended returns when something is due to a flow in which nobody polls or says that it goes on: its
// open questions have had their time, or the whole call has.
func (c *Clock) Unattended() time.Time {
	if !c.AnswerBy.IsZero() && c.AnswerBy.Before(c.Deadline) {
		return c.AnswerBy
	}
	return c.Deadline
}

// Unattended is Clock.Unattended of a flow as it is kept: one that pauses goes on by itself, wherever it is.
func (f *Flow) Unattended() time.Time {
	if f.State == Pausing && f.Clock.Due.Before(f.Clock.Deadline) {
		return f.Clock.Due
	}
	return f.Clock.Unattended()
}

func came(t, now time.Time) bool { return !t.IsZero() && !now.Before(t) }
