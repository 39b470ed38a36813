// Package passthrough hands requests of modern clients to a modern server as
// they are, so that one URL serves both eras. It owns which HTTP headers
// cross and how a dead server is reported; it reads no message.
package passthrough

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"

	"github.com/rs/zerolog"

	"github.com/mcpbridge/bridge/internal/logfield"
)

// Options configures a Relay. URL is required.
type Options struct {
	// URL is the server's endpoint; every request goes there, whatever its path.
	URL *url.URL
	// Header replaces headers of the client, for example a static Authorization.
	Header http.Header
	// TLS configures https; nil means the system's certificates.
	TLS *tls.Config
	// Dial opens connections; nil dials TCP.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
	Log  zerolog.Logger
}

// idleConnections bounds the connections that are kept for reuse.
const idleConnections = 64

// Relay is an http.Handler that hands every request to one server. Responses
// are flushed as they come, and a client that goes away cancels its request,
// which is how modern clients cancel.
type Relay struct {
	proxy     httputil.ReverseProxy
	transport *http.Transport
}

// New returns a Relay. Nothing is sent before the first request.
func New(opt Options) *Relay {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = opt.TLS
	transport.MaxIdleConnsPerHost = idleConnections
	transport.DisableCompression = true
	if opt.Dial != nil {
		transport.DialContext = opt.Dial
	}
	return &Relay{transport: transport, proxy: httputil.ReverseProxy{
		Transport:     transport,
		FlushInterval: -1,
		Rewrite:       func(r *httputil.ProxyRequest) { rewrite(r, &opt) },
		ErrorHandler:  func(w http.ResponseWriter, _ *http.Request, err error) { unreachable(w, err, &opt.Log) },
	}}
}

// ServeHTTP implements http.Handler.
func (r *Relay) ServeHTTP(w http.ResponseWriter, req *http.Request) { r.proxy.ServeHTTP(w, req) }

// Close closes the connections that are not in use; those in use close with
// their requests.
func (r *Relay) Close() { r.transport.CloseIdleConnections() }

func unreachable(w http.ResponseWriter, err error, log *zerolog.Logger) {
	if errors.Is(err, context.Canceled) {
		return // the client is gone
	}
	log.Warn().Str(logfield.Era, "modern").Err(err).Msg("a modern request could not be passed on")
	http.Error(w, "the bridge cannot reach the MCP server behind it", http.StatusBadGateway)
}

func rewrite(r *httputil.ProxyRequest, opt *Options) {
	target := *opt.URL
	r.Out.URL, r.Out.Host = &target, ""
	for name := range r.Out.Header {
		if foreign(name) {
			delete(r.Out.Header, name)
		}
	}
	for name, values := range opt.Header {
		r.Out.Header[name] = values
	}
}

// foreign reports headers that speak about the hop to the bridge and must not
// be believed on the next one (H-12).
func foreign(name string) bool {
	switch name {
	case "Cookie", "Origin", "Forwarded", "X-Real-Ip":
		return true
	}
	return strings.HasPrefix(name, "Proxy-") || strings.HasPrefix(name, "X-Forwarded-") ||
		strings.HasPrefix(name, "Sec-Fetch-")
}
