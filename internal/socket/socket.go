// Package socket reads from and writes to TCP and Unix connections without telling Go's
// scheduler of it.
//
// What net does around a system call is made for calls that may take long: the scheduler notes
// it, and its monitor, which then looks every 20 µs, gives the processor away when it finds the same
// call twice. Go's sockets never block; but a write to a neighbour on the same machine does the
// neighbour's receiving as well, and takes about as long as the monitor waits. With many small messages
// that costs a tenth of a call and more (ADR 22). Here the call is made as it is: the same one, on the
// same descriptor, with the deadlines and the waiting of net.
//
// Writes of many bytes are left to net, and reads of many take some at a time: others should not wait
// that long for the processor. Left to net is everything where there is no socket of the system's (TLS, the pipes of tests), on other
// systems than Linux, with the build tag purego, and under the race detector, which learns from net
// what one end of a connection tells the other.
package socket

import (
	"context"
	"errors"
	"net"
	"sync"
	"syscall"
)

const (
	// most is up to how many bytes are moved in one call of this package's own: copying them takes some 10 µs.
	most = 128 << 10
	// mostPieces is how many pieces a write may have.
	mostPieces = 3
)

// Conn is a connection. As with any other several goroutines may read, and write: one after the other.
type Conn struct {
	net.Conn
	direct *direct // nil: net does it all
	peeker peeker

	reading sync.Mutex // held while one does
	writing sync.Mutex // held while one does; guards what follows

	// What net is given to write, without an allocation.
	pieces  [mostPieces][]byte
	buffers net.Buffers // in pieces
}

// asItIs is a connection around one of the system's, which it offers (syscall.Conn), and whose bytes it
// reads and writes as they are.
type asItIs interface{ AsItIs() }

// New returns nc, read and written by this package.
func New(nc net.Conn) *Conn {
	if c, ok := nc.(*Conn); ok {
		return c
	}
	c := &Conn{Conn: nc}
	if raw, err := c.SyscallConn(); err == nil {
		c.direct = newDirect(nc, raw)
		c.peeker.init(raw)
	}
	return c
}

// Read implements net.Conn.
func (c *Conn) Read(p []byte) (int, error) {
	if c.direct == nil || len(p) == 0 {
		return c.Conn.Read(p)
	}
	c.reading.Lock()
	defer c.reading.Unlock()
	return c.direct.read(p[:min(len(p), most)])
}

// Write implements net.Conn.
func (c *Conn) Write(p []byte) (int, error) { return c.WritePieces([mostPieces][]byte{p}) }

// WritePieces writes pieces one after the other, in one system call where the socket takes them.
func (c *Conn) WritePieces(pieces [mostPieces][]byte) (int, error) {
	size := 0
	for _, p := range pieces {
		size += len(p)
	}
	if len(pieces[0]) == size && (c.direct == nil || size == 0 || size > most) {
		return c.Conn.Write(pieces[0])
	}
	c.writing.Lock()
	defer c.writing.Unlock()
	if c.direct == nil || size > most {
		return c.leaveLocked(pieces)
	}
	return c.direct.write(pieces, size)
}

// leaveLocked has net write what there is to write.
func (c *Conn) leaveLocked(pieces [mostPieces][]byte) (int, error) {
	c.buffers = c.pieces[:0]
	for _, p := range pieces {
		if len(p) > 0 {
			c.buffers = append(c.buffers, p)
		}
	}
	n, err := c.buffers.WriteTo(c.Conn)
	c.pieces = [mostPieces][]byte{}
	return int(n), err
}

// Peekable reports whether Peek can tell.
func (c *Conn) Peekable() bool { return c.peeker.raw != nil }

// Peek copies what has arrived into buf, and leaves it where it is. open is false at the
// connection's end. It never waits. There must be one Peek at a time, and no Read.
func (c *Conn) Peek(buf []byte) (n int, open bool) {
	if !c.Peekable() {
		return 0, true
	}
	return c.peeker.peek(buf)
}

// SyscallConn implements syscall.Conn.
func (c *Conn) SyscallConn() (syscall.RawConn, error) {
	if c.Peekable() {
		return c.peeker.raw, nil
	}
	if of, ok := c.Conn.(syscall.Conn); ok {
		return of.SyscallConn()
	}
	return nil, errors.ErrUnsupported
}

// CloseWrite closes the sending half where that is possible.
func (c *Conn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}

// Dial is how connections are opened.
type Dial = func(ctx context.Context, network, address string) (net.Conn, error)

// Dialer returns next with connections of this package.
func Dialer(next Dial) Dial {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		nc, err := next(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return New(nc), nil
	}
}

// Listener returns one whose connections are of this package.
func Listener(inner net.Listener) net.Listener { return listener{inner} }

type listener struct{ net.Listener }

// Accept implements net.Listener.
func (l listener) Accept() (net.Conn, error) {
	nc, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return New(nc), nil
}
