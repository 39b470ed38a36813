package exchange

import (
	"sync/atomic"

	"github.com/mcpbridge/bridge/downstream"
)

// member is one. Its exchange counts responses,
// so each member must give exactly one.
type member struct {
	*Exchange
	over atomic.Bool
}

// Send implements Reply.
func (m *member) Send(msg downstream.Message) {
	if !m.over.Load() {
		m.Exchange.Send(msg)
	}
}

// Finish implements Reply.
func (m *member) Finish(msg downstream.Message) {
	if !m.over.Swap(true) {
		m.complete(&msg)
	}
}

// Abandon implements Reply.
func (m *member) Abandon() {
	if !m.over.Swap(true) {
		m.complete(nil)
	}
}
