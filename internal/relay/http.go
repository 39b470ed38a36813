package relay

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/hop"
	"github.com/mcpbridge/bridge/internal/roundtrip"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/rawjson"
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
	// Wrap puts something around the transport; nil: nothing.
	Wrap func(http.RoundTripper) http.RoundTripper
	// MaxMessage bounds one message of the server, in bytes; 16 MiB.
	MaxMessage int
	UserAgent  string // "mcp-bridge"
	Log        zerolog.Logger
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
	opt.UserAgent = cmp.Or(opt.UserAgent, "mcp-bridge")
	s := &HTTP{opt: opt, transport: roundtrip.New(roundtrip.Options{TLS: opt.TLS, Dial: opt.Dial})}
	s.sends = s.transport
	if opt.Wrap != nil {
		s.sends = opt.Wrap(s.transport)
	}
	return s
}

// Close closes the connections that nobody uses. The lines are closed before.
func (s *HTTP) Close() { s.transport.CloseIdleConnections() }

// maxWaiting bounds the messages that wait for the ones before them.
const maxWaiting = 64

// Connect implements Server. The session opens with the client's initialize.
func (s *HTTP) Connect(_ downstream.Caller, inbox Inbox) (Line, error) {
	l := &httpLine{server: s, inbox: inbox, queue: make(chan outgoing, maxWaiting), calls: map[jsonrpc.ID]context.CancelFunc{}}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	l.work.Go(l.deliver)
	return l, nil
}

// outgoing is a message on its way to the server.
type outgoing struct {
	caller downstream.Caller
	kind   jsonrpc.Kind
	id     jsonrpc.ID
	method string
	params []byte
	text   []byte
}

// httpLine is a session with the server. One goroutine sends: notifications and
// answers one after another, each when the one before was taken, and requests
// when what was before them was; each request has a goroutine that reads its
// response, and one reads the stream of GET.
type httpLine struct {
	server *HTTP
	inbox  Inbox
	queue  chan outgoing
	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	work   sync.WaitGroup

	mu        sync.Mutex
	session   string
	version   string
	listening bool
	caller    downstream.Caller                 // who spoke last
	calls     map[jsonrpc.ID]context.CancelFunc // whose responses are being read
}

// Send implements Line.
func (l *httpLine) Send(caller downstream.Caller, msg *jsonrpc.Message, text []byte) bool {
	if l.ctx.Err() != nil {
		return false
	}
	o := outgoing{caller: caller, kind: msg.Kind(), id: msg.ID, method: msg.Method, params: msg.Params, text: text}
	select {
	case l.queue <- o:
		return true
	case <-l.ctx.Done():
		return false
	}
}

// endTimeout bounds the wait for the server to end the session.
const endTimeout = 2 * time.Second

// Close implements Line.
func (l *httpLine) Close() {
	l.cancel()
	l.work.Wait()
	l.mu.Lock()
	session, caller := l.session, l.caller
	l.mu.Unlock()
	if session == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), endTimeout)
	defer cancel()
	if resp, err := l.exchange(ctx, http.MethodDelete, caller, nil, ""); err == nil {
		_ = resp.Body.Close()
	}
}

// deliver sends what is queued.
func (l *httpLine) deliver() {
	for {
		select {
		case o := <-l.queue:
			l.mu.Lock()
			l.caller = o.caller
			l.mu.Unlock()
			if o.kind == jsonrpc.Request {
				l.begin(&o)
			} else {
				l.hand(&o)
			}
		case <-l.ctx.Done():
			return
		}
	}
}

// begin sends a request, and waits until that is written: what follows, maybe
// its cancellation, must not overtake it.
func (l *httpLine) begin(o *outgoing) {
	ctx, cancel := context.WithCancel(l.ctx)
	l.mu.Lock()
	l.calls[o.id] = cancel
	l.mu.Unlock()
	written := make(chan struct{})
	once := sync.OnceFunc(func() { close(written) })
	traced := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteRequest: func(httptrace.WroteRequestInfo) { once() }})
	l.work.Go(func() {
		defer cancel()
		defer once()
		l.request(traced, o)
		l.mu.Lock()
		defer l.mu.Unlock()
		if ctx.Err() == nil { // else hand has deleted it, and there may be another one
			delete(l.calls, o.id)
		}
	})
	<-written
}

// takeTimeout bounds how long the server may take to take a notification or an
// answer.
const takeTimeout = 30 * time.Second

// hand sends a notification or an answer, and waits until the server took it.
func (l *httpLine) hand(o *outgoing) {
	ctx, cancel := context.WithTimeout(l.ctx, takeTimeout)
	defer cancel()
	resp, err := l.exchange(ctx, http.MethodPost, o.caller, o.text, "")
	if err != nil {
		if l.ctx.Err() == nil {
			l.server.opt.Log.Warn().Err(err).Msg("a message could not be handed to the server")
		}
		return
	}
	_ = resp.Body.Close()
	switch {
	case l.lost(resp):
		l.inbox.Ended(errSession)
	case resp.StatusCode >= http.StatusBadRequest:
		l.server.opt.Log.Warn().Int("status", resp.StatusCode).Msg("the server did not take a message")
	case o.method == mcp.NotificationInitialized:
		l.listen()
	case o.method == mcp.NotificationCancelled: // what its response would still say nobody reads
		l.mu.Lock()
		defer l.mu.Unlock()
		id := jsonrpc.ID(rawjson.Get(o.params, "requestId"))
		if end := l.calls[id]; end != nil {
			end()
			delete(l.calls, id)
		}
	}
}

var errSession = errors.New("the server has ended the session")

// lost reports a response that says that the session is over.
func (l *httpLine) lost(resp *http.Response) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return resp.StatusCode == http.StatusNotFound && l.session != ""
}

// exchange makes an HTTP request; after is the event to resume behind.
func (l *httpLine) exchange(ctx context.Context, method string, caller downstream.Caller, body []byte, after string) (*http.Response, error) {
	opt := &l.server.opt
	req, err := http.NewRequestWithContext(ctx, method, opt.URL.String(), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	opt.Policy.Made(caller.Header, req.Header.Add)
	opt.Policy.Own(req.Header.Add)
	req.Header.Set("User-Agent", opt.Policy.UserAgent(opt.UserAgent))
	req.Header.Set("Accept", "application/json, text/event-stream")
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if method == http.MethodGet {
		req.Header.Set("Accept", "text/event-stream")
	}
	if auth := opt.Policy.Authorization(caller.Authorization); auth != "" {
		req.Header.Set("Authorization", auth)
	}
	l.mu.Lock()
	for name, value := range map[string]string{
		mcp.HeaderSessionID: l.session, mcp.HeaderProtocolVersion: l.version, mcp.HeaderLastEventID: after,
	} {
		if value != "" {
			req.Header.Set(name, value)
		}
	}
	l.mu.Unlock()
	return l.server.sends.RoundTrip(req)
}
