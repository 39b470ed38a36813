package roundtrip

import (
	"context"
	"net"
)

// spares bounds the connections of a Transport that are open, or being opened, for nobody.
// http.Transport dials for each request that finds no idle connection, and goes on with it when
// the request was given up, has got another connection meanwhile, or has another one dialed. A few of those are of use to
// the next requests. All of them would be every file descriptor, where a server is slow to take
// connections: what bounds requests knows nothing of those that have gone.
const spares = 16

// asker finds a request's use in the context of its dial, which does not end with it.
type asker struct{}

// connect opens a connection and keeps an eye on it.
func (t *Transport) connect(ctx context.Context, network, addr string) (net.Conn, error) {
	use := ctx.Value(asker{}).(*Use)
	ctx, end := context.WithCancel(ctx)
	c := &conn{transport: t, turn: make(chan struct{}, 1)}
	gone := func() {
		if !c.spare() {
			end()
		}
	}
	t.mu.Lock()
	c.forget = context.AfterFunc(use.request, gone)
	before := use.another
	use.another = gone
	t.mu.Unlock()
	if before != nil {
		before()
	}
	nc, err := t.dial(ctx, network, addr)
	if err != nil {
		c.settle()
		end()
		return nil, err
	}
	c.Conn = nc
	t.mu.Lock()
	t.conns[c] = struct{}{}
	t.mu.Unlock()
	context.AfterFunc(ctx, func() { _ = c.Close() }) // handshakes come yet
	return c, nil
}

// spare is told that the request has gone for which the connection is dialed, or has another one
// dialed. It reports whether the connection may stay.
func (c *conn) spare() bool {
	t := c.transport
	t.mu.Lock()
	defer t.mu.Unlock()
	if c.forget != nil {
		c.forget()
		c.forget = nil // and what the request holds
	}
	switch {
	case c.settled.Load(), c.counted:
		return true
	case t.spares == spares:
		return false
	}
	c.counted = true
	t.spares++
	return true
}

// settle says that a connection has its first request, or will never have one.
func (c *conn) settle() {
	if c.settled.Load() {
		return
	}
	t := c.transport
	t.mu.Lock()
	defer t.mu.Unlock()
	c.settled.Store(true)
	if c.forget != nil {
		c.forget()
		c.forget = nil
	}
	if c.counted {
		c.counted = false
		t.spares--
	}
}
