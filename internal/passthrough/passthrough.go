// Package passthrough hands requests to a server of the client's own era as
// they are, so that one URL serves both eras. It owns which HTTP
// headers cross and how a dead server is reported; it reads no message.
package passthrough

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/rs/zerolog"

	"github.com/mcpbridge/bridge/mcp"
)

// Options configures a Relay. URL is required.
type Options struct {
	// URL is the server's endpoint; every request goes there, whatever its path.
	URL *url.URL
	// Header replaces headers of the client, for example a static Authorization.
	Header http.Header
	// DropAuthorization keeps the client's credentials from the server.
	DropAuthorization bool
	// TLS configures https; nil means the system's certificates.
	TLS *tls.Config
	// Dial opens connections; nil dials TCP.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
	// Answered sees the head of each response; nil is fine.
	Answered func(*http.Response)
	Log      zerolog.Logger
}

// idleConnections bounds the connections that are kept for reuse.
const idleConnections = 64

// Relay is an http.Handler that hands every request to one server. Responses
// are flushed as they come, and a client that goes away cancels its request,
// which is how modern clients cancel.
type Relay struct {
	proxy     httputil.ReverseProxy
	transport *http.Transport
	active    atomic.Int64

	draining context.Context // ends with Drain
	drain    context.CancelFunc
	closing  context.Context // ends with Close
	cut      context.CancelFunc
	idle     sync.WaitGroup
	mu       sync.Mutex // orders idle.Add before Close waits
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
	r := &Relay{transport: transport}
	r.draining, r.drain = context.WithCancel(context.Background())
	r.closing, r.cut = context.WithCancel(context.Background())
	r.proxy = httputil.ReverseProxy{
		Transport:      transport,
		FlushInterval:  -1,
		Rewrite:        func(r *httputil.ProxyRequest) { rewrite(r, &opt) },
		ModifyResponse: func(resp *http.Response) error { answered(resp, &opt); return nil },
		ErrorHandler:   func(w http.ResponseWriter, _ *http.Request, err error) { unreachable(w, err, &opt.Log) },
		ErrorLog:       log.New(io.Discard, "", 0), // what breaks off in the middle has two peers that notice
	}
	return r
}

// ServeHTTP implements http.Handler.
func (r *Relay) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if !r.enter() {
		w.Header().Set("Retry-After", "1")
		http.Error(w, "the bridge is shutting down", http.StatusServiceUnavailable)
		return
	}
	defer r.idle.Done()
	defer r.active.Add(-1)
	ctx, cancel := context.WithCancel(req.Context())
	defer cancel()
	ends := r.closing
	if endless(req) {
		ends = r.draining
	}
	defer context.AfterFunc(ends, cancel)()
	r.proxy.ServeHTTP(w, req.WithContext(ctx))
}

func (r *Relay) enter() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.draining.Err() != nil {
		return false
	}
	r.idle.Add(1)
	r.active.Add(1)
	return true
}

// endless reports a request whose response never ends by itself: nobody waits
// for that when the relay stops.
func endless(r *http.Request) bool {
	return r.Method == http.MethodGet || r.Header.Get(mcp.HeaderMethod) == mcp.MethodListen
}

// Active returns the number of requests under way.
func (r *Relay) Active() int { return int(r.active.Load()) }

// Drain takes no further requests and ends those that would never end.
func (r *Relay) Drain() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.drain()
}

// Shutdown drains and returns when every request has ended. When ctx ends first
// it cuts them off and returns its error.
func (r *Relay) Shutdown(ctx context.Context) error {
	r.Drain()
	done := make(chan struct{})
	go func() { defer close(done); r.idle.Wait() }()
	var err error
	select {
	case <-done:
	case <-ctx.Done():
		err = ctx.Err()
	}
	r.cut()
	<-done
	r.transport.CloseIdleConnections()
	return err
}

// Close cuts every request off.
func (r *Relay) Close() {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	_ = r.Shutdown(ended) // its error is that of the context
}

func unreachable(w http.ResponseWriter, err error, log *zerolog.Logger) {
	if errors.Is(err, context.Canceled) {
		panic(http.ErrAbortHandler) // the client is gone, or the relay is closed: no response
	}
	log.Warn().Err(err).Msg("a request could not be passed on")
	http.Error(w, "the bridge cannot reach the MCP server behind it", http.StatusBadGateway)
}

// answered leaves CORS to the bridge, which answers the preflights and has set
// its own headers, and shows the head.
func answered(resp *http.Response, opt *Options) {
	for name := range resp.Header {
		if strings.HasPrefix(name, "Access-Control-") {
			delete(resp.Header, name)
		}
	}
	if opt.Answered != nil {
		opt.Answered(resp)
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
	if opt.DropAuthorization {
		delete(r.Out.Header, "Authorization")
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
