// Package passthrough hands requests of modern clients to a modern server as
// they are, so that one URL serves both eras. It owns which HTTP headers
// cross and how a dead server is reported; it reads no message.
package passthrough

import (
	"context"
	"errors"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"

	"github.com/rs/zerolog"

	"github.com/mcpbridge/bridge/internal/logfield"
)

// Options configures a handler.
type Options struct {
	// URL is the server's endpoint; every request goes there, whatever its path.
	URL *url.URL
	// Header replaces headers of the client, for example a static Authorization.
	Header http.Header
	// Transport carries the requests.
	Transport http.RoundTripper
	Log       zerolog.Logger
}

// New returns the handler. Responses are flushed as they come, and a client that
// goes away cancels its request, which is how modern clients cancel.
func New(opt Options) http.Handler {
	return &httputil.ReverseProxy{
		Transport:     opt.Transport,
		FlushInterval: -1,
		Rewrite:       func(r *httputil.ProxyRequest) { rewrite(r, &opt) },
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			if errors.Is(err, context.Canceled) {
				return // the client is gone
			}
			opt.Log.Warn().Str(logfield.Era, "modern").Err(err).Msg("a modern request could not be passed on")
			http.Error(w, "the bridge cannot reach the MCP server behind it", http.StatusBadGateway)
		},
	}
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
