package relay

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/budget"
	"github.com/mcpbridge/bridge/internal/hop"
	"github.com/mcpbridge/bridge/internal/logfield"
	"github.com/mcpbridge/bridge/internal/roundtrip"
	"github.com/mcpbridge/bridge/mcp"
)

// HTTPOptions configures an HTTP server to connect to. URL is required.
type HTTPOptions struct {
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
	// MaxMessage bounds one message of the server, in bytes; 16 MiB.
	MaxMessage int
	// Silence is for how long at least the rest of a response is asked for that broke off, while
	// nothing comes; 2 min.
	Silence   time.Duration
	UserAgent string // "mcp-bridge"
	Log       zerolog.Logger
}

// HTTP is a Server that speaks Streamable HTTP of a legacy revision. Each client
// has a session of the server's.
type HTTP struct {
	opt       HTTPOptions
	transport *roundtrip.Transport
	sends     http.RoundTripper // by the transport
}

// NewHTTP returns an HTTP. Nothing is sent yet.
func NewHTTP(opt HTTPOptions) *HTTP {
	opt.MaxMessage = cmp.Or(opt.MaxMessage, 16<<20)
	opt.Silence = cmp.Or(opt.Silence, 2*time.Minute)
	opt.UserAgent = cmp.Or(opt.UserAgent, "mcp-bridge")
	opt.Log = logfield.Seldom(opt.Log) // of messages that got lost: peers can cause many
	s := &HTTP{opt: opt, transport: roundtrip.New(roundtrip.Options{TLS: opt.TLS, Dial: opt.Dial, DialTimeout: opt.DialTimeout, MaxIdle: opt.MaxIdle})}
	s.sends = s.transport
	if opt.Wrap != nil {
		s.sends = opt.Wrap(s.transport)
	}
	return s
}

// Close closes the connections that nobody uses. The lines are closed before.
func (s *HTTP) Close() { s.transport.CloseIdleConnections() }

// exchange makes an HTTP request on behalf of a caller. The headers of own are the
// transport's.
func (s *HTTP) exchange(ctx context.Context, method, target string, caller downstream.Caller, body []byte, own map[string]string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, target, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	s.opt.Policy.Made(caller.Header, req.Header.Add)
	s.opt.Policy.Configured(req.Header.Add)
	req.Header.Set("User-Agent", s.opt.Policy.UserAgent(s.opt.UserAgent))
	req.Header.Set("Accept", "application/json, text/event-stream")
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if method == http.MethodGet {
		req.Header.Set("Accept", "text/event-stream")
	}
	if auth := s.opt.Policy.Authorization(caller.Authorization); auth != "" {
		req.Header.Set("Authorization", auth)
	}
	for name, value := range own {
		if value != "" {
			req.Header.Set(name, value)
		}
	}
	return s.sends.RoundTrip(req)
}

// unanswered says why a request has no response: one that left may have been executed.
func unanswered(err error) error {
	if roundtrip.Sent(err) {
		return fmt.Errorf("the server was reached and did not answer; what it was asked may have been done: %w", err)
	}
	return fmt.Errorf("the server cannot be reached: %w", err)
}

// Connect implements Server. The session opens with the client's initialize.
func (s *HTTP) Connect(caller downstream.Caller, inbox Inbox) (Line, error) {
	l := &httpLine{server: s, inbox: inbox, account: caller.Account}
	l.courier = newCourier(l, caller.Account)
	return l, nil
}

// httpLine is a session with the server. Each request has a goroutine that reads its
// response, and one reads the stream of GET.
type httpLine struct {
	*courier
	server  *HTTP
	inbox   Inbox
	account *budget.Account // of the client, for what comes

	mu        sync.Mutex
	session   string
	version   string
	listening bool
}

// endTimeout bounds the wait for the server to end the session.
const endTimeout = 2 * time.Second

// Close implements Line.
func (l *httpLine) Close() {
	l.courier.Close()
	l.mu.Lock()
	session := l.session
	l.mu.Unlock()
	if session == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), endTimeout)
	defer cancel()
	if resp, err := l.exchange(ctx, http.MethodDelete, l.lastCaller(), nil, ""); err == nil {
		_ = resp.Body.Close()
	}
}

// hand implements carrier.
func (l *httpLine) hand(ctx context.Context, o *outgoing) error {
	ctx, done := context.WithCancel(ctx) // which a connection that is still dialed for it heeds
	defer done()
	resp, err := l.exchange(ctx, http.MethodPost, o.caller, o.text, "")
	if err != nil {
		return unanswered(err)
	}
	defer resp.Body.Close()
	switch {
	case l.lost(resp):
		l.inbox.Ended(errSessionLost)
	case resp.StatusCode >= http.StatusBadRequest:
		return refusal(resp)
	case o.method == mcp.NotificationInitialized:
		l.listen()
	}
	if n := resp.ContentLength; 0 < n && n <= maxRefusal {
		_, _ = io.CopyN(io.Discard, resp.Body, n) // which leaves a connection to use again
	}
	return nil
}

// untaken implements carrier.
func (l *httpLine) untaken(o *outgoing, why error) { l.server.untaken(l.inbox, o, why) }

var (
	errSession     = errors.New("the server has ended the session")
	errSessionLost = fmt.Errorf("%w; whether a call under way was executed is not known", errSession)
)

// lost reports a response that says that the session is over.
func (l *httpLine) lost(resp *http.Response) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return resp.StatusCode == http.StatusNotFound && l.session != ""
}

// exchange makes an HTTP request in the session; after is the event to resume behind.
func (l *httpLine) exchange(ctx context.Context, method string, caller downstream.Caller, body []byte, after string) (*http.Response, error) {
	l.mu.Lock()
	own := map[string]string{
		mcp.HeaderSessionID: l.session, mcp.HeaderProtocolVersion: l.version, mcp.HeaderLastEventID: after,
	}
	l.mu.Unlock()
	return l.server.exchange(ctx, method, l.server.opt.URL.String(), caller, body, own)
}
