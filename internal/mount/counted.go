package mount

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/mcpbridge/bridge/internal/socket"
	"github.com/mcpbridge/bridge/observe"
	"github.com/mcpbridge/bridge/upstream/streamable"
)

// counted returns next with the connections that it makes counted while they are open.
func counted(open *atomic.Int64, next socket.Dial) socket.Dial {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := next(ctx, network, address)
		if err != nil {
			return nil, err
		}
		open.Add(1)
		return &countedConn{Conn: conn, gone: sync.OnceFunc(func() { open.Add(-1) })}, nil
	}
}

// countedConn is a connection that is counted.
type countedConn struct {
	net.Conn
	gone func()
}

// Close implements net.Conn.
func (c *countedConn) Close() error {
	c.gone()
	return c.Conn.Close()
}

// AsItIs is for package socket: counting leaves the bytes as they are.
func (*countedConn) AsItIs() {}

// SyscallConn implements syscall.Conn: who is about to use an idle connection again looks at its
// descriptor, whether the server has closed it.
func (c *countedConn) SyscallConn() (syscall.RawConn, error) {
	if of, ok := c.Conn.(syscall.Conn); ok {
		return of.SyscallConn()
	}
	return nil, errors.ErrUnsupported
}

// Connections returns how many connections to the server are open.
func (m *Mount) Connections() int { return int(m.dialed.Load()) }

// Processes returns how many processes serve one session each, and how many may; a limit
// of 0: the server is no command.
func (m *Mount) Processes() (running, limit int) {
	if l, ok := m.server.(*local); ok {
		return l.places.Taken(), l.places.Size()
	}
	return 0, 0
}

// Shared returns how many processes serve everybody: one or none.
func (m *Mount) Shared() int {
	if l, ok := m.server.(*local); ok && l.stdio.Running() {
		return 1
	}
	return 0
}

// Behind tells what there is to see of the way to the server.
func (m *Mount) Behind() observe.Behind {
	b := observe.Behind{Connections: m.Connections(), Cached: m.Bridge.Cached(), Shared: m.Shared()}
	all, waiting := m.Bridge.Listens()
	b.Listens, b.Reconnecting = all-waiting, waiting
	if l, ok := m.server.(*local); ok {
		b.Command = true
		b.Children, b.ChildLimit = m.Processes()
		b.Printed = l.opt.Command.Stdio.Tail.Lines()
	}
	return b
}

// TokenExpires returns when the token ends with which the bridge itself is signed in to
// the server; zero: it has none, or nobody said.
func (m *Mount) TokenExpires() time.Time {
	if m.agent == nil {
		return time.Time{}
	}
	if login := m.agent.Login(); login != nil && login.Access != "" {
		return login.Expires
	}
	return time.Time{}
}

// dialer returns how connections to the server are opened, whoever uses them.
func (m *Mount) dialer(opt *Options) socket.Dial {
	dial := opt.Upstream.Dial
	if dial == nil {
		dial = streamable.Dialer(opt.Upstream.DialTimeout)
	}
	if opt.Watch != nil {
		dial = counted(&m.dialed, dial)
	}
	if !opt.Upstream.StandardTransport {
		dial = socket.Dialer(dial)
	}
	return dial
}
