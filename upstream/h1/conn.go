package h1

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/mcpbridge/bridge/internal/http1"
	"github.com/mcpbridge/bridge/internal/socket"
)

// readBuffer is the size of a connection's read buffer, in bytes: a small
// answer is one read. Larger bodies are read past it into their destination.
const readBuffer = 4 << 10

// readers are lent to connections for as long as they have an exchange: after a
// rush hundreds may be idle for a while.
var readers = sync.Pool{New: func() any { return bufio.NewReaderSize(nil, readBuffer) }}

// conn is one connection and the exchange on it.
type conn struct {
	client *Client
	nc     *socket.Conn
	br     *bufio.Reader // nil while idle

	interrupt func()      // closes nc
	stop      func() bool // ends the watch on the context; nil without one

	since   time.Time     // idle since
	reuse   time.Duration // how long it may be idle
	pending string        // what must still arrive for the last response to end

	resp   Response
	peeked [32]byte
}

func newConn(c *Client, nc net.Conn) *conn {
	cn := &conn{client: c, nc: socket.New(nc)}
	cn.borrow()
	cn.interrupt = func() { _ = nc.Close() }
	cn.resp.cn = cn
	return cn
}

// borrow takes a reader, unless there is one.
func (cn *conn) borrow() {
	if cn.br == nil {
		cn.br = readers.Get().(*bufio.Reader)
		cn.br.Reset(cn.nc)
	}
}

// giveBack ends the use of the reader, which must be empty.
func (cn *conn) giveBack() {
	cn.br.Reset(nil)
	readers.Put(cn.br)
	cn.br = nil
}

// readiness is what an idle connection is good for.
type readiness int

const (
	ready   readiness = iota
	unready           // its last response has not ended yet
	dead
)

// state judges an idle connection before its reuse. Bytes that nobody asked
// for make it unusable, like its end.
func (cn *conn) state(now time.Time) readiness {
	age := now.Sub(cn.since)
	if age >= cn.reuse {
		return dead
	}
	if cn.pending == "" && !cn.nc.Peekable() {
		return ready
	}
	buf := cn.peeked[:]
	n, open := cn.nc.Peek(buf)
	switch {
	case !open || n > len(cn.pending):
		return dead
	case cn.pending == "":
		return ready // n is 0
	case string(buf[:n]) != cn.pending[:n]:
		return dead
	case n < len(cn.pending):
		if age >= settleTime {
			return dead
		}
		return unready
	}
	if _, err := io.ReadFull(cn.nc, buf[:n]); err != nil {
		return dead
	}
	cn.pending = ""
	if n, open = cn.nc.Peek(buf); n > 0 || !open { // which what was pending has hidden
		return dead
	}
	return ready
}

// exchange writes r and reads the response head. nothing reports that not one
// byte of a response came. On failure the connection is gone.
func (cn *conn) exchange(ctx context.Context, r *Request) (resp *Response, failed *Error, nothing bool) {
	cn.stop = watch(ctx, cn.interrupt)
	cn.resp.reset()
	cn.borrow()
	n, err := cn.write(r)
	if err != nil && n == 0 {
		cn.drop()
		return nil, &Error{Op: OpWrite, Err: err}, true
	}
	// A server may refuse a request before it has read all of it; then the
	// write fails, but the response is there.
	writeErr := err
	limit := cn.client.opt.HeaderTimeout
	if writeErr != nil {
		limit = settleTime
	}
	if limit > 0 {
		_ = cn.nc.SetReadDeadline(time.Now().Add(limit))
	}
	nothing, err = cn.resp.readHead(cn.br, cn.client.opt.MaxHead)
	if err != nil {
		cn.drop()
		op := OpRead
		if errors.Is(err, http1.ErrMalformed) {
			op = OpParse
		}
		return nil, &Error{Op: op, Sent: true, Err: err}, nothing
	}
	if limit > 0 {
		_ = cn.nc.SetReadDeadline(time.Time{})
	}
	if writeErr != nil {
		cn.resp.close = true
	}
	return &cn.resp, nil, false
}

// write sends the request in one system call where the socket takes it.
func (cn *conn) write(r *Request) (int, error) {
	return cn.nc.WritePieces([3][]byte{r.Wire, r.Body})
}

// unwatch ends the watch on the context. It reports whether the connection
// stayed untouched by it.
func (cn *conn) unwatch() bool {
	stop := cn.stop
	cn.stop = nil
	return stop == nil || stop()
}

// release makes the connection idle after a response that ended, or that ends
// when pending has arrived.
func (cn *conn) release(pending string) {
	if !cn.unwatch() {
		cn.client.discard(cn)
		return
	}
	cn.giveBack()
	cn.pending, cn.since, cn.reuse = pending, time.Now(), cn.client.opt.IdleTimeout
	if cn.resp.reuse > 0 {
		cn.reuse = min(cn.reuse, cn.resp.reuse)
	}
	cn.client.put(cn)
}

// drop closes the connection.
func (cn *conn) drop() {
	cn.unwatch()
	cn.client.discard(cn)
}

// broken reports whether err says that the peer ended or broke the connection,
// as opposed to a deadline.
func broken(err error) bool {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return false
	}
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ETIMEDOUT) // the kernel's: nobody is there
}
