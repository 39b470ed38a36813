package roundtrip

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
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

// toProxy returns a configuration of handshakes with a proxy: who the bridge is, and what the server's certificate
// is for, is not a proxy's business.
func toProxy(c *tls.Config) *tls.Config {
	return &tls.Config{RootCAs: c.RootCAs, NextProtos: c.NextProtos, ClientSessionCache: tls.NewLRUClientSessionCache(0)}
}

// secured returns how connections over TLS are made.
func (t *Transport) secured(server *tls.Config, timeout time.Duration) func(ctx context.Context, network, addr string) (net.Conn, error) {
	proxy := toProxy(server)
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		nc, err := t.connect(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		config := server
		if through, _ := t.std.Proxy(&http.Request{URL: ctx.Value(asker{}).(*Use).url}); through != nil {
			config = proxy // the server's own handshake is http.Transport's
		}
		c := tls.Client(nc, named(config, addr))
		ctx, cancel := context.WithTimeoutCause(ctx, timeout, errHandshake)
		defer cancel()
		if err := c.HandshakeContext(ctx); err != nil {
			_ = nc.Close()
			return nil, handshake(ctx, err)
		}
		return t.through(ctx, c), nil
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
