package legacy

import (
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/mcpbridge/bridge/internal/agenda"
	"github.com/mcpbridge/bridge/internal/http1"
	"github.com/mcpbridge/bridge/internal/park"
	"github.com/mcpbridge/bridge/legacy/message"
	"github.com/mcpbridge/bridge/legacy/web"
	"github.com/mcpbridge/bridge/sessions"
)

// parked brings a stream to a client over a connection that has no goroutine. It
// continues the chunked response that a carrier began, and never waits: what a
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
	beat    agenda.Entry
	http    *HTTP
	stream  *sessions.Stream
	session *session     // nil without one
	server  *http.Server // gets the connection back; nil: it is closed
	early   string       // what the client sent ahead
	counted bool         // as a use of the session, as a GET is

	complete bool // with what follows guarded by mu: the last chunk was written, or is part of pending
	over     bool // no event follows
	gone     bool // the socket was closed or passed on
	sock     park.Socket
	mu       sync.Mutex
	watch    park.Watch
	out      *[]byte       // space for a chunk's head, then events; nil: none
	pending  *pendingWrite // nil without a Drain
}

// pendingWrite is what a client that is behind has yet to take.
type pendingWrite struct {
	rest  []byte // part of parked.out, or of a constant
	room  signal // wakes Drain
	taken int    // bytes since the client was last given WriteTimeout
	cut   bool   // Drain is to give up
}

// signal wakes one goroutine.
type signal chan struct{}

// Ready implements park.Owner.
func (a signal) Ready() {
	select {
	case a <- struct{}{}:
	default: // it is awake
	}
}

var (
	lastChunk      = []byte(http1.LastChunk)
	keepAliveChunk = http1.AppendChunk(nil, web.KeepAlive)
)

// Write frames an event into the chunk for the next Flush.
func (p *parked) Write(stream, seq uint64, data []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.out == nil {
		p.out = message.Buffer()
		*p.out = append(*p.out, make([]byte, http1.ChunkRoom)...)
	}
	appendEvent(p.out, p.session != nil, stream, seq, data)
}

// Flush sends the chunk, the last one together with the end of the response.
func (p *parked) Flush(last bool) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over {
		return errCarrierClosed
	}
	chunk := p.chunkLocked()
	if last {
		p.complete = true
		chunk = append(chunk, lastChunk...)
	}
	return p.sendLocked(chunk)
}

// chunkLocked closes the chunk that Write has filled.
func (p *parked) chunkLocked() []byte {
	if p.out == nil {
		return nil
	}
	var head [http1.ChunkRoom]byte
	size := http1.AppendChunkHead(head[:0], len(*p.out)-http1.ChunkRoom)
	begin := http1.ChunkRoom - len(size)
	copy((*p.out)[begin:], size)
	*p.out = append(*p.out, http1.LineEnd...)
	return (*p.out)[begin:]
}

// sendLocked writes what the client takes at once.
func (p *parked) sendLocked(b []byte) error {
	n, err := p.sock.TryWrite(b)
	if err != nil || n == len(b) {
		message.Release(&p.out)
		return err
	}
	p.pending = &pendingWrite{rest: b[n:], room: make(signal, 1)}
	p.http.gate.Join() // a shutdown waits for it
	return sessions.ErrBlocked
}

// Ping sends a comment.
func (p *parked) Ping() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over {
		return errCarrierClosed
	}
	return p.sendLocked(keepAliveChunk)
}

// Drain brings the client the rest, or gives it up.
func (p *parked) Drain() error {
	defer p.http.gate.Exit()
	err := p.writePending()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pending = nil
	message.Release(&p.out)
	if p.over {
		p.hangUpLocked()
		return errCarrierClosed
	}
	return err
}

// writePending writes whenever the socket has room.
func (p *parked) writePending() error {
	rooms := p.http.parked.writable.open()
	if rooms == nil {
		return errCarrierClosed
	}
	defer rooms.Drop(p.sock) // nobody closes it meanwhile
	room := p.pending.room
	timeout := time.NewTimer(p.http.opt.WriteTimeout)
	defer timeout.Stop()
	for {
		watch, err := rooms.Watch(p.sock, park.Room, room)
		if err != nil {
			return err
		}
		select {
		case <-room:
		case <-timeout.C:
			err = errSlow
		}
		rooms.Forget(watch)
		if err != nil {
			return err
		}
		done, quick, err := p.writeMore()
		if done {
			return err
		}
		if quick {
			timeout.Reset(p.http.opt.WriteTimeout)
		}
	}
}

// writeMore writes what the socket takes. It reports quick when that completes the
// part that a client must take within WriteTimeout.
func (p *parked) writeMore() (done, quick bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.pending.cut {
		return true, false, errCarrierClosed
	}
	n, err := p.sock.TryWrite(p.pending.rest)
	p.pending.rest = p.pending.rest[n:]
	if p.pending.taken += n; p.pending.taken >= web.WritePart {
		p.pending.taken, quick = 0, true
	}
	return err != nil || len(p.pending.rest) == 0, quick, err
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
	p.http.notices.letGo(p.session, p.stream, err)
	p.leaveLocked()
	switch {
	case p.pending != nil && err == nil:
		// Drain hangs up.
	case p.pending != nil || !orderly || !p.finishLocked() || p.server == nil || p.http.gate.IsShut():
		p.hangUpLocked()
	case p.http.parked.poller.Load().Forget(p.watch):
		p.gone = true
		p.http.await(p.server, p.sock, p.early)
	default: // the client was quicker
		p.hangUpLocked()
	}
}

// leaveLocked notes that no event follows.
func (p *parked) leaveLocked() {
	p.over = true
	p.beat.Remove()
	if p.counted {
		p.session.active.Add(-1)
	}
	if p.pending == nil {
		message.Release(&p.out)
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
		p.http.parked.poller.Load().Forget(p.watch)
		p.sock.Close()
	}
}

// abort cuts the connection in whatever state it is.
func (p *parked) abort() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.over {
		p.leaveLocked()
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
	p.leaveLocked()
	p.hangUpLocked()
	p.mu.Unlock()
	p.stream.Detach(p)
}

// Due keeps the connection alive.
func (p *parked) Due() (again bool) {
	p.mu.Lock()
	over := p.over
	p.mu.Unlock()
	if over {
		return false
	}
	p.stream.KeepAlive(p.http.opt.KeepAlive * 2 / 3)
	return true
}
