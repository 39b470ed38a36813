package streamable

import (
	"context"
	"io"
	"net/http"
	"net/url"

	"github.com/mcpbridge/bridge/observe"
)

// carrier carries one POST to the upstream and its response back.
type carrier interface {
	// post sends body under the request's headers and returns the response
	// once its head was read. The error is a *Failure.
	post(ctx context.Context, req *request, body []byte) (exchange, error)
	// reuses reports whether a body's memory may be reused as soon as the exchange ended.
	reuses() bool
	close()
}

// exchange is a response whose body is still to be read.
type exchange interface {
	io.Reader
	status() int
	// version is that of HTTP.
	version() observe.HTTP
	// media is the lower-cased media type without parameters.
	media() string
	// length is the announced body length, -1 when there is none.
	length() int64
	values(name string) []string
	// arriving reports whether Read is sure to return at once with content. False
	// is always a valid answer.
	arriving() bool
	// finish ends an exchange whose answer is complete; the connection is
	// kept for reuse where the rest of the body allows it.
	finish()
	// abort ends an exchange by closing the connection or stream, which
	// cancels the request upstream (E-37).
	abort()
}

// newCarrier chooses the lean transport for plain http without a proxy, and
// net/http's for everything else.
func newCarrier(u *url.URL, opt *Options) carrier {
	proxy, err := http.ProxyFromEnvironment(&http.Request{URL: u})
	if u.Scheme == "http" && !opt.StandardTransport && proxy == nil && err == nil {
		return newLeanCarrier(u, opt)
	}
	return newNetCarrier(u, opt)
}
