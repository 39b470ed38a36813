package roundtrip

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"
)

// ErrHTTP2 is what ails a server that speaks only HTTP/2.
var ErrHTTP2 = errors.New("the server speaks only HTTP/2, and the bridge HTTP/1.1")

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
		return fmt.Errorf("%w (%w)", ErrHTTP2, err)
	}
	return err
}

// opening is a connection over TLS whose first bytes are looked at: a server that speaks only
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
		if frame(p[:n]) {
			return 0, ErrHTTP2
		}
	}
	return n, err
}

// frame reports whether text begins like a frame of HTTP/2 about the connection: its length, its
// type, flags, and no stream. Nothing of HTTP/1.1 does.
func frame(text []byte) bool {
	const settings, goAway = 4, 7
	return len(text) >= 9 && text[0] == 0 && (text[3] == settings || text[3] == goAway) && string(text[5:9]) == "\x00\x00\x00\x00"
}
