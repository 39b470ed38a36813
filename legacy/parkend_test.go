//go:build linux

package legacy

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/bridge/internal/testmode"
	"github.com/mcpbridge/bridge/legacy/quiet"
	"github.com/mcpbridge/bridge/mcp"
)

func TestShutdownEndsListenersWaitsForCallsAndAnswersOnTheirConnections(t *testing.T) {
	b := newFake()
	h, p := serve(t, Options{}, b)
	p.initialize(mcp.V20250618)
	callLine, call, k := heldCall(t, h, p, b)
	getLine, get := heldGet(t, h, p, "")
	down := make(chan error)
	go func() { down <- h.Shutdown(t.Context()) }()
	want(t, "GET ends", readEvents(t, get).rest(), []string{})
	wantLast(t, getLine, p)
	k.Send([]byte(`{"still":"there"}`))
	k.finish(`{}`)
	want(t, "the call", len(readEvents(t, call).rest()), 3)
	want(t, "shutdown", <-down, error(nil))
	wantLast(t, callLine, p)
	waitParked(t, h, 0, 0)
}

// wantLast has the connection answer one more request, which a balancer may have sent before it could know, and
// tell its client not to send another one.
func wantLast(t *testing.T, l *wire, p *peer) {
	t.Helper()
	l.send(p.request(http.MethodPost, ping))
	resp := l.response()
	_ = text(t, resp)
	want(t, "the last request", resp.StatusCode, http.StatusServiceUnavailable)
	want(t, "it is the last", resp.Close && l.closed(), true)
}

func TestCloseCutsEverythingThatIsParked(t *testing.T) {
	b := newFake()
	h, p := serve(t, Options{}, b)
	p.initialize(mcp.V20250618)
	l := idleAfterCall(t, h, p, b)
	stateless := dialWire(t, p) // its conversation belongs to no session
	r := p.request(http.MethodPost, hold)
	r.Header.Del("Mcp-Session-Id")
	stateless.send(r)
	k := <-b.held
	k.Send([]byte(note))
	_ = stateless.response()
	waitParked(t, h, 1, 1)
	h.Close()
	waitParked(t, h, 0, 0)
	wantLast(t, l, p)
	k.finish(`{}`) // finds nobody
}

func TestConnectionOfAStoppedServerIsClosed(t *testing.T) {
	testmode.NeedsParking(t)
	b := newFake()
	h := NewHTTP(Options{ParkAfter: janitorStep}, b)
	s := httptest.NewUnstartedServer(watched(h))
	s.Config.ConnContext = quiet.ConnContext
	s.Start()
	p := &peer{t: t, client: s.Client(), url: s.URL, header: http.Header{}}
	p.initialize(mcp.V20250618)
	l := idleAfterCall(t, h, p, b)
	_ = s.Config.Close() // only the http.Server
	l.send(p.request(http.MethodPost, ping))
	want(t, "closed", l.closed(), true)
	h.Close()
	s.Close()
}

func TestParkedStreamsAreKeptAlive(t *testing.T) {
	b := newFake()
	h, p := serve(t, Options{KeepAlive: 90 * time.Millisecond}, b)
	p.initialize(mcp.V20250618)
	_, resp, k := heldCall(t, h, p, b)
	r := bufio.NewReader(resp.Body)
	comments := 0
	for comments < 5 {
		text, err := r.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if text == ": keep-alive\n" {
			comments++
		}
	}
	k.finish(`{}`)
	rest, err := io.ReadAll(r)
	if err != nil || !strings.Contains(string(rest), `"result":{}`) {
		t.Errorf("%q, %v", rest, err)
	}
}

func TestWhatCannotBeParkedStaysAsItIs(t *testing.T) {
	const turnedOff = "turned off"
	plain := func(h http.Handler) *httptest.Server {
		s := httptest.NewUnstartedServer(h)
		s.Config.ConnContext = quiet.ConnContext
		return s
	}
	for name, start := range map[string]func(http.Handler) *httptest.Server{
		"no ConnContext": httptest.NewServer,
		turnedOff: func(h http.Handler) *httptest.Server {
			s := plain(h)
			s.Start()
			return s
		},
		"TLS": func(h http.Handler) *httptest.Server {
			s := plain(h)
			s.StartTLS()
			return s
		},
		"HTTP/2": func(h http.Handler) *httptest.Server {
			s := plain(h)
			s.EnableHTTP2 = true
			s.StartTLS()
			return s
		},
		"wrapped connection": func(h http.Handler) *httptest.Server {
			s := plain(h)
			s.Listener = wrappingListener{s.Listener}
			s.Start()
			return s
		},
		"wrapped writer": func(h http.Handler) *httptest.Server {
			s := plain(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { h.ServeHTTP(wrappedWriter{w}, r) }))
			s.Start()
			return s
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newFake()
			h := NewHTTP(Options{ParkAfter: janitorStep, KeepAlive: 90 * time.Millisecond, NoPark: name == turnedOff}, b)
			s := start(h)
			defer func() { h.Close(); s.CloseClientConnections(); s.Close() }()
			p := &peer{t: t, client: s.Client(), url: s.URL, header: http.Header{}}
			p.initialize(mcp.V20250618)
			answer := p.async(hold)
			k := <-b.held
			k.Send([]byte(note))
			resp := <-answer
			r := bufio.NewReader(resp.Body)
			for text := ""; text != ": keep-alive\n"; {
				var err error
				if text, err = r.ReadString('\n'); err != nil {
					t.Fatal(err)
				}
			}
			streams, idle := h.streams.Parked()
			want(t, "parked", streams+idle, 0)
			k.finish(`{}`)
			_, _ = io.Copy(io.Discard, r)
		})
	}
}

type wrappingListener struct{ net.Listener }

func (l wrappingListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	return struct{ net.Conn }{c}, err
}

type wrappedWriter struct{ http.ResponseWriter }

func (w wrappedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// A client may fetch the rest of a call at any time around a shutdown; a stream that
// rests meanwhile is its call's still.
func TestShutdownLetsCallsBeFetched(t *testing.T) {
	const rest = `1-2|{"jsonrpc":"2.0","id":1,"result":{}}`
	for name, fetch := range map[string]func(h *HTTP, p *peer, shut, finish func()) *events{
		"parked before": func(h *HTTP, p *peer, shut, finish func()) *events {
			_, get := heldGet(p.t, h, p, "1-1")
			shut()
			finish()
			return readEvents(p.t, get)
		},
		"during it": func(_ *HTTP, p *peer, shut, finish func()) *events {
			shut()
			get := readEvents(p.t, p.get("1-1"))
			finish()
			return get
		},
		"parked during it": func(h *HTTP, p *peer, shut, finish func()) *events {
			shut()
			_, get := heldGet(p.t, h, p, "1-1")
			finish()
			return readEvents(p.t, get)
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newFake()
			h, p := serve(t, Options{}, b)
			p.initialize(mcp.V20250618)
			l, _, k := heldCall(t, h, p, b)
			l.conn.Close()
			waitParked(t, h, 0, 0)
			down := make(chan error)
			got := fetch(h, p, func() {
				go func() { down <- h.Shutdown(t.Context()) }()
				<-h.gate.Shutting()
			}, func() { k.finish(`{}`) })
			want(t, "the rest", got.rest(), []string{rest})
			want(t, "shutdown", <-down, error(nil))
		})
	}
}
