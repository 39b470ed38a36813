package legacy

import (
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/mcpbridge/bridge/internal/agenda"
	"github.com/mcpbridge/bridge/internal/http1"
	"github.com/mcpbridge/bridge/internal/park"
	"github.com/mcpbridge/bridge/sessions"
)

// parked brings a stream to a client over a connection that has no goroutine. It
// continues the chunked response that a carrier began, and never waits: what a
// slow client doesn't take at once is left to Drain, on a goroutine of its own.
type parked struct {
	beat    agenda.Entry
	http    *HTTP
	stream  *sessions.Stream
	session *session     // nil without one
	server  *http.Server // gets the connection back; nil: it is closed
	early   string       // what the client sent ahead
	counted bool         // as a use of the session, as a GET is

	complete bool // with what follows guarded by mu: the last chunk was written, or is part of the debt
	over     bool // no event follows
	gone     bool // the socket was closed or passed on
	sock     park.Socket
	mu       sync.Mutex
	watch    park.Watch
	out      *[]byte // space for a chunk's head, then events; nil: none
	debt     *debt   // nil without a Drain, who alone may close the socket meanwhile
}

// debt is what a client that is behind has yet to take.
type debt struct {
	owed []byte // part of parked.out, or of a constant
	room alarm  // wakes Drain
	paid int    // bytes since the client was last given WriteTimeout
	cut  bool   // Drain is to give up
}

// alarm wakes one goroutine.
type alarm chan struct{}

// Ready implements park.Owner.
func (a alarm) Ready() {
	select {
	case a <- struct{}{}:
	default: // it is awake
	}
}

var (
	lastChunk      = []byte(http1.LastChunk)
	keepAliveChunk = http1.AppendChunk(nil, keepAlive)
)

// Write frames an event into the chunk for the next Flush.
func (p *parked) Write(stream, seq uint64, data []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.out == nil {
		p.out = eventBuffers.Get().(*[]byte)
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
	chunk := p.chunk()
	if last {
		p.complete = true
		chunk = append(chunk, lastChunk...)
	}
	return p.send(chunk)
}

// chunk closes the chunk that Write has filled.
func (p *parked) chunk() []byte {
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

// send writes what the client takes at once.
func (p *parked) send(b []byte) error {
	n, err := p.sock.TryWrite(b)
	if err != nil || n == len(b) {
		releaseEvents(&p.out)
		return err
	}
	p.debt = &debt{owed: b[n:], room: make(alarm, 1)}
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
	return p.send(keepAliveChunk)
}

// Drain brings the client what it is owed, or gives it up.
func (p *parked) Drain() error {
	defer p.http.gate.Exit()
	err := p.pay()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.debt = nil
	releaseEvents(&p.out)
	if p.over {
		p.hangUp()
		return errCarrierClosed
	}
	return err
}

// pay writes whenever the socket has room.
func (p *parked) pay() error {
	rooms := p.http.lot.rooms.open()
	if rooms == nil {
		return errCarrierClosed
	}
	defer rooms.Drop(p.sock) // nobody closes it meanwhile
	room := p.debt.room
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
		done, quick, err := p.payMore()
		if done {
			return err
		}
		if quick {
			timeout.Reset(p.http.opt.WriteTimeout)
		}
	}
}

// payMore writes what the socket takes. It reports quick when that completes the
// part that a client must take within WriteTimeout.
func (p *parked) payMore() (done, quick bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.debt.cut {
		return true, false, errCarrierClosed
	}
	n, err := p.sock.TryWrite(p.debt.owed)
	p.debt.owed = p.debt.owed[n:]
	if p.debt.paid += n; p.debt.paid >= writePart {
		p.debt.paid, quick = 0, true
	}
	return err != nil || len(p.debt.owed) == 0, quick, err
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
	p.leave()
	switch {
	case p.debt != nil && err == nil:
		// Drain hangs up.
	case p.debt != nil || !orderly || !p.finish() || p.server == nil || p.http.gate.IsShut():
		p.hangUp()
	case p.http.lot.poller.Load().Forget(p.watch):
		p.gone = true
		p.http.await(p.server, p.sock, p.early)
	default: // the client was quicker
		p.hangUp()
	}
}

// leave notes under the lock that no event follows.
func (p *parked) leave() {
	p.over = true
	p.beat.Remove()
	if p.counted {
		p.session.active.Add(-1)
	}
	if p.debt == nil {
		releaseEvents(&p.out)
	}
}

// finish writes the end of the response, if that is possible at once.
func (p *parked) finish() bool {
	if p.complete {
		return true
	}
	p.complete = true
	n, err := p.sock.TryWrite(lastChunk)
	return err == nil && n == len(lastChunk)
}

// hangUp closes the connection, or has Drain do so.
func (p *parked) hangUp() {
	switch {
	case p.gone:
	case p.debt != nil:
		p.debt.cut = true
		p.debt.room.Ready()
	default:
		p.gone = true
		p.http.lot.poller.Load().Forget(p.watch)
		p.sock.Close()
	}
}

// abort cuts the connection in whatever state it is.
func (p *parked) abort() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.over {
		p.leave()
	}
	p.hangUp()
}

// Ready implements park.Owner: the client hung up. That is no cancellation: the
// stream goes on without a carrier (E-12).
func (p *parked) Ready() {
	p.mu.Lock()
	if p.over {
		p.mu.Unlock()
		return
	}
	p.leave()
	p.hangUp()
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
