//go:build unix

package h1

import (
	"net"
	"syscall"
)

// probe looks at what a socket has received without taking it.
type probe struct {
	raw  syscall.RawConn
	look func(fd uintptr) bool // made once: it must not cost an allocation
	buf  []byte
	n    int
	open bool
}

// newProbe returns nil for connections that are no sockets.
func newProbe(nc net.Conn) *probe {
	sc, ok := nc.(syscall.Conn)
	if !ok {
		return nil
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return nil
	}
	p := &probe{raw: raw}
	p.look = func(fd uintptr) bool {
		n, _, err := syscall.Recvfrom(int(fd), p.buf, syscall.MSG_PEEK)
		switch {
		case err == syscall.EAGAIN || err == syscall.EINTR:
			p.n, p.open = 0, true
		case err != nil:
			p.n, p.open = 0, false
		default:
			p.n, p.open = n, n > 0
		}
		return true // never wait
	}
	return p
}

// peek copies what has arrived into buf. open is false at the connection's end.
func (p *probe) peek(buf []byte) (n int, open bool) {
	p.buf = buf
	err := p.raw.Read(p.look)
	p.buf = nil
	return p.n, err == nil && p.open
}
