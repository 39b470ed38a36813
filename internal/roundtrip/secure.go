package roundtrip

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"time"
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
