// Package passthrough hands requests to a server of the client's own era as
// they are, so that one URL serves both eras. Proxy is for servers
// over HTTP: it owns which headers cross and how a dead server is reported, and
// reads no message. Process is for modern servers that are a process: it owns
// what their transport has no words for, the headers, statuses and streams of
// HTTP, and reads of a message what these are made of.
package passthrough

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/hop"
	"github.com/mcpbridge/bridge/internal/http1"
	"github.com/mcpbridge/bridge/internal/logfield"
	"github.com/mcpbridge/bridge/internal/roundtrip"
	"github.com/mcpbridge/bridge/mcp"
)

// Options configures a Proxy. URL is required.
type Options struct {
	// URL is the server's endpoint; every request goes there, whatever its path.
	URL *url.URL
	// Policy says what crosses besides messages.
	Policy hop.Policy
	// TLS configures https; nil means the system's certificates.
	TLS *tls.Config
	// Dial opens connections; nil dials TCP.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
	// DialTimeout bounds opening a connection, the TLS handshake included; 0: roundtrip's bound.
	DialTimeout time.Duration
	// MaxIdle bounds the idle connections kept for reuse; 0: roundtrip's bound.
	MaxIdle int
	// Wrap puts something around the transport; nil: nothing.
	Wrap func(http.RoundTripper) http.RoundTripper
	// Answered sees the head of each response; nil is fine. An *Unusable keeps it from the
	// client.
	Answered func(*http.Response) error
	// Limits bounds what the server may take for a request.
	Limits Limits
	// Challenge returns the challenges of a response as the client of a request is to see
	// them; nil: as they are.
	Challenge func(r *http.Request, challenges []string) []string
	Log       zerolog.Logger
}

// Proxy is an http.Handler that hands every request to one server. Responses
// are flushed as they come, and a client that goes away cancels its request,
// which is how modern clients cancel.
type Proxy struct {
	opt       Options
	reverse   httputil.ReverseProxy
	transport *roundtrip.Transport
	sends     http.RoundTripper // by the transport
	heard     streams
	seldom    zerolog.Logger // for requests that fail
	traffic
}

// New returns a Proxy. Nothing is sent before the first request.
func New(opt Options) *Proxy {
	transport := roundtrip.New(roundtrip.Options{TLS: opt.TLS, Dial: opt.Dial, DialTimeout: opt.DialTimeout, MaxIdle: opt.MaxIdle})
	opt.Limits.defaults()
	p := &Proxy{opt: opt, transport: transport, seldom: logfield.Seldom(opt.Log)}
	p.open()
	p.sends = paced{transport, &p.heard}
	if opt.Wrap != nil {
		p.sends = opt.Wrap(p.sends)
	}
	p.reverse = httputil.ReverseProxy{
		Transport:      final{p.sends},
		FlushInterval:  -1,
		BufferPool:     &pieces{},
		Rewrite:        func(r *httputil.ProxyRequest) { rewrite(r, &opt) },
		ModifyResponse: func(resp *http.Response) error { return answered(resp, &opt) },
		ErrorHandler:   func(w http.ResponseWriter, r *http.Request, err error) { unreachable(w, r, err, &p.seldom) },
		ErrorLog:       log.New(io.Discard, "", 0), // what breaks off in the middle has two peers that notice
	}
	return p
}

// ServeHTTP implements http.Handler.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if hop.Opened(r) {
		hop.RefuseOpened(w)
		return
	}
	ctx, leave := p.enter(w, r)
	if leave == nil {
		w.Header().Set("Retry-After", "1")
		http.Error(w, shuttingDown, http.StatusServiceUnavailable)
		return
	}
	defer leave()
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	out := &patient{ResponseWriter: w, traffic: &p.traffic, began: time.Now()}
	pace, stop := p.keepPace(r, out.began, end)
	of := &passage{in: r, out: out, pace: pace}
	of.withdraw = sync.OnceFunc(func() { p.withdraw(of) })
	defer func() { stop(); p.judge(ctx, of) }()
	ctx = context.WithValue(ctx, passing{}, of)
	p.reverse.ServeHTTP(out, r.WithContext(unheard(ctx)))
}

// keepPace holds the server to its time with a request, until stop is called.
func (p *Proxy) keepPace(r *http.Request, began time.Time, end context.CancelCauseFunc) (of *pace, stop func()) {
	session := r.Header.Get(mcp.HeaderSessionID)
	asks := func(answers bool) bool { return session != "" && p.heard.mayAsk(session, began, answers) }
	return p.opt.Limits.keepPace(r, asks, end)
}

// judge looks at the end of a request. One whose server took too long ends there, too, and in the log. Where only the
// stream of a response outlived it there is nothing to tell.
func (p *Proxy) judge(ctx context.Context, of *passage) {
	late, is := errors.AsType[*overdue](context.Cause(ctx))
	if !is || of.due().done {
		return
	}
	if !of.told {
		failedOf(of.in, of.out.began).tell(&p.seldom, late)
	}
	of.withdraw()
}

// Shutdown drains and returns when every request has ended. When ctx ends first
// it cuts them off and returns its error.
func (p *Proxy) Shutdown(ctx context.Context) error {
	defer p.transport.CloseIdleConnections()
	return p.traffic.Shutdown(ctx)
}

// Close cuts every request off.
func (p *Proxy) Close() {
	p.traffic.Close()
	p.transport.CloseIdleConnections()
}

func unreachable(w http.ResponseWriter, r *http.Request, err error, log *zerolog.Logger) {
	of := passageOf(r.Context())
	why := whyGivenUp(r.Context())
	switch {
	case of != nil && why != nil:
		err = why
	case errors.Is(err, context.Canceled):
		panic(http.ErrAbortHandler) // the client is gone: no response
	}
	began := time.Now()
	if p, ok := w.(*patient); ok {
		began = p.began
	}
	if !errors.Is(why, downstream.ErrLapsed) { // which is no failure
		failedOf(r, began).tell(log, err)
	}
	if of != nil {
		of.told = true
	}
	if why != nil && of != nil {
		of.end(why)
		of.tell(w, why)
		return
	}
	if bad, ok := errors.AsType[*Unusable](err); ok {
		http.Error(w, bad.Error(), http.StatusBadGateway)
		return
	}
	http.Error(w, unanswered(err), http.StatusBadGateway)
}

// unanswered says why a request has no response, and whether it may have been executed.
func unanswered(err error) string {
	switch {
	case errors.Is(err, http1.ErrHTTP2):
		return http1.ErrHTTP2.Error()
	case errors.Is(err, http1.ErrMalformed):
		return "the MCP server behind the bridge does not answer in HTTP/1.1 (" + err.Error() + "); whether the request was executed is not known"
	case roundtrip.Sent(err):
		return "the connection to the MCP server behind the bridge was lost before it answered; whether the request was executed is not known"
	}
	return "the bridge cannot reach the MCP server behind it"
}

// Unusable is a response that no client is to see, and why.
type Unusable struct{ Reason string }

// Error is what the client is told.
func (u *Unusable) Error() string { return u.Reason }

// answered leaves to the bridge what it has answered itself, and shows the head.
func answered(resp *http.Response, opt *Options) error {
	if resp.StatusCode/100 == 3 { // a client has no use for it, which knows the bridge's address and not the server's
		return &Unusable{Reason: fmt.Sprintf("the MCP server behind the bridge redirects (HTTP %d) to where the bridge does not follow; if that is right, configure that URL", resp.StatusCode)}
	}
	hop.Down(resp)
	if of := passageOf(resp.Request.Context()); opt.Challenge != nil && of != nil && len(resp.Header["Www-Authenticate"]) > 0 {
		resp.Header["Www-Authenticate"] = opt.Challenge(of.in, resp.Header["Www-Authenticate"])
	}
	if opt.Answered != nil {
		if err := opt.Answered(resp); err != nil {
			return err
		}
	}
	withLastWords(resp)
	return nil
}

// rewrite also takes off what ReverseProxy puts back: Upgrade, with which a
// client could get a connection to the server of its own, and Te.
func rewrite(r *httputil.ProxyRequest, opt *Options) {
	target := *opt.URL
	r.Out.URL, r.Out.Host = &target, ""
	r.Out.TransferEncoding, r.Out.Trailer = nil, nil
	opt.Policy.Pass(r.Out.Header)
}
