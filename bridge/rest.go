package bridge

import (
	"time"

	"github.com/mcpbridge/bridge/downstream"
)

// A call that waits for its client is data and a timer. Kept, it need not be in memory
// either: the transport, which knows who listens, leaves it to the store, and brings it
// back for an answer, a cancellation, or when something is due.

// Rest implements downstream.Conversation.
func (c *conversation) Rest(may func(downstream.Safe, time.Time) bool) bool {
	for _, k := range c.underWay() {
		k.Rest(may)
	}
	return c.empty()
}

// empty reports whether all there is to know of the conversation is in its record.
func (c *conversation) empty() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.calls) == 0 && c.tasks.Empty() && c.spent.None()
}
