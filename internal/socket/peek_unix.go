//go:build unix

package socket

import "syscall"

// peeker looks at what a socket has received without taking it.
type peeker struct {
	raw  syscall.RawConn
	look func(fd uintptr) bool // looked, made once: a look must not cost an allocation
	buf  []byte
	n    int
	open bool
}

func (p *peeker) init(raw syscall.RawConn) { p.raw, p.look = raw, p.looked }

// peek is Conn.Peek.
func (p *peeker) peek(buf []byte) (n int, open bool) {
	p.buf, p.n, p.open = buf, 0, false
	err := p.raw.Read(p.look)
	p.buf = nil
	return p.n, err == nil && p.open
}

func (p *peeker) looked(fd uintptr) bool {
	n, err := Look(fd, p.buf)
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
