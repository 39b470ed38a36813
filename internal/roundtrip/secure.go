package roundtrip

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/mcpbridge/bridge/internal/http1"
)

// forHTTP1 returns a configuration of handshakes for HTTP/1.1 that go on from one before.
func forHTTP1(c *tls.Config) *tls.Config {
	if c = c.Clone(); c == nil {
		c = &tls.Config{}
	}
	c.NextProtos = []string{"http/1.1"}
	c.ClientSessionCache = tls.NewLRUClientSessionCache(0)
	return c
}

// secured returns how connections over TLS are made.
func (t *Transport) secured(config *tls.Config, timeout time.Duration) func(ctx context.Context, network, addr string) (net.Conn, error) {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		nc, err := t.connect(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		c := tls.Client(nc, named(config, addr))
		ctx, cancel := context.WithTimeoutCause(ctx, timeout, errHandshake)
		defer cancel()
		if err := c.HandshakeContext(ctx); err != nil {
			_ = nc.Close()
			return nil, handshake(ctx, err)
		}
		return &opening{Conn: c}, nil
	}
}

// named has the certificate be one for the address, unless the configuration says for what.
func named(config *tls.Config, addr string) *tls.Config {
	if config.ServerName != "" {
		return config
	}
	config = config.Clone()
	config.ServerName, _, _ = net.SplitHostPort(addr)
	return config
}

var errHandshake = errors.New("tls: the server did not finish the handshake in time")

// handshake says why one failed.
func handshake(ctx context.Context, err error) error {
	if context.Cause(ctx) == errHandshake {
		return errHandshake
	}
	return err
}

// judged names what ails a server that agrees to nothing but HTTP/2 in the handshake.
func judged(err error) error {
	if text := err.Error(); strings.Contains(text, "tls: no application protocol") || strings.Contains(text, "tls: server selected unadvertised ALPN protocol") {
		return fmt.Errorf("%w (%w)", http1.ErrHTTP2, err)
	}
	return err
}

// opened has the first bytes of a connection looked at.
func (t *Transport) opened(ctx context.Context, network, addr string) (net.Conn, error) {
	nc, err := t.connect(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return &opening{Conn: nc}, nil
}

// opening is a connection whose first bytes are looked at: a server that speaks only
// HTTP/2 may begin with a frame of that, after which nothing comes that net/http would show.
type opening struct {
	net.Conn
	begun bool
}

// Read implements net.Conn.
func (c *opening) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if !c.begun && n > 0 {
		c.begun = true
		if http1.IsHTTP2(p[:n]) {
			return 0, http1.ErrHTTP2
		}
	}
	return n, err
}
