package legacy

import (
	"errors"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/mcpbridge/bridge/internal/park"
	"github.com/mcpbridge/bridge/sessions"
	"github.com/mcpbridge/bridge/sse"
)

// parked brings a stream to a client over a connection that has no goroutine. It
// continues the chunked response that a carrier began, and never waits: what a
// slow client doesn't take at once is left to Drain, on a goroutine of its own.
type parked struct {
	beat    entry
	http    *HTTP
	stream  *sessions.Stream
	session *session     // of GET, which counts as a use of it; else nil
	server  *http.Server // gets the connection back; nil: it is closed
	conn    net.Conn
	ids     bool

	mu       sync.Mutex
	watch    park.Watch
	early    []byte  // what the client sent ahead
	out      *[]byte // room for a chunk's head, then events; nil: none
	owed     []byte  // of out, what the client has yet to take
	draining bool    // a goroutine is on its way to write owed
	complete bool    // the last chunk was written, or is part of owed
	over     bool    // no event follows
}

// chunkRoom is the space for a chunk's head: its size in hexadecimal digits.
const chunkRoom = 10

var (
	lastChunk      = []byte("0\r\n\r\n")
	keepAliveChunk = appendChunk(nil, keepAlive)
)

func appendChunk(dst, data []byte) []byte {
	dst = strconv.AppendInt(dst, int64(len(data)), 16)
	dst = append(append(dst, "\r\n"...), data...)
	return append(dst, "\r\n"...)
}

// Write frames an event into the chunk for the next Flush.
func (p *parked) Write(stream, seq uint64, data []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.out == nil {
		p.out = eventBuffers.Get().(*[]byte)
		*p.out = append(*p.out, make([]byte, chunkRoom)...)
	}
	var space [48]byte
	id := space[:0]
	if p.ids {
		id = appendEventID(id, stream, seq)
	}
	if data == nil {
		*p.out = sse.AppendPriming(*p.out, string(id))
		return
	}
	*p.out = sse.AppendEvent(*p.out, string(id), data)
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
	var head [chunkRoom]byte
	size := strconv.AppendInt(head[:0], int64(len(*p.out)-chunkRoom), 16)
	size = append(size, "\r\n"...)
	begin := chunkRoom - len(size)
	copy((*p.out)[begin:], size)
	*p.out = append(*p.out, "\r\n"...)
	return (*p.out)[begin:]
}

// send writes what the client takes at once.
func (p *parked) send(b []byte) error {
	n, err := park.TryWrite(p.conn, b)
	if err != nil || n == len(b) {
		p.release()
		return err
	}
	p.owed, p.draining = b[n:], true
	p.http.inFlight.Add(1) // a shutdown waits for it
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

// Drain brings the client what it is owed.
func (p *parked) Drain() error {
	defer p.http.exit()
	p.mu.Lock()
	owed := p.owed
	_ = p.conn.SetWriteDeadline(time.Now().Add(p.http.opt.WriteTimeout))
	p.mu.Unlock()
	_, err := p.conn.Write(owed)
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = p.conn.SetWriteDeadline(time.Time{})
	p.draining, p.owed = false, nil
	p.release()
	if p.over {
		p.hangUp()
		return errCarrierClosed
	}
	return err
}

func (p *parked) release() {
	if p.out == nil {
		return
	}
	if cap(*p.out) <= maxPooled {
		*p.out = (*p.out)[:0]
		eventBuffers.Put(p.out)
	}
	p.out = nil
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
	p.leave()
	switch {
	case p.draining && err == nil:
		// Drain hangs up.
	case p.draining || !orderly || !p.finish() || p.server == nil || p.http.closing.Load():
		p.hangUp()
	case p.http.lot.poller.Load().Forget(p.watch):
		p.http.await(p.server, p.conn, p.early)
	default:
		_ = p.conn.Close() // the client was quicker
	}
}

// leave notes under the lock that no event follows.
func (p *parked) leave() {
	p.over = true
	p.beat.remove()
	if p.session != nil {
		p.session.active.Add(-1)
	}
	if !p.draining {
		p.release()
	}
}

// finish writes the end of the response, if that is possible at once.
func (p *parked) finish() bool {
	if p.complete {
		return true
	}
	p.complete = true
	n, err := park.TryWrite(p.conn, lastChunk)
	return err == nil && n == len(lastChunk)
}

// hangUp closes the connection. A Drain that writes to it fails.
func (p *parked) hangUp() {
	p.http.lot.poller.Load().Forget(p.watch)
	_ = p.conn.Close()
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
	_ = p.conn.Close()
	p.mu.Unlock()
	p.stream.Detach(p)
}

// due keeps the connection alive.
func (p *parked) due() (again bool) {
	p.mu.Lock()
	over := p.over
	p.mu.Unlock()
	if over {
		return false
	}
	p.stream.KeepAlive(p.http.opt.KeepAlive * 2 / 3)
	return true
}
