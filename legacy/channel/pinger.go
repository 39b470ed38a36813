package channel

import (
	"time"

	"github.com/mcpbridge/bridge/internal/agenda"
)

// pinger keeps a connection alive from the janitor's agenda.
type pinger struct {
	beat  agenda.Entry
	c     *Channel
	ping  func() error
	every time.Duration
	last  time.Time
}

func (p *pinger) Due() (again bool) {
	select {
	case <-p.c.gone:
		return false
	default:
	}
	if (lapsing{p.c}).look() {
		p.c.HangUp(ErrLapsed)
		return false
	}
	now := time.Now()
	if now.Sub(p.last) < p.every || !p.c.out.TryLock() {
		return true // a held lock means that somebody is just writing
	}
	defer p.c.catchUp()
	defer p.c.out.Unlock()
	if p.c.shut {
		return false
	}
	p.last = now
	if err := p.ping(); err != nil {
		p.c.shut = true
		p.c.HangUp(err)
		return false
	}
	return true
}
