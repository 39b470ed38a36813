// Package roundtrip is net/http's transport as the bridge wants it on the way to
// a server, for https and proxies: translating, passing on and relaying
// use it alike. It owns connections and their reuse, and knows no MCP. It speaks HTTP/1.1 only.
//
// What it adds to http.Transport:
//   - A request is sent again only when no byte of it left, or when the caller
//     allowed that (D-15); a header of the client's allows nothing.
//   - An idle connection is given up shortly before the server said that it would
//     close it (Keep-Alive: timeout=…).
//   - When a connection that was used before is lost with a request on it, the
//     idle ones that nobody has heard of since are given up, too; so they are when a
//     request that only asks, and has a deadline, is not answered in time.
//   - The next request on a connection waits until the caller has judged the
//     response before; a caller that distrusts it closes the connection.
//   - Few connections are open that were dialed for requests that have gone.
//   - A proxy has as long to let a connection through as a handshake.
//   - A TLS handshake goes on from one before where the server allows that.
//   - A server whose response cannot be read, or that speaks only HTTP/2, is told from one that is lost.
//   - The head of a response is bounded.
//   - Trailers do not cross.
//   - RoundTrip follows redirects that keep the method, within the origin.
package roundtrip

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync"
	"time"

	"github.com/mcpbridge/bridge/internal/http1"
)

// Defaults of Options.
const (
	DefaultMaxIdle     = 256
	DefaultIdleTimeout = 90 * time.Second
	DefaultDialTimeout = 10 * time.Second
)

// buffer is the size of a connection's read and write buffers, in bytes: large
// enough that a small call is one write and one read.
const buffer = 16 << 10

// Options configures New. Zero values mean the defaults.
type Options struct {
	// TLS configures https; nil means the system's certificates.
	TLS *tls.Config
	// Dial opens connections; nil dials TCP.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
	// MaxIdle bounds the idle connections kept for reuse.
	MaxIdle int
	// IdleTimeout closes connections that were not used for so long.
	IdleTimeout time.Duration
	// DialTimeout bounds the TLS handshake, what a proxy is asked before, and connecting where Dial is nil.
	DialTimeout time.Duration
	// HeaderTimeout bounds the wait for a response head; 0 leaves it to the context.
	HeaderTimeout time.Duration
}

// Transport is an http.RoundTripper. It is safe for concurrent use.
type Transport struct {
	std  *http.Transport
	send func(*http.Request) (*http.Response, error) // std's
	dial func(ctx context.Context, network, addr string) (net.Conn, error)

	mu     sync.Mutex
	conns  map[*conn]struct{} // all that are open
	spares int                // dialed for requests that have gone
}

// New returns a Transport without connections.
func New(opt Options) *Transport {
	opt.MaxIdle = cmp.Or(opt.MaxIdle, DefaultMaxIdle)
	opt.DialTimeout = cmp.Or(opt.DialTimeout, DefaultDialTimeout)
	if opt.Dial == nil {
		opt.Dial = Dialer(opt.DialTimeout)
	}
	t, secure := &Transport{dial: opt.Dial, conns: map[*conn]struct{}{}}, forHTTP1(opt.TLS)
	t.std = &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           t.opened,
		DialTLSContext:        t.secured(secure, opt.DialTimeout),
		TLSClientConfig:       secure, // behind a proxy
		TLSHandshakeTimeout:   opt.DialTimeout,
		MaxIdleConns:          opt.MaxIdle,
		MaxIdleConnsPerHost:   opt.MaxIdle,
		IdleConnTimeout:       cmp.Or(opt.IdleTimeout, DefaultIdleTimeout),
		ResponseHeaderTimeout: opt.HeaderTimeout,
		WriteBufferSize:       buffer,
		ReadBufferSize:        buffer,
		DisableCompression:    true,

		MaxResponseHeaderBytes: http1.MaxHead,
		Protocols:              new(http.Protocols),
	}
	t.std.Protocols.SetHTTP1(true)
	t.send = t.std.RoundTrip
	return t
}

// CloseIdleConnections closes the connections that nobody uses.
func (t *Transport) CloseIdleConnections() { t.std.CloseIdleConnections() }

// RoundTrip implements http.RoundTripper. A response is trusted once its body was
// read to its end. Redirects within the origin are followed.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := t.once(r)
	for hop := 0; err == nil && hop < http1.MaxRedirects; hop++ {
		if r = redirected(r, resp); r == nil {
			break
		}
		_, _ = io.CopyN(io.Discard, resp.Body, buffer) // so that the connection can be used for it
		_ = resp.Body.Close()
		resp, err = t.once(r)
	}
	return resp, err
}

// once is RoundTrip, wherever the response leads.
func (t *Transport) once(r *http.Request) (*http.Response, error) {
	resp, use, err := t.Do(r, false)
	if err != nil {
		return nil, err
	}
	if resp.Body == http.NoBody {
		use.End(true)
		return resp, nil
	}
	resp.Body = &body{resp.Body, use}
	return resp, nil
}

// body ends the use of the connection with itself.
type body struct {
	io.ReadCloser
	use *Use
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		b.use.End(err == io.EOF)
	}
	return n, err
}

func (b *body) Close() error {
	err := b.ReadCloser.Close() // one that was not read to its end takes the connection with it
	b.use.End(true)
	return err
}

// Do sends a request and reads the head of its response. again allows sending it
// a second time although the first may have been executed. The caller must end
// the use of the connection; the error may be asked by Sent.
func (t *Transport) Do(r *http.Request, again bool) (*http.Response, *Use, error) {
	resp, use, err := t.try(r, again)
	if err == nil || !othersEnd(r, err) {
		return resp, use, err
	}
	if r, ok := rewound(r); ok {
		return t.try(r, again)
	}
	return nil, nil, err
}

// othersEnd reports whether a request of which nothing left failed with the end of another one:
// http.Transport gives a connection to the next request before it hands on a response without
// a body, and whoever gives that up in between takes the connection, and the next, along.
func othersEnd(r *http.Request, err error) bool {
	return !Sent(err) && errors.Is(err, context.Canceled) && r.Context().Err() == nil
}

// rewound returns the request with its body from the beginning, if it can be had.
func rewound(r *http.Request) (*http.Request, bool) {
	if r.Body == nil || r.Body == http.NoBody {
		return r, true
	}
	if r.GetBody == nil {
		return nil, false
	}
	body, err := r.GetBody()
	fresh := *r
	fresh.Body = body
	return &fresh, err == nil
}

func (t *Transport) try(r *http.Request, again bool) (*http.Response, *Use, error) {
	ctx := r.Context()
	use := &Use{transport: t, request: ctx, url: r.URL, again: again}
	use.trace.GotConn, use.trace.GotFirstResponseByte = use.begin, use.hear
	out := r.WithContext(httptrace.WithClientTrace(context.WithValue(ctx, asker{}, use), &use.trace))
	out.Header = repeatable(r.Header, again)
	resp, err := t.send(out)
	if err != nil {
		return nil, nil, use.fail(err)
	}
	if resp.StatusCode < 100 { // which net/http reads, and does not write
		_ = resp.Body.Close()
		return nil, nil, use.fail(fmt.Errorf("%w: status", http1.ErrMalformed))
	}
	use.heed(resp)
	own := *resp // what net/http fills in later goes to the other one
	own.Trailer = nil
	return &own, use, nil
}

// The headers by which net/http takes a request for one that may be repeated.
const (
	idempotency     = "Idempotency-Key"
	idempotencyToo  = "X-Idempotency-Key"
	idempotencyWire = "idempotency-key" // names are the same in any case, but not to net/http
)

// repeatable returns a header by which net/http repeats a request only if again
// says so. The server gets the same fields in any case.
func repeatable(h http.Header, again bool) http.Header {
	_, first := h[idempotency]
	_, second := h[idempotencyToo]
	if !first && !second && !again {
		return h
	}
	h = h.Clone()
	if h == nil {
		h = http.Header{}
	}
	if first {
		h[idempotencyWire] = h[idempotency]
		delete(h, idempotency)
	}
	if second {
		h["x-"+idempotencyWire] = h[idempotencyToo]
		delete(h, idempotencyToo)
	}
	if again {
		h[idempotencyToo] = nil // says so and is not sent
	}
	return h
}
