// Package park keeps connections that nobody serves: those at rest between two
// events of a stream, or between two requests. A connection that waits in a
// goroutine costs its stack, and in net/http a second goroutine, two buffers and
// the request besides, some 25 KiB. Even the bare net.Conn has about 1 KiB in the
// runtime's poller, which never gives it back. Here a connection is a descriptor
// and an entry in a table, and one goroutine waits for all of them.
//
// The package owns the waiting, and writing without waiting. It knows nothing
// about what is said on a connection.
package park

import (
	"errors"
	"net"
)

// Why a connection cannot be parked.
var (
	ErrUnsupported = errors.New("park: not supported on this system, or for this connection")
	ErrClosed      = errors.New("park: poller is closed")
)

// Event is what a watch waits for. A broken connection counts as any event.
type Event uint8

// The events.
const (
	HangUp Event = iota + 1 // the peer closed the connection, or its sending half
	Data                    // there is something to read, or the peer hung up
	Room                    // writing is possible
)

// Owner is told what happened to its socket.
type Owner interface {
	// Ready is called at most once per watch, which is over by then. It runs
	// on the goroutine that all sockets share and must not wait.
	Ready()
}

// Watch names one watch of a Poller; the zero Watch is none.
type Watch uint64

// Socket is the descriptor of a connection that the runtime knows nothing about.
// Nothing protects it from use after Close, when its number may be that of
// another connection: its owner must.
type Socket int32

// Parkable reports whether Dup can work for a connection: one of TCP or a Unix
// socket, without anything around it.
func Parkable(conn net.Conn) bool {
	switch conn.(type) {
	case *net.TCPConn, *net.UnixConn:
		return supported
	}
	return false
}
