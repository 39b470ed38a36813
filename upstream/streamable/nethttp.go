package streamable

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/mcpbridge/bridge/internal/hop"
	"github.com/mcpbridge/bridge/internal/http1"
	"github.com/mcpbridge/bridge/internal/roundtrip"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/observe"
	"github.com/mcpbridge/bridge/upstream"
)

// netCarrier posts through net/http: https, proxies.
type netCarrier struct {
	url       *url.URL
	opt       *Options
	policy    hop.Policy
	transport *roundtrip.Transport
	legacy    bool            // leave out what the modern era added
	ctx       context.Context // ends with close
	stop      context.CancelFunc
}

func newNetCarrier(u *url.URL, opt *Options) *netCarrier {
	t := &netCarrier{url: u, opt: opt, policy: opt.Policy(), transport: roundtrip.New(roundtrip.Options{
		TLS: opt.TLS, Dial: opt.Dial, DialTimeout: opt.DialTimeout, HeaderTimeout: opt.HeaderTimeout,
		MaxIdle: opt.MaxIdle, IdleTimeout: opt.IdleTimeout,
	})}
	t.ctx, t.stop = context.WithCancel(context.Background())
	return t
}

// reuses is false: the transport may still be writing the body of a request
// whose response is already there.
func (t *netCarrier) reuses() bool { return false }

func (t *netCarrier) close() {
	t.stop()
	t.transport.CloseIdleConnections()
}

func (t *netCarrier) post(ctx context.Context, req *request, body []byte) (exchange, error) {
	ctx, cancel := context.WithCancel(ctx)
	release := context.AfterFunc(t.ctx, cancel)
	end := func() { release(); cancel() }
	target := t.url
	if req.target != nil {
		target = req.target
	}
	hr := (&http.Request{
		Method: http.MethodPost, URL: target, Host: t.url.Host, Header: t.header(req),
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		ContentLength: int64(len(body)), Body: io.NopCloser(bytes.NewReader(body)),
		GetBody: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil },
	}).WithContext(ctx)
	resp, use, err := t.transport.Do(hr, upstream.ReadOnly(req.call.Method)) //nolint:bodyclose // netExchange closes it
	if err != nil {
		f := classify(ctx, t.origin(), err, roundtrip.Sent(err))
		end()
		return nil, f
	}
	return &netExchange{resp: resp, use: use, cancel: end}, nil
}

// origin names the server for errors, and that a proxy is in between: what failed may be that.
func (t *netCarrier) origin() string {
	switch proxy, err := http.ProxyFromEnvironment(&http.Request{URL: t.url}); {
	case err != nil:
		return t.opt.origin() + " (through a proxy)"
	case proxy != nil: // without its user and password
		return t.opt.origin() + " (through the proxy " + proxy.Scheme + "://" + proxy.Host + ")"
	}
	return t.opt.origin()
}

// header builds the request's headers (B.2).
func (t *netCarrier) header(req *request) http.Header {
	h := http.Header{
		"Content-Type": {"application/json"},
		"Accept":       {"application/json, text/event-stream"},
		"User-Agent":   {t.policy.UserAgent(t.opt.UserAgent)},
	}
	if !t.legacy {
		h[mcp.HeaderProtocolVersion] = []string{req.version}
		h[mcp.HeaderMethod] = []string{req.call.Method}
	}
	if req.named {
		h[mcp.HeaderName] = []string{string(req.appendName(nil))}
	}
	if auth := t.policy.Authorization(req.call.Authorization); auth != "" {
		h["Authorization"] = []string{auth}
	}
	for _, f := range req.custom {
		h.Add(f.Name, f.Value)
	}
	t.policy.Configured(h.Add)
	t.policy.Made(req.call.Header, h.Add)
	return h
}

// netExchange is a response of net/http.
type netExchange struct {
	resp   *http.Response
	use    *roundtrip.Use
	cancel context.CancelFunc
}

// Read implements io.Reader.
func (x *netExchange) Read(p []byte) (int, error) {
	n, err := x.resp.Body.Read(p)
	if err != nil {
		err = x.use.Judged(err)
	}
	return n, err
}

func (x *netExchange) arriving() bool { return false }
func (x *netExchange) status() int    { return x.resp.StatusCode }
func (x *netExchange) version() observe.HTTP {
	return observe.HTTPOf(x.resp.ProtoMajor, x.resp.ProtoMinor)
}
func (x *netExchange) length() int64               { return x.resp.ContentLength }
func (x *netExchange) values(name string) []string { return x.resp.Header.Values(name) }
func (x *netExchange) media() string               { return http1.MediaType(x.resp.Header.Get("Content-Type")) }

// drainTime and drainBytes bound the wait for the end of a body whose answer
// was already read.
const (
	drainTime  = time.Second
	drainBytes = 64 << 10
)

// finish reads to the end so that the transport can reuse the connection. The
// answer does not wait for that.
func (x *netExchange) finish() {
	if x.resp.ContentLength >= 0 {
		x.drain()
		return
	}
	go func() { // ends after drainTime, or with close
		defer time.AfterFunc(drainTime, x.cancel).Stop()
		x.drain()
	}()
}

func (x *netExchange) drain() {
	_, _ = io.CopyN(io.Discard, x.resp.Body, drainBytes)
	x.end(true)
}

func (x *netExchange) abort() { x.end(false) }

func (x *netExchange) end(trusted bool) {
	if !trusted {
		x.use.End(false) // first: a body that was read lets the connection go
	}
	_ = x.resp.Body.Close()
	x.use.End(trusted)
	x.cancel()
}
