// Package h1 is a lean HTTP/1.1 client for one origin over plain connections.
//
// net/http's transport runs two goroutines per connection and hands every
// request and response between them; for small calls that costs more than the
// bridge's own work. Here the calling goroutine writes the request in one go
// and reads the response itself. The package owns connections, their reuse and
// the framing of messages. It knows no redirects, cookies, proxies or TLS, and
// no MCP.
//
// Key invariants:
//   - A connection is used by one exchange at a time, and is reused only when
//     its last response was read exactly to its end.
//   - A connection is not reused when the server's announced Keep-Alive timeout
//     is nearly over, nor when one of its age turned out to be lost.
//   - Cancelling the context closes the connection; whether that happened is
//     known before the connection is reused.
//   - A request is written a second time only when no byte of it left, or when
//     the caller allowed it and no byte of a response came.
package h1

import (
	"cmp"
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/mcpbridge/bridge/internal/http1"
)

// Defaults of Options.
const (
	DefaultMaxIdle     = 256
	DefaultIdleTimeout = 90 * time.Second
	DefaultMaxHead     = http1.MaxHead
)

// Options configures New. Zero values mean the defaults.
type Options struct {
	// Network and Addr are given to Dial.
	Network, Addr string
	Dial          func(ctx context.Context, network, addr string) (net.Conn, error)
	// DialTimeout bounds connecting; 0 leaves it to the context.
	DialTimeout time.Duration
	// HeaderTimeout bounds the wait for a response head; 0 leaves it to the
	// context.
	HeaderTimeout time.Duration
	MaxIdle       int
	IdleTimeout   time.Duration
	// MaxHead bounds a response head, and a trailer, in bytes.
	MaxHead int
}

// Client keeps connections to one origin. It is safe for concurrent use.
type Client struct {
	opt Options

	mu     sync.Mutex
	idle   []*conn // the most recently used last
	open   map[*conn]struct{}
	reaper *time.Timer // armed while idle is not empty
	armed  bool
	closed bool
}

// New makes a client without connections.
func New(opt Options) *Client {
	opt.Network = cmp.Or(opt.Network, "tcp")
	if opt.Dial == nil {
		opt.Dial = (&net.Dialer{}).DialContext
	}
	opt.MaxIdle = cmp.Or(opt.MaxIdle, DefaultMaxIdle)
	opt.IdleTimeout = cmp.Or(opt.IdleTimeout, DefaultIdleTimeout)
	opt.MaxHead = cmp.Or(opt.MaxHead, DefaultMaxHead)
	return &Client{opt: opt, open: map[*conn]struct{}{}}
}

// Op is the step at which an exchange failed.
type Op string

// The steps of an exchange.
const (
	OpDial  Op = "dial"
	OpWrite Op = "write"
	OpRead  Op = "read"  // the connection ended or broke
	OpParse Op = "parse" // the response is not HTTP, or exceeds a limit
)

// Error is an exchange that brought no response head.
type Error struct {
	Op Op
	// Sent is false when no byte of the request left.
	Sent bool
	Err  error
}

func (e *Error) Error() string { return "h1: " + string(e.Op) + ": " + e.Err.Error() }

func (e *Error) Unwrap() error { return e.Err }

// ErrClosed is the cause of failures after Close.
var ErrClosed = errors.New("client closed")

// Request is one message to write.
type Request struct {
	// Wire is the request line, the header and, for small bodies, the body.
	Wire []byte
	// Body follows Wire; nil when Wire has all. A separate large body is not
	// copied.
	Body []byte
	// Resend allows a second attempt although the first may have been
	// executed, when the connection broke before a response began.
	Resend bool
}

// Do writes a request and reads the head of its response. The error is an
// *Error. The caller must end the response with Finish or Abort; neither Wire
// nor Body is used after Do returns.
func (c *Client) Do(ctx context.Context, r *Request) (*Response, error) {
	began := time.Now()
	cn := c.takeIdle(began)
	if cn != nil {
		resp, err, nothing := cn.exchange(ctx, r)
		if err == nil {
			return resp, nil
		}
		if distrusts(ctx, r, err) {
			c.distrust(began)
		}
		again := !err.Sent || r.Resend && nothing && broken(err)
		if !again || ctx.Err() != nil {
			return nil, err
		}
	}
	cn, err := c.dial(ctx)
	if err != nil {
		return nil, &Error{Op: OpDial, Err: err}
	}
	resp, failed, _ := cn.exchange(ctx, r)
	if failed != nil {
		return nil, failed
	}
	return resp, nil
}

// distrusts reports whether a failure says something about other connections: the loss of one,
// and that what only asks was not answered by its deadline. That somebody gave up does not.
func distrusts(ctx context.Context, r *Request, err *Error) bool {
	if gone := ctx.Err(); gone != nil {
		return r.Resend && errors.Is(gone, context.DeadlineExceeded)
	}
	return broken(err)
}

// Close closes all connections, those in use as well.
func (c *Client) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	if c.reaper != nil {
		c.reaper.Stop()
	}
	for cn := range c.open {
		_ = cn.nc.Close()
	}
	clear(c.open)
	c.idle = nil
}

func (c *Client) dial(ctx context.Context) (*conn, error) {
	c.mu.Lock()
	closed := c.closed
	c.mu.Unlock()
	if closed {
		return nil, ErrClosed
	}
	if c.opt.DialTimeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.opt.DialTimeout)
		defer cancel()
	}
	nc, err := c.opt.Dial(ctx, c.opt.Network, c.opt.Addr)
	if err != nil {
		return nil, err
	}
	cn := newConn(c, nc)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		_ = nc.Close()
		return nil, ErrClosed
	}
	c.open[cn] = struct{}{}
	return cn, nil
}

// discard closes a connection for good.
func (c *Client) discard(cn *conn) {
	_ = cn.nc.Close()
	c.mu.Lock()
	delete(c.open, cn)
	c.mu.Unlock()
}
