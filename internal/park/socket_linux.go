package park

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"

	"github.com/mcpbridge/bridge/internal/socket"
	"golang.org/x/sys/unix"
)

// Dup returns a second descriptor of a connection, which stands until both are
// closed.
func Dup(conn net.Conn) (Socket, error) {
	c, ok := conn.(syscall.Conn)
	if !ok || !Parkable(conn) {
		return 0, ErrUnsupported
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, err
	}
	dup := 0
	closed := raw.Control(func(fd uintptr) { dup, err = unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, 0) })
	if closed != nil {
		return 0, closed
	}
	if err != nil {
		return 0, os.NewSyscallError("dup", err)
	}
	return Socket(dup), nil
}

// Left reports whether the peer of a connection has closed it, as far as that shows
// without reading: what it has sent ahead hides it.
func Left(conn net.Conn) bool {
	c, ok := conn.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return true
	}
	g := glances.Get().(*glance)
	defer glances.Put(g)
	closed := raw.Control(g.look)
	return g.left || closed != nil
}

// glance is a look at a socket, which every call takes some of.
type glance struct {
	one  [1]byte
	left bool
	look func(fd uintptr)
}

var glances = sync.Pool{New: func() any {
	g := new(glance)
	g.look = func(fd uintptr) {
		_, err := waiting(fd, g.one[:])
		g.left = err != nil
	}
	return g
}}

// Close closes the descriptor.
func (s Socket) Close() { _ = unix.Close(int(s)) } // there is nothing to do about an error

// Conn returns the connection of a socket, which it closes. On an error the
// socket stays as it is; Exhausted tells whether it is worth trying again.
func (s Socket) Conn() (net.Conn, error) {
	dup, err := unix.FcntlInt(uintptr(s), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("dup", err)
	}
	f := os.NewFile(uintptr(dup), "socket")
	defer f.Close()
	conn, err := net.FileConn(f) // has yet another descriptor
	if err != nil {
		return nil, err
	}
	if conn.RemoteAddr() == nil { // the peer has reset it
		_ = conn.Close()
		return nil, net.ErrClosed
	}
	s.Close()
	return conn, nil
}

// Exhausted reports that something failed only because too many files are open.
func Exhausted(err error) bool {
	return errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE)
}

// TryWrite writes as much as the socket takes at once. It is no error that this
// is less than everything, or nothing.
func (s Socket) TryWrite(b []byte) (n int, err error) {
	for n < len(b) {
		some, err := socket.TryWrite(uintptr(s), b[n:])
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.EAGAIN):
			return n, nil
		case err != nil:
			return n, os.NewSyscallError("write", err)
		}
		n += some
	}
	return n, nil
}

// Waiting reports whether there is something to read. The error is io.EOF when
// the peer will send nothing more.
func (s Socket) Waiting() (bool, error) {
	var one [1]byte
	return waiting(uintptr(s), one[:])
}

func waiting(fd uintptr, one []byte) (bool, error) {
	n, err := socket.Look(fd, one)
	switch {
	case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.EINTR):
		return false, nil
	case err != nil:
		return false, os.NewSyscallError("recvfrom", err)
	case n == 0:
		return false, io.EOF
	}
	return true, nil
}
