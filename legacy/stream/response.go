package stream

import (
	"errors"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/agenda"
	"github.com/mcpbridge/bridge/internal/budget"
	"github.com/mcpbridge/bridge/legacy/message"
	"github.com/mcpbridge/bridge/legacy/quiet"
	"github.com/mcpbridge/bridge/legacy/web"
	"github.com/mcpbridge/bridge/sessions"
)

var errClosed = errors.New("connection is closed")

// Response brings a stream to a client as the SSE response of one HTTP request.
// The handler's goroutine only waits in Attend: all writing is done by whoever
// appends to the stream, under the response's lock. When the stream is quiet for
// a while the response gives way to one that no goroutine serves (package quiet).
//
//	fresh ──Open──▶ deferred ──▶ over: the handler may return
//	  │                 │          ▲
//	  │ Flush writes    │ Flush and Ping only ask for Drain, whose goroutine writes
//	  └─────────────────┴──────────┘ End, or the handler leaves
//
// A fresh one is written to by whoever has the answer, which saves a goroutine where
// one write is all; once the head is out nobody waits for the client any more. mu
// guards the response; writing takes as long as the client does, so End, which must
// not wait, cuts a write short through cut.
type Response struct {
	beat     agenda.Entry
	endpoint *Endpoint
	stream   *sessions.Stream
	set      *Set            // nil without a session: then nothing can be resumed, and events have no ids
	fixed    atomic.Bool     // it cannot be parked
	until    time.Time       // when the client is to come again instead (poll.go); zero: never
	term     downstream.Term // of its credentials, with which it ends
	over     atomic.Bool     // no event follows
	wake     chan struct{}   // tells Attend that over was set, or that it is time to rest
	work     chan func()     // for the goroutine that would only wait in Attend otherwise

	mu       sync.Mutex
	w        http.ResponseWriter // nil once the handler left
	request  *http.Request       // whose response it is; nil once the handler left
	rc       http.ResponseController
	out      message.Frames // since the last Flush
	begun    bool           // the head was written
	deferred bool           // Flush leaves the writing to Drain
	last     bool           // what Drain is to write is the last
	ping     bool           // Drain is to send a comment instead
	failed   error          // why the connection takes no more
	deadline time.Time      // of the connection

	cut     sync.Mutex // held only for moments, unlike mu
	writing bool       // the connection is being written to, with mu held
	aborted bool       // what is written now is of no more use
}

// Begin answers a call with a stream, which is volatile without a session: set is nil
// then. of is the principal of who made the call. Its events are charged to account. They reach the client
// at the next Flush of the stream.
func (e *Endpoint) Begin(w http.ResponseWriter, r *http.Request, set *Set, of string, account *budget.Account) (*sessions.Stream, *Response) {
	var st *sessions.Stream
	if set == nil {
		st = sessions.NewVolatileStream(e.limits(account))
	} else {
		st = set.add(of)
	}
	c := e.newResponse(w, st, set, downstream.Term{})
	c.request = r
	st.Attach(c, 0)
	if set != nil && message.Priming(set.session.Version) {
		st.Put(nil)
	}
	return st, c
}

func (e *Endpoint) newResponse(w http.ResponseWriter, st *sessions.Stream, set *Set, term downstream.Term) *Response {
	c := &Response{
		endpoint: e, stream: st, set: set, until: set.until(st), term: term, wake: make(chan struct{}, 1), work: make(chan func()),
		w: w, rc: *http.NewResponseController(w),
	}
	c.beat.Item = c
	e.beats.Add(&c.beat)
	return c
}

// Write frames an event into the buffer for the next Flush.
func (c *Response) Write(stream, seq uint64, data []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	appendEvent(&c.out, c.set != nil, EventID{stream, seq}, data)
}

// remind begins a resumed response that has nothing to replay with the id of the event
// that the client saw last: clients that know priming events forget where they were
// with each response, and there may be no other event in this one (E-8).
func (c *Response) remind(seq uint64) {
	if message.Priming(c.set.session.Version) && !c.stream.Follows(seq) {
		c.Write(c.stream.ID(), seq, nil)
	}
}

// Flush sends the buffer. The last one stays with net/http, which sends it
// together with the end of the response: that saves a system call.
func (c *Response) Flush(last bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.deferred {
		c.last = last
		return sessions.ErrBlocked
	}
	return c.flushLocked(last)
}

// departedLocked reports whether the client has left when that matters: what is written then goes nowhere, but would count as
// sent. That are the first event, without which it has no way back (E-23), and the last one, if it has seen others: it comes
// back for that (E-20). Who has come back by GET has seen some before.
func (c *Response) departedLocked(last bool) bool {
	if c.request == nil {
		return false
	}
	matters := last == c.begun || last && c.request.Method == http.MethodGet
	return matters && quiet.Departed(c.request)
}

func (c *Response) flushLocked(last bool) error {
	if c.w == nil || c.departedLocked(last) {
		return errClosed
	}
	c.beginLocked()
	c.extendLocked(c.endpoint.opt.WriteTimeout)
	c.setWriting(true)
	defer c.setWriting(false)
	err := c.sendLocked()
	if err == nil && !last {
		err = c.rc.Flush()
	}
	c.failed = err
	return err
}

// Drain does what Flush or Ping has put off.
func (c *Response) Drain() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.ping {
		return c.flushLocked(c.last)
	}
	c.ping = false
	return c.commentLocked()
}

// Ping sends a comment, not on the janitor's goroutine.
func (c *Response) Ping() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ping = true
	return sessions.ErrBlocked
}

func (c *Response) commentLocked() error {
	if c.w == nil {
		return errClosed
	}
	c.beginLocked()
	c.deadline = time.Time{}
	_ = c.rc.SetWriteDeadline(time.Now().Add(web.PingTimeout))
	c.setWriting(true)
	defer c.setWriting(false)
	_, err := c.w.Write(web.KeepAlive)
	if err == nil {
		err = c.rc.Flush()
	}
	c.failed = err
	return err
}

// End lets the handler return. A write that hangs meanwhile is cut short, since
// nobody is interested in it any more.
func (c *Response) End(err error) {
	c.endpoint.letGo(c.set, c.stream, err)
	if err != nil {
		c.cut.Lock()
		if c.writing { // so the handler is still there: leaving takes mu
			c.aborted = true
			_ = c.rc.SetWriteDeadline(time.Now())
		}
		c.cut.Unlock()
	}
	c.over.Store(true)
	c.nudge()
}

// Depart takes the response off its stream, and lets the handler return: the client has left, which nobody
// who waits for that has noticed yet.
func (c *Response) Depart() {
	if !c.over.Load() {
		c.stream.Detach(c)
		c.End(errClosed)
	}
}

// nudge wakes the handler.
func (c *Response) nudge() {
	select {
	case c.wake <- struct{}{}:
	default: // it is being woken already
	}
}

func (c *Response) setWriting(writing bool) {
	c.cut.Lock()
	c.writing = writing
	c.cut.Unlock()
}

// Open sends the response's head, unless an event already took it along. From
// then on nobody waits for this client any more.
func (c *Response) Open() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.w == nil {
		return errClosed
	}
	c.deferred = true
	if c.begun {
		return nil
	}
	c.beginLocked()
	c.extendLocked(c.endpoint.opt.WriteTimeout)
	c.setWriting(true)
	defer c.setWriting(false)
	if err := c.sendLocked(); err != nil {
		return err
	}
	return c.rc.Flush()
}

// Leave takes the response off its stream before the handler returns. A write that fails ends the request's
// context at once, and the handler may be here before the stream hears why: then nobody else tells it. It reports
// whether there is a response: there is none for a client that left before there was anything to send.
func (c *Response) Leave() (begun bool) {
	detached := c.stream.Detach(c)
	c.End(nil)
	c.beat.Remove()
	c.mu.Lock()
	failed := c.failed
	if c.w != nil && !c.begun && (c.request == nil || !quiet.Departed(c.request)) {
		c.beginLocked() // let go before there was anything to send: a stream that ends, not an empty body
	}
	c.w, c.request = nil, nil
	c.out.Release()
	begun = c.begun
	c.mu.Unlock()
	if detached {
		c.endpoint.letGo(c.set, c.stream, failed)
	}
	return begun
}

// Due keeps the connection alive, and has the handler look whether it is needed.
func (c *Response) Due() (again bool) {
	if c.over.Load() {
		return false
	}
	if c.term.Over() {
		c.stream.Detach(c)
		c.End(nil)
		return false
	}
	c.stream.KeepAlive(c.endpoint.opt.KeepAlive * 2 / 3)
	if !c.fixed.Load() && c.stream.Quiet(c.endpoint.rest()) || c.spent() {
		c.nudge()
	}
	return true
}

func (c *Response) beginLocked() {
	if c.begun {
		return
	}
	c.begun = true
	web.EndConnection(c.endpoint.opt.Gate, c.w)
	web.BeginStream(c.w)
}

func (c *Response) sendLocked() error {
	defer c.out.Release()
	var space [4][]byte
	for _, piece := range c.out.Pieces(space[:0], 0) {
		for part := range slices.Chunk(piece, web.WritePart) {
			c.extendLocked(c.endpoint.opt.WriteTimeout)
			if _, err := c.w.Write(part); err != nil {
				return err
			}
		}
	}
	return nil
}

// extendLocked moves the write deadline, but not for every event of a burst.
func (c *Response) extendLocked(d time.Duration) {
	now := time.Now()
	if c.deadline.Sub(now) >= d/2 {
		return
	}
	c.deadline = now.Add(d)
	c.cut.Lock()
	defer c.cut.Unlock()
	if !c.aborted {
		_ = c.rc.SetWriteDeadline(c.deadline)
	}
}
