package legacy

import (
	"errors"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpbridge/bridge/internal/agenda"
	"github.com/mcpbridge/bridge/legacy/message"
	"github.com/mcpbridge/bridge/legacy/web"
	"github.com/mcpbridge/bridge/sessions"
)

var (
	errCarrierClosed = errors.New("connection is closed")
	errSlow          = errors.New("client did not take an event in time")
)

// carrier brings a stream to a client as the SSE response of one HTTP request.
// The handler's goroutine only waits in attend: all writing is done by whoever
// appends to the stream, under the carrier's lock. When the stream is quiet for
// a while the carrier gives way to a parked one (park.go).
//
//	fresh ──open──▶ deferred ──▶ over: the handler may return
//	  │                 │          ▲
//	  │ Flush writes    │ Flush and Ping only ask for Drain, whose goroutine writes
//	  └─────────────────┴──────────┘ End, or the handler leaves
//
// A fresh one is written to by whoever has the answer, which saves a goroutine where
// one write is all; once the head is out nobody waits for the client any more. mu
// guards the response; writing takes as long as the client does, so End, which must
// not wait, cuts a write short through cut.
type carrier struct {
	beat    agenda.Entry
	http    *HTTP
	stream  *sessions.Stream
	session *session      // nil without one: then nothing can be resumed, and events have no ids
	fixed   atomic.Bool   // it cannot be parked
	until   time.Time     // when the client is to come again instead (poll.go); zero: never
	over    atomic.Bool   // no event follows
	wake    chan struct{} // tells attend that over was set, or that it is time to rest
	work    chan func()   // for the goroutine that would only wait in attend otherwise

	mu       sync.Mutex
	w        http.ResponseWriter // nil once the handler left
	rc       http.ResponseController
	buf      *[]byte
	begun    bool      // the head was written
	deferred bool      // Flush leaves the writing to Drain
	last     bool      // what Drain is to write is the last
	ping     bool      // Drain is to send a comment instead
	deadline time.Time // of the connection

	cut     sync.Mutex // held only for moments, unlike mu
	writing bool       // the connection is being written to, with mu held
	aborted bool       // what is written now is of no more use
}

// newCarrier returns the carrier of a stream of session.
func (h *HTTP) newCarrier(w http.ResponseWriter, s *sessions.Stream, session *session) *carrier {
	c := &carrier{
		http: h, stream: s, session: session, until: h.until(s, session), wake: make(chan struct{}, 1), work: make(chan func()),
		w: w, rc: *http.NewResponseController(w),
	}
	c.beat.Item = c
	h.beats.Add(&c.beat)
	return c
}

// Write frames an event into the buffer for the next Flush.
func (c *carrier) Write(stream, seq uint64, data []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.buf == nil {
		c.buf = message.Buffer()
	}
	appendEvent(c.buf, c.session != nil, stream, seq, data)
}

// remind begins a resumed response that has nothing to replay with the id of the event
// that the client saw last: clients that know priming events forget where they were
// with each response, and there may be no other event in this one (E-8).
func (c *carrier) remind(seq uint64) {
	if message.Priming(c.session.rec.Version) && c.stream.Last() == seq {
		c.Write(c.stream.ID(), seq, nil)
	}
}

// Flush sends the buffer. The last one stays with net/http, which sends it
// together with the end of the response: that saves a system call.
func (c *carrier) Flush(last bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.deferred {
		c.last = last
		return sessions.ErrBlocked
	}
	return c.flushLocked(last)
}

func (c *carrier) flushLocked(last bool) error {
	if c.w == nil {
		return errCarrierClosed
	}
	c.beginLocked()
	c.extendLocked(c.http.opt.WriteTimeout)
	c.setWriting(true)
	defer c.setWriting(false)
	err := c.sendLocked()
	if err == nil && !last {
		err = c.rc.Flush()
	}
	return err
}

// Drain does what Flush or Ping has put off.
func (c *carrier) Drain() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.ping {
		return c.flushLocked(c.last)
	}
	c.ping = false
	return c.commentLocked()
}

// Ping sends a comment, not on the janitor's goroutine.
func (c *carrier) Ping() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ping = true
	return sessions.ErrBlocked
}

func (c *carrier) commentLocked() error {
	if c.w == nil {
		return errCarrierClosed
	}
	c.beginLocked()
	c.deadline = time.Time{}
	_ = c.rc.SetWriteDeadline(time.Now().Add(web.PingTimeout))
	c.setWriting(true)
	defer c.setWriting(false)
	if _, err := c.w.Write(web.KeepAlive); err != nil {
		return err
	}
	return c.rc.Flush()
}

// End lets the handler return. A write that hangs meanwhile is cut short, since
// nobody is interested in it any more.
func (c *carrier) End(err error) {
	c.http.notices.letGo(c.session, c.stream, err)
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

// nudge wakes the handler.
func (c *carrier) nudge() {
	select {
	case c.wake <- struct{}{}:
	default: // it is being woken already
	}
}

// hand gives work to the goroutine in attend, unless that has some already.
func (c *carrier) hand(work func()) bool {
	select {
	case c.work <- work:
		return true
	default:
		return false
	}
}

func (c *carrier) setWriting(writing bool) {
	c.cut.Lock()
	c.writing = writing
	c.cut.Unlock()
}

// open sends the response's head, unless an event already took it along. From
// then on nobody waits for this client any more.
func (c *carrier) open() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.w == nil {
		return errCarrierClosed
	}
	c.deferred = true
	if c.begun {
		return nil
	}
	c.beginLocked()
	c.extendLocked(c.http.opt.WriteTimeout)
	c.setWriting(true)
	defer c.setWriting(false)
	if err := c.sendLocked(); err != nil {
		return err
	}
	return c.rc.Flush()
}

// leave takes the carrier off its stream before the handler returns.
func (c *carrier) leave() {
	c.stream.Detach(c)
	c.End(nil)
	c.beat.Remove()
	c.mu.Lock()
	if c.w != nil && !c.begun { // let go before there was anything to send: a stream that ends, not an empty body
		c.beginLocked()
	}
	c.w = nil
	message.Release(&c.buf)
	c.mu.Unlock()
}

func (c *carrier) Due() (again bool) {
	if c.over.Load() {
		return false
	}
	c.stream.KeepAlive(c.http.opt.KeepAlive * 2 / 3)
	if !c.fixed.Load() && c.stream.Quiet(c.http.rest()) || c.spent() {
		c.nudge()
	}
	return true
}

func (c *carrier) beginLocked() {
	if c.begun {
		return
	}
	c.begun = true
	c.http.leaving(c.w)
	web.BeginStream(c.w)
}

func (c *carrier) sendLocked() error {
	if c.buf == nil {
		return nil
	}
	defer message.Release(&c.buf)
	for part := range slices.Chunk(*c.buf, web.WritePart) {
		c.extendLocked(c.http.opt.WriteTimeout)
		if _, err := c.w.Write(part); err != nil {
			return err
		}
	}
	return nil
}

// extendLocked moves the write deadline, but not for every event of a burst.
func (c *carrier) extendLocked(d time.Duration) {
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
