package roundtrip

import (
	"crypto/tls"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// conn is one connection below http.Transport, and below TLS. It is
//
//	busy  from Use.begin, or its first write, to Use.End
//	idle  until the next request, or until it is given up
//	gone  after Close
type conn struct {
	net.Conn
	transport *Transport
	turn      chan struct{} // holds a token during an exchange
	written   atomic.Int64  // bytes

	settled atomic.Bool // it has its first request, or will never have one
	// guarded by the transport's lock
	forget  func() bool // the request that it is dialed for; nil without one
	counted bool        // as spare

	mu    sync.Mutex
	idle  bool
	gone  bool
	since time.Time     // when it became idle
	reuse time.Duration // how long it may be idle; 0: as long as http.Transport keeps it
	timer *time.Timer   // gives it up; nil until a server announced a timeout
}

// below returns what connect made, from under what is on top.
func below(nc net.Conn) *conn {
	for {
		switch c := nc.(type) {
		case *opening:
			nc = c.Conn
		case *tls.Conn:
			nc = c.NetConn()
		default:
			return nc.(*conn)
		}
	}
}

// Write implements net.Conn. A connection that was given up takes nothing, so
// that http.Transport knows that nothing left.
func (c *conn) Write(p []byte) (int, error) {
	if !c.use() {
		return 0, net.ErrClosed
	}
	n, err := c.Conn.Write(p)
	c.written.Add(int64(n))
	return n, err
}

// use makes the connection busy, and reports whether it is still there.
func (c *conn) use() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.idle = false
	return !c.gone
}

// rest makes the connection idle, for reuse at most if that is not 0.
func (c *conn) rest(reuse time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.gone {
		return
	}
	c.idle, c.since, c.reuse = true, time.Now(), reuse
	switch {
	case reuse == 0:
	case c.timer == nil:
		c.timer = time.AfterFunc(reuse, c.expire)
	default:
		c.timer.Reset(reuse)
	}
}

// expire gives the connection up if its time is over.
func (c *conn) expire() {
	c.giveUp(func() bool { return c.reuse > 0 && time.Since(c.since) >= c.reuse })
}

// giveUp closes the connection if it is idle and fits, which is asked with the
// lock held.
func (c *conn) giveUp(fits func() bool) {
	c.mu.Lock()
	over := c.idle && !c.gone && fits()
	c.gone = c.gone || over
	c.mu.Unlock()
	if over {
		_ = c.Close()
	}
}

// Close implements net.Conn.
func (c *conn) Close() error {
	c.settle()
	c.mu.Lock()
	c.gone = true
	if c.timer != nil {
		c.timer.Stop()
	}
	c.mu.Unlock()
	t := c.transport
	t.mu.Lock()
	delete(t.conns, c)
	t.mu.Unlock()
	return c.Conn.Close()
}

// distrust gives up the idle connections that nobody has heard of since the given
// time.
func (t *Transport) distrust(since time.Time) {
	t.mu.Lock()
	all := make([]*conn, 0, len(t.conns))
	for c := range t.conns {
		all = append(all, c)
	}
	t.mu.Unlock()
	for _, c := range all {
		c.giveUp(func() bool { return !c.since.After(since) })
	}
}
