package legacy

import (
	"net/http"
	"time"

	"github.com/mcpbridge/bridge/internal/park"
	"github.com/mcpbridge/bridge/sessions"
)

// attend keeps the handler until its response is over, the client has left or
// drain is closed, or until the stream needs no goroutine any more. It reports
// whether the latter is so; session is then still in use by the stream.
//
// Watching for the client's departure takes a goroutine, which costs a twentieth
// of a question. So a stream that can be parked is not watched before it is, or
// could not be: a client that leaves within that second is noticed after it.
func (c *carrier) attend(r *http.Request, drain <-chan struct{}, s *session) (parked bool) {
	if c.over.Load() {
		return false // before anybody watches for the client's departure
	}
	if c.http.attended.Add(1) == crowd+1 {
		select {
		case c.http.wakeJanitor <- struct{}{}:
		default:
		}
	}
	defer c.http.attended.Add(-1)
	var left <-chan struct{} // the client has
	if !c.parkable(r) {
		left = r.Context().Done()
	}
	for {
		select {
		case <-c.wake:
		case work := <-c.work:
			work()
			continue
		case <-left:
			return false
		case <-drain:
			return false
		}
		switch {
		case c.over.Load(), c.adjourn():
			return false
		case c.park(r, s):
			return true
		}
		left = r.Context().Done()
	}
}

// crowd is how many streams may have a goroutine before quiet ones are parked
// sooner. What a rush leaves behind in the runtime is never given back, and
// objects that live long between the many that don't keep their pages.
const crowd = 200

// crowdRest is the part of Options.Rest after which streams of a crowd are parked.
const crowdRest = 10

// rest is how long a stream must be quiet now to be parked.
func (h *HTTP) rest() time.Duration {
	if h.attended.Load() > crowd {
		return h.opt.Rest / crowdRest
	}
	return h.opt.Rest
}

// ahead is how much earlier than usual the janitor looks at streams now.
func (h *HTTP) ahead() time.Duration {
	if h.attended.Load() > crowd {
		return h.beats.Delay() - h.beats.Delay()/crowdRest
	}
	return 0
}

// park hands the stream, if it is still quiet, from this carrier to one without
// a goroutine. It runs on the handler's goroutine, which must return when it
// succeeds: the response is no longer net/http's.
func (c *carrier) park(r *http.Request, s *session) bool {
	if !c.parkable(r) || !c.until.IsZero() || c.http.parked.poller.open() == nil {
		c.fixed.Store(true)
		return false
	}
	if !c.stream.Quiet(c.http.rest()) || !c.stream.Hold(c) {
		return false
	}
	c.mu.Lock()
	begun := c.begun // and so is flushed, since nobody writes while the stream is held
	c.mu.Unlock()
	if !begun {
		c.stream.Release(c)
		return false
	}
	c.http.parked.parkMu.Lock()
	defer c.http.parked.parkMu.Unlock()
	sock, early, err := detach(c.w, r)
	if err != nil { // too many open files, perhaps: the next time may be better
		c.stream.Release(c)
		return false
	}
	p := &parked{http: c.http, stream: c.stream, session: c.session, counted: s != nil, sock: sock, early: string(early)}
	p.beat.Item = p
	if !r.Close {
		p.server, _ = r.Context().Value(http.ServerContextKey).(*http.Server)
	}
	p.take(c)
	return true
}

// parkable reports whether the stream may give its goroutine up once it is quiet.
func (c *carrier) parkable(r *http.Request) bool {
	return !c.http.opt.NoPark && detachable(c.w, r)
}

// take puts p in the place of the carrier c, whose stream is held.
func (p *parked) take(c *carrier) {
	p.mu.Lock()
	var err error
	p.watch, err = p.http.parked.poller.Load().Watch(p.sock, park.HangUp, p)
	p.http.parked.keepAlives.Add(&p.beat)
	p.mu.Unlock()
	passed := c.stream.Pass(c, p)
	switch {
	case err != nil: // the poller is closed, or full: the client may resume
		p.Ready()
	case !passed:
		p.End(sessions.ErrReplaced)
	case p.ended(): // by a hang-up, before the stream knew p
		c.stream.Detach(p)
	case p.counted && p.http.gate.IsShut():
		c.stream.Detach(p)
		p.End(nil)
	}
}

func (p *parked) ended() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.over
}
