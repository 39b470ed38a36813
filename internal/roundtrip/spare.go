package roundtrip

import (
	"context"
	"errors"
	"net"
)

// spares bounds the connections of a Transport that are open, or being opened, for nobody.
// http.Transport dials for each request that finds no idle connection, and goes on with it when
// the request was given up, has got another connection meanwhile, or has another one dialed. A few of those are of use to
// the next requests. All of them would be every file descriptor, where a server is slow to take
// connections: what bounds requests knows nothing of those that have gone.
const spares = 16

// dials bounds the connections that are opened for one request. http.Transport opens another one
// whenever no connection over HTTP/2 takes the request, also when that is what the server says of
// each (SETTINGS_MAX_CONCURRENT_STREAMS 0). A server that takes few requests at a time on a
// connection may have others take what was opened for this one.
const dials = 32

// useless bounds the connections over HTTP/2 beyond those that the requests under way can have.
// http.Transport keeps each one for as long as an idle one may live on which the server takes
// nothing any more, and opens others; those that are of use take many requests.
const useless = 64

var (
	errDials = errors.New("the server accepts connections, and no requests on them")
	errIdle  = errors.New("too many connections to the server are open that it takes no further requests on")
)

// asker finds a request's use in the context of its dial, which does not end with it.
type asker struct{}

// refuses says why no connection is opened for a request.
func (t *Transport) refuses(u *Use) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	u.dials++
	switch {
	case u.dials > dials:
		return errDials
	case t.shared >= int(t.uses.Load())+useless:
		return errIdle
	}
	return nil
}

// connect opens a connection and keeps an eye on it.
func (t *Transport) connect(ctx context.Context, network, addr string) (net.Conn, error) {
	use := ctx.Value(asker{}).(*Use)
	if err := t.refuses(use); err != nil {
		return nil, &net.OpError{Op: "dial", Net: network, Err: err}
	}
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
		c.settle(false)
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

// settle says that a connection has its first request, or will never have one; shared, that
// it serves several at once.
func (c *conn) settle(shared bool) {
	if c.settled.Load() {
		return
	}
	t := c.transport
	t.mu.Lock()
	defer t.mu.Unlock()
	c.settled.Store(true)
	if shared {
		c.shared = true
		t.shared++
	}
	if c.forget != nil {
		c.forget()
		c.forget = nil
	}
	if c.counted {
		c.counted = false
		t.spares--
	}
}
