package quiet

import (
	"errors"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/mcpbridge/bridge/internal/agenda"
	"github.com/mcpbridge/bridge/internal/http1"
	"github.com/mcpbridge/bridge/internal/park"
	"github.com/mcpbridge/bridge/legacy/message"
	"github.com/mcpbridge/bridge/legacy/web"
	"github.com/mcpbridge/bridge/sessions"
)

// Stream is what a response brings to its client, as far as its connection has to know.
// The first three methods are those of sessions.Stream. Frame and Over are called with
// the response's lock held.
type Stream interface {
	// Pass puts successor in the place of the carrier c, which was held. It reports
	// false when c was let go meanwhile.
	Pass(c, successor sessions.Carrier) bool
	// KeepAlive has the carrier ping its client after silence of this length.
	KeepAlive(silence time.Duration)
	// Detach takes c off the stream, when it is still its carrier.
	Detach(c sessions.Carrier) bool

	// Frame appends an event as its client reads it.
	Frame(to *message.Frames, stream, seq uint64, data []byte)
	// Listens reports whether the response only listens to whatever comes, so that a
	// shutdown ends it; others wait for the answer to a call.
	Listens() bool
	// Lapsed reports whether the response is to end, since its client may not listen any more.
	Lapsed() bool
	// Over tells, once, that the response takes no more events; err is what
	// sessions.Carrier.End was given, or nil.
	Over(err error)
}

var errClosed = errors.New("connection is closed")

// ErrSlow is why a connection was let go whose client stopped reading.
var ErrSlow = errors.New("client did not take an event in time")

// parked brings a stream to a client over a connection that has no goroutine. It
// continues the chunked response that another carrier began, and never waits: what a
// slow client doesn't take at once is left to Drain, on a goroutine of its own.
//
//	        TryWrite took less                  End, or the client hangs up
//	quiet ─────────────────────▶ writing ──┐    ┌──▶ over: no event follows
//	  ▲        (pending is set)     │ Drain │    │      │ the socket is closed, or
//	  └─────────────────────────────┘       └────┘      ▼ becomes an idleConn
//	                                                   gone
//
// Whoever holds mu may change the state. The socket is closed or passed on once, by
// whoever sets gone; while pending is set that is left to Drain, which is using it.
type parked struct {
	beat   agenda.Entry
	conns  *Conns
	stream Stream
	server *http.Server // gets the connection back; nil: it is closed
	early  string       // what the client sent ahead

	complete bool // with what follows guarded by mu: the last chunk was written, or is part of pending
	over     bool // no event follows
	gone     bool // the socket was closed or passed on
	sock     park.Socket
	mu       sync.Mutex
	watch    park.Watch
	out      message.Frames // space for a chunk's head, then events
	pending  *pendingWrite  // nil without a Drain
}

var (
	lastChunk      = []byte(http1.LastChunk)
	keepAliveChunk = http1.AppendChunk(nil, web.KeepAlive)
)

// Write frames an event into the chunk for the next Flush.
func (p *parked) Write(stream, seq uint64, data []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.out.None() {
		buf := p.out.Buffer()
		*buf = append(*buf, make([]byte, http1.ChunkRoom)...)
	}
	p.stream.Frame(&p.out, stream, seq, data)
}

// Flush sends the chunk, the last one together with the end of the response.
func (p *parked) Flush(last bool) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over {
		return errClosed
	}
	if last && p.leftLocked() {
		return errClosed
	}
	begin := p.chunkLocked()
	if last {
		p.complete = true
		buf := p.out.Buffer()
		*buf = append(*buf, lastChunk...)
	}
	var space [4][]byte
	return p.sendLocked(p.out.Pieces(space[:0], begin))
}

// leftLocked reports whether the client has left, which the poller is yet to tell: what is written then goes nowhere, but would
// count as sent. It comes back for the last word (E-20).
func (p *parked) leftLocked() bool {
	_, err := p.sock.Waiting()
	return err != nil
}

// chunkLocked closes the chunk that Write has filled, and returns at which byte of the buffer it begins.
func (p *parked) chunkLocked() (begin int) {
	if p.out.None() {
		return 0
	}
	var head [http1.ChunkRoom]byte
	size := http1.AppendChunkHead(head[:0], p.out.Len()-http1.ChunkRoom)
	begin = http1.ChunkRoom - len(size)
	buf := p.out.Buffer()
	copy((*buf)[begin:], size)
	*buf = append(*buf, http1.LineEnd...)
	return begin
}

// sendLocked writes what the client takes at once.
func (p *parked) sendLocked(pieces [][]byte) error {
	rest, _, err := p.tryWriteLocked(pieces)
	if err != nil || len(rest) == 0 {
		p.out.Release()
		return err
	}
	p.pending = &pendingWrite{rest: slices.Clone(rest), room: make(signal, 1)}
	p.conns.opt.Gate.Join() // a shutdown waits for it
	return sessions.ErrBlocked
}

// tryWriteLocked writes n bytes of the pieces, and returns what the socket does not take.
func (p *parked) tryWriteLocked(pieces [][]byte) (rest [][]byte, n int, err error) {
	for len(pieces) > 0 {
		took, err := p.sock.TryWrite(pieces[0])
		n += took
		if err != nil {
			return pieces, n, err
		}
		if took < len(pieces[0]) {
			pieces[0] = pieces[0][took:]
			break
		}
		pieces = pieces[1:]
	}
	return pieces, n, nil
}

// Ping sends a comment.
func (p *parked) Ping() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over {
		return errClosed
	}
	return p.sendLocked([][]byte{keepAliveChunk})
}

// End ends the response, unless the connection is broken, and lets the client
// use it for further requests.
func (p *parked) End(err error) {
	orderly := err == nil || errors.Is(err, sessions.ErrReplaced)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over {
		return
	}
	p.leaveLocked(err)
	switch {
	case p.pending != nil && err == nil:
		// Drain hangs up.
	case p.pending != nil || !orderly || !p.finishLocked() || p.server == nil:
		p.hangUpLocked()
	case p.conns.poller.Load().Forget(p.watch):
		p.gone = true
		p.conns.await(p.server, p.sock, p.early)
	default: // the client was quicker
		p.hangUpLocked()
	}
}

// leaveLocked notes that no event follows.
func (p *parked) leaveLocked(err error) {
	p.over = true
	p.beat.Remove()
	p.stream.Over(err)
	if p.pending == nil {
		p.out.Release()
	}
}

// finishLocked writes the end of the response, if that is possible at once.
func (p *parked) finishLocked() bool {
	if p.complete {
		return true
	}
	p.complete = true
	n, err := p.sock.TryWrite(lastChunk)
	return err == nil && n == len(lastChunk)
}

// hangUpLocked closes the connection, or has Drain do so.
func (p *parked) hangUpLocked() {
	switch {
	case p.gone:
	case p.pending != nil:
		p.pending.cut = true
		p.pending.room.Ready()
	default:
		p.gone = true
		p.conns.poller.Load().Forget(p.watch)
		p.sock.Close()
	}
}

// abort cuts the connection in whatever state it is.
func (p *parked) abort() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.over {
		p.leaveLocked(nil)
	}
	p.hangUpLocked()
}

// Ready implements park.Owner: the client hung up. That is no cancellation: the
// stream goes on without a carrier (E-12).
func (p *parked) Ready() {
	p.mu.Lock()
	if p.over {
		p.mu.Unlock()
		return
	}
	p.leaveLocked(nil)
	p.hangUpLocked()
	p.mu.Unlock()
	p.stream.Detach(p)
}

// Due keeps the connection alive, for as long as its client may have it.
func (p *parked) Due() (again bool) {
	p.mu.Lock()
	over := p.over
	p.mu.Unlock()
	switch {
	case over:
		return false
	case p.stream.Lapsed():
		p.stream.Detach(p)
		p.End(nil)
		return false
	}
	p.stream.KeepAlive(p.conns.opt.KeepAlive * 2 / 3)
	return true
}

// take puts p in the place of the carrier from, whose stream is held.
func (p *parked) take(from sessions.Carrier) {
	p.mu.Lock()
	var err error
	p.watch, err = p.conns.poller.Load().Watch(p.sock, park.HangUp, p)
	p.conns.keepAlives.Add(&p.beat)
	p.mu.Unlock()
	passed := p.stream.Pass(from, p)
	switch {
	case err != nil: // the poller is closed, or full: the client may resume
		p.Ready()
	case !passed:
		p.End(sessions.ErrReplaced)
	case p.ended(): // by a hang-up, before the stream knew p
		p.stream.Detach(p)
	case p.stream.Listens() && p.conns.opt.Gate.IsShut(): // EndListeners may have missed it
		p.stream.Detach(p)
		p.End(nil)
	}
}

func (p *parked) ended() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.over
}
