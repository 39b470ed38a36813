package main

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"

	"github.com/mcpbridge/bridge/authorize"
	"github.com/mcpbridge/bridge/config"
	"github.com/mcpbridge/bridge/internal/http1"
	"github.com/mcpbridge/bridge/internal/wellknown"
)

// resourceClient reads the metadata of a mount's server, wherever that says they are. What
// is for the server alone goes to its own origin alone: the bridge's certificate, the
// name that is expected of it, its socket.
func resourceClient(m *config.Mount, tlsConfig *tls.Config) *http.Client {
	ways := &twoWays{server: m.Upstream, own: metadataTransport(m, tlsConfig, dialer(m)), others: metadataTransport(m, withoutOwnPair(tlsConfig), nil)}
	return &http.Client{Transport: ways, Timeout: authorize.RequestTimeout, CheckRedirect: wellknown.FollowResource}
}

// issuerClient speaks with authorization servers, over the same proxies and with the
// same trust.
func issuerClient(m *config.Mount, tlsConfig *tls.Config) *http.Client {
	return &http.Client{
		Transport: metadataTransport(m, withoutOwnPair(tlsConfig), nil), Timeout: authorize.RequestTimeout, CheckRedirect: wellknown.Follow,
	}
}

func metadataTransport(m *config.Mount, tlsConfig *tls.Config, dial func(context.Context, string, string) (net.Conn, error)) *http.Transport {
	transport := http1.DefaultTransport()
	transport.TLSClientConfig, transport.TLSHandshakeTimeout = tlsConfig, m.Timeouts.Connect
	if dial != nil {
		transport.DialContext = dial
	}
	return transport
}

// withoutOwnPair keeps a client certificate, and the name that is expected of the
// server, from all others.
func withoutOwnPair(c *tls.Config) *tls.Config {
	if c == nil {
		return nil
	}
	c = c.Clone()
	c.Certificates, c.ServerName = nil, ""
	return c
}

// twoWays tells requests to a server from those to places that it names, redirects included.
type twoWays struct {
	server      string
	own, others *http.Transport
}

// RoundTrip implements http.RoundTripper.
func (t *twoWays) RoundTrip(r *http.Request) (*http.Response, error) {
	if wellknown.SameOrigin(r.URL.String(), t.server) {
		return t.own.RoundTrip(r)
	}
	return t.others.RoundTrip(r)
}

// CloseIdleConnections is what http.Client asks for.
func (t *twoWays) CloseIdleConnections() {
	t.own.CloseIdleConnections()
	t.others.CloseIdleConnections()
}
