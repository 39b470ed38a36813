package roundtrip

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/textproto"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/mcpbridge/bridge/internal/http1"
)

// refused names what ails a server that agrees to nothing but HTTP/2 in the handshake.
func refused(err error) error {
	if text := err.Error(); strings.Contains(text, "tls: no application protocol") || strings.Contains(text, "tls: server selected unadvertised ALPN protocol") {
		return fmt.Errorf("%w (%w)", http1.ErrHTTP2, err)
	}
	return err
}

// Judged names what ails a response that had begun: where the connection has not ended, it is
// net/http that cannot read on. Its words are left out, since it quotes what came.
func (u *Use) Judged(err error) error {
	_, field := errors.AsType[textproto.ProtocolError](err)
	switch {
	case errors.Is(err, http1.ErrMalformed), broken(err):
		return err
	case field && u.opening != nil && u.opening.ended.Load():
		return io.ErrUnexpectedEOF // which may have cut off the field
	case strings.Contains(err.Error(), "response headers exceeded"):
		return fmt.Errorf("%w: head too large", http1.ErrMalformed)
	}
	return http1.ErrMalformed
}

// broken reports whether err is the end of a connection, or of the wish for a response.
func broken(err error) bool {
	if _, ok := errors.AsType[net.Error](err); ok {
		return true
	}
	for _, end := range []error{io.EOF, io.ErrUnexpectedEOF, io.ErrClosedPipe, net.ErrClosed, context.Canceled} {
		if errors.Is(err, end) {
			return true
		}
	}
	return strings.Contains(err.Error(), "tls: ")
}

// opening is a connection whose first bytes are looked at: a server that speaks only HTTP/2 may
// begin with a frame of that, after which nothing comes that net/http would show.
type opening struct {
	net.Conn
	begun bool
	ended atomic.Bool
	// a proxy has yet to let it through, for which it has a time
	waits bool
}

// opened has the first bytes of a connection looked at.
func (t *Transport) opened(ctx context.Context, network, addr string) (net.Conn, error) {
	nc, err := t.connect(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return t.through(ctx, nc), nil
}

// through gives a proxy its time to let a connection through, if it goes to a server over TLS behind
// one: http.Transport has a minute for that, and with SOCKS any time.
func (t *Transport) through(ctx context.Context, nc net.Conn) net.Conn {
	c := &opening{Conn: nc}
	to := ctx.Value(asker{}).(*Use).url
	if proxy, _ := t.std.Proxy(&http.Request{URL: to}); proxy != nil && to.Scheme == "https" {
		c.waits = true
		_ = nc.SetDeadline(time.Now().Add(t.std.TLSHandshakeTimeout))
	}
	return c
}

// handshakeRecord is the first byte of the handshake with the server, and of nothing that is said to
// a proxy.
const handshakeRecord = 22

// Write implements net.Conn.
func (c *opening) Write(p []byte) (int, error) {
	if c.waits && len(p) > 0 && p[0] == handshakeRecord {
		c.waits = false
		_ = c.SetDeadline(time.Time{}) // the handshake has a time of its own
	}
	return c.Conn.Write(p)
}

var errProxy = errors.New("the proxy did not let the connection through in time")

// Read implements net.Conn.
func (c *opening) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if err != nil {
		c.ended.Store(true)
		if c.waits && errors.Is(err, os.ErrDeadlineExceeded) {
			err = errProxy
		}
	}
	if c.begun || n == 0 {
		return n, err
	}
	if c.begun = true; p[0] == 0 && n < http1.FrameHead && err == nil { // as no response in HTTP/1.1 begins
		var more int
		more, err = io.ReadAtLeast(c.Conn, p[n:], http1.FrameHead-n)
		n += more
	}
	if http1.IsHTTP2(p[:n]) {
		return 0, http1.ErrHTTP2
	}
	return n, err
}
