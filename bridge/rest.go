package bridge

import (
	"errors"
	"time"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/mrtr"
)

// A call that waits for its client is data and a timer. Kept, it need not be in memory
// either: the transport, which knows who listens, leaves it to the store, and brings it
// back for an answer, a cancellation, or when something is due.

// Rest implements downstream.Conversation.
func (c *conversation) Rest(may func(downstream.Safe, time.Time) bool) bool {
	for _, k := range c.underWay() {
		if due, ok := k.saving.restsUntil(); ok && may(k.saving.safe, due) {
			k.saving.rest()
		}
	}
	return c.empty()
}

// restsUntil returns when something is due to a call that does nothing but wait for its
// client's answers.
func (k *saving) restsUntil() (due time.Time, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.waitsKeptLocked() || k.flow.State != mrtr.Gathering || len(k.asking.tickets) > 0 {
		return due, false
	}
	due = k.flow.Clock.Deadline
	if by := k.flow.Clock.AnswerBy; !by.IsZero() && by.Before(due) {
		due = by
	}
	return due, true
}

// rest leaves the call to the store. Heartbeats are not kept each; progress that its
// client was told since must not come again (C-4).
func (k *saving) rest() {
	k.mu.Lock()
	var kept *downstream.Kept
	if k.waitsKeptLocked() && k.told != k.flow.Progress.Last {
		kept = k.encodeLocked()
	}
	k.mu.Unlock()
	if kept != nil {
		if err := k.safe.Keep(*kept); errors.Is(err, downstream.ErrGone) {
			k.leave()
			return
		} else if err != nil {
			return // it stays
		}
	}
	k.waitsElsewhere()
}

// empty reports whether all there is to know of the conversation is in its record.
func (c *conversation) empty() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.calls) == 0 && c.tasks.Empty() && c.spent.None()
}
