package legacy

import (
	"sync"
	"time"

	"github.com/mcpbridge/bridge/internal/agenda"
)

// channels holds the connections of an HTTP server that are sessions.
type channels struct {
	limit int

	mu     sync.Mutex
	open   map[string]*channel
	closed bool
}

// room reports whether another connection would be taken.
func (cs *channels) room() bool {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	return !cs.closed && len(cs.open) < cs.limit
}

// add takes a connection in, unless there are too many or the server closes.
func (cs *channels) add(id string, c *channel) bool {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if cs.closed || len(cs.open) >= cs.limit {
		return false
	}
	if cs.open == nil {
		cs.open = make(map[string]*channel)
	}
	cs.open[id] = c
	return true
}

func (cs *channels) get(id string) *channel {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	return cs.open[id]
}

func (cs *channels) remove(id string) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	delete(cs.open, id)
}

func (cs *channels) len() int {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	return len(cs.open)
}

// refuse takes no further connections.
func (cs *channels) refuse() {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	cs.closed = true
}

// close ends all connections. Their handlers take them out.
func (cs *channels) close(cause error) {
	cs.mu.Lock()
	open := make([]*channel, 0, len(cs.open))
	for _, c := range cs.open {
		open = append(open, c)
	}
	cs.mu.Unlock()
	for _, c := range open {
		c.close(cause)
	}
}

// pinger keeps a connection alive from the janitor's agenda.
type pinger struct {
	beat  agenda.Entry
	c     *channel
	ping  func() error
	every time.Duration
	last  time.Time
}

// keepAlive has the janitor ping a connection until it is gone or removed.
func (h *HTTP) keepAlive(c *channel, ping func() error) *pinger {
	p := &pinger{c: c, ping: ping, every: h.opt.KeepAlive * 2 / 3, last: time.Now()}
	p.beat.Item = p
	h.beats.Add(&p.beat)
	return p
}

func (p *pinger) Due() (again bool) {
	select {
	case <-p.c.gone:
		return false
	default:
	}
	if p.c.lapsed() {
		p.c.hangUp(errLapsed)
		return false
	}
	now := time.Now()
	if now.Sub(p.last) < p.every || !p.c.out.TryLock() {
		return true // a held lock means that somebody is just writing
	}
	defer p.c.out.Unlock()
	if p.c.shut {
		return false
	}
	p.last = now
	if err := p.ping(); err != nil {
		p.c.shut = true
		p.c.hangUp(err)
		return false
	}
	return true
}
