// Package park watches connections that nobody serves: those at rest between
// two events of a stream, or between two requests. A connection that waits in a
// goroutine costs its stack, and in net/http a second goroutine, two buffers and
// the whole request besides, some 25 KiB. Here it costs an entry in a table, and
// one goroutine waits for all of them.
//
// The package owns the waiting, and writing without waiting. It knows nothing
// about what is said on a connection, and it never closes one.
package park

import (
	"errors"
	"net"
	"syscall"
)

// Why a connection cannot be watched.
var (
	ErrUnsupported = errors.New("park: not supported on this system, or for this connection")
	ErrClosed      = errors.New("park: poller is closed")
)

// Event is what a watch waits for.
type Event uint8

// The events. Who waits for data is told of a hang-up, too.
const (
	HangUp Event = iota + 1 // the peer closed the connection, or its sending half
	Data                    // there is something to read
)

// Owner is told what happened to its connection.
type Owner interface {
	// Ready is called at most once per watch, which is over by then. It runs
	// on the goroutine that all connections share and must not wait.
	Ready()
}

// Watch names one watch of a Poller; the zero Watch is none.
type Watch uint64

// Pollable reports whether a connection can be watched: one of TCP or a Unix
// socket, without anything around it.
func Pollable(conn net.Conn) bool {
	switch conn.(type) {
	case *net.TCPConn, *net.UnixConn:
		return supported
	}
	return false
}

// raw returns the way to a connection's descriptor.
func raw(conn net.Conn) (syscall.RawConn, error) {
	if c, ok := conn.(syscall.Conn); ok {
		return c.SyscallConn()
	}
	return nil, ErrUnsupported
}
