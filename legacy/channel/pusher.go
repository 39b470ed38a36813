package channel

import (
	"sync/atomic"

	"github.com/mcpbridge/bridge/downstream"
)

// pusher is the Pusher of one conversation. A connection may have several, one after the
// other, and what one has left to say when the next has begun, that its server is gone
// above all, is nothing for the next one's client.
type pusher struct {
	*Channel
	over atomic.Bool // the client has begun anew
}

var _ downstream.Pusher = (*pusher)(nil)

// Push implements downstream.Pusher.
func (p *pusher) Push(key string, msg downstream.Message) {
	if !p.over.Load() {
		p.Channel.Push(key, msg)
	}
}

// Reaches implements downstream.Pusher.
func (p *pusher) Reaches() bool { return !p.over.Load() }

// End implements downstream.Pusher.
func (p *pusher) End(why error) {
	if !p.over.Load() {
		p.Channel.End(why)
	}
}
