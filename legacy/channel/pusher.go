package channel

import (
	"sync/atomic"
	"time"

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

// End implements downstream.Pusher. Nothing begins in the session any more, and the connection
// ends when what is under way has ended, or has taken too long.
func (p *pusher) End(why error) {
	p.in.Lock()
	if p.pusher != p || p.ended {
		p.in.Unlock()
		return
	}
	p.ended, p.why = true, why
	conv, busy := p.conv, p.busyLocked()
	p.in.Unlock()
	if !busy {
		p.HangUp(why)
		return
	}
	conv.Conclude()
	go p.expire()
}

// lastCalls is how long calls may go on whose session has ended from the other side. The client
// cannot begin anew before.
const lastCalls = 30 * time.Second

// expire ends what then is still under way, unless the client has begun anew.
func (p *pusher) expire() {
	limit := time.NewTimer(lastCalls)
	defer limit.Stop()
	select {
	case <-p.gone:
	case <-limit.C:
		if !p.over.Load() {
			p.Close(downstream.ErrOutdated)
		}
	}
}
