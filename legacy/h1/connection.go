package h1

import (
	"context"
	"net"
	"sync/atomic"
	"time"

	"github.com/mcpbridge/bridge/internal/meter"
	"github.com/mcpbridge/bridge/internal/socket"
)

// What a connection is busy with, as a shutdown sees it.
const (
	idle      int32 = iota // it waits for a request's head
	active                 // a handler runs
	receiving              // it waits for what a request's body lacks
	dismissed              // it ends unless something has just been read; whoever makes it so holds the lock of its input
)

// conn is one connection. Its goroutine reads heads, runs the handlers and ends
// with it.
type conn struct {
	server *Server
	nc     net.Conn
	sock   *socket.Conn // is nc
	state  atomic.Int32
	in     input
	head   head
	values context.Context // what requests inherit
	served bool            // a request at least
	stray  int             // line ends that may stand before the next head
	given  bool            // nc is somebody else's
	tab    *meter.Tab      // what the connection is charged for; nil: nothing
	early  []byte          // a head that did not fit; nil: what was read is in the buffer

	writeUntil time.Time // the write deadline, unless a handler has set another one
}

func newConn(s *Server, nc net.Conn) *conn {
	cn := &conn{server: s, nc: nc, sock: socket.New(nc)}
	cn.in.init(cn.sock)
	return cn
}
