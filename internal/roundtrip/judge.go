package roundtrip

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/textproto"
	"strings"
	"sync/atomic"

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
}

// opened has the first bytes of a connection looked at.
func (t *Transport) opened(ctx context.Context, network, addr string) (net.Conn, error) {
	nc, err := t.connect(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return &opening{Conn: nc}, nil
}

// Read implements net.Conn.
func (c *opening) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if err != nil {
		c.ended.Store(true)
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
