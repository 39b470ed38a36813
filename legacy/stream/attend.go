package stream

import (
	"net/http"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/legacy/message"
	"github.com/mcpbridge/bridge/sessions"
)

// Attend keeps the handler until its response is over, the client has left, or the
// stream needs no goroutine any more.
func (c *Response) Attend(r *http.Request) { c.attend(r, nil, false) }

// attend is Attend until drain is closed, too. It reports whether the stream needs no
// goroutine any more; as a GET it is then still in use.
//
// Watching for the client's departure takes a goroutine, which costs a twentieth
// of a question. So a stream that can be parked is not watched before it is, or
// could not be: a client that leaves within that second is noticed after it.
func (c *Response) attend(r *http.Request, drain <-chan struct{}, get bool) (parked bool) {
	if c.over.Load() {
		return false // before anybody watches for the client's departure
	}
	c.endpoint.attend()
	defer c.endpoint.attended.Add(-1)
	var left <-chan struct{} // the client has
	if !c.endpoint.quiet.Parkable(c.w, r) {
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
		case c.park(r, get):
			return true
		}
		left = r.Context().Done()
	}
}

// Hand gives work to the goroutine in Attend, unless that has some already or may leave
// before the work is done.
func (c *Response) Hand(work func()) bool {
	if !c.until.IsZero() {
		return false
	}
	select {
	case c.work <- work:
		return true
	default:
		return false
	}
}

// park hands the stream, if it is still quiet, from this response to one without
// a goroutine. It runs on the handler's goroutine, which must return when it
// succeeds: the response is no longer net/http's.
func (c *Response) park(r *http.Request, get bool) bool {
	e := c.endpoint
	if !c.until.IsZero() || !e.quiet.Ready(c.w, r) {
		c.fixed.Store(true)
		return false
	}
	e.opt.Gate.Join() // while the stream is held nobody is told what comes: a shutdown waits for that
	defer e.opt.Gate.Exit()
	if !c.stream.Quiet(e.rest()) || !c.stream.Hold(c) {
		return false
	}
	c.mu.Lock()
	begun := c.begun // and so is flushed, since nobody writes while the stream is held
	c.mu.Unlock()
	if !begun || !e.quiet.Park(c.w, r, c, &delivery{c.stream, e, c.set, get, c.term}) {
		c.stream.Release(c)
		return false
	}
	return true
}

// delivery is the part in a stream of a response that has no goroutine.
type delivery struct {
	*sessions.Stream
	endpoint *Endpoint
	set      *Set // nil without a session
	get      bool // a GET, which counts as a use of its session
	term     downstream.Term
}

// Frame implements quiet.Stream.
func (d *delivery) Frame(to *message.Frames, stream, seq uint64, data []byte) {
	appendEvent(to, d.set != nil, EventID{stream, seq}, data)
}

// Listens implements quiet.Stream.
func (d *delivery) Listens() bool { return d.get && isStandalone(d.ID()) }

// Lapsed implements quiet.Stream.
func (d *delivery) Lapsed() bool { return d.term.Over() }

// Over implements quiet.Stream.
func (d *delivery) Over(err error) {
	d.endpoint.letGo(d.set, d.Stream, err)
	if d.get {
		d.set.detach()
	}
}
