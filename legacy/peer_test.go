package legacy

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/testmode"
	"github.com/mcpbridge/bridge/legacy/quiet"
	"github.com/mcpbridge/bridge/legacy/session"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/sse"
)

// peer is a client that shows the wire as it is.
type peer struct {
	t       *testing.T
	client  *http.Client
	url     string
	session string
	version string
	header  http.Header
}

// server is what is common to h1 and net/http.
type server interface {
	Serve(net.Listener) error
	Close() error
}

// watched is h, with its handlers noted in running.
func watched(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		running.Store(r.RemoteAddr, true)
		defer running.Delete(r.RemoteAddr)
		h.ServeHTTP(w, r)
	})
}

func newServer(h http.Handler) server {
	h = watched(h)
	return inFront(h, &http.Server{Handler: h, ConnContext: quiet.ConnContext, ErrorLog: log.New(io.Discard, "", 0)})
}

// serve starts a server on the loopback and returns a client for it.
func serve(t *testing.T, opt Options, b downstream.Backend) (*HTTP, *peer) {
	t.Helper()
	opt.NoPark = testmode.NoPark()
	opt.ParkAfter = cmp.Or(opt.ParkAfter, janitorStep) // most tests also run across the parking of their streams
	h := NewHTTP(opt, b)
	return h, &peer{t: t, client: client(t), url: start(t, h, newServer(h)), header: http.Header{}}
}

// live returns the peer's session.
func (p *peer) live(h *HTTP) *session.Session {
	s, _, _, _ := h.sessions.Find(p.request(http.MethodGet, ""))
	return s
}

// start has a server listen on the loopback until the test ends, and h with it.
func start(t *testing.T, h *HTTP, s server) (url string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	t.Cleanup(func() {
		h.Close()
		_ = s.Close()
		<-done
	})
	return "http://" + l.Addr().String()
}

// servePipe does the same in memory, for tests in a bubble of synthetic time.
func servePipe(t *testing.T, opt Options, b downstream.Backend) (*HTTP, *peer) {
	t.Helper()
	h := NewHTTP(opt, b)
	return h, pipeTo(t, h, h)
}

// pipeTo returns a peer of what handles requests for h.
func pipeTo(t *testing.T, h *HTTP, handler http.Handler) *peer {
	l := &pipeListener{conns: make(chan net.Conn), done: make(chan struct{})}
	s := newServer(handler)
	go func() { _ = s.Serve(l) }()
	tr := &http.Transport{DialContext: l.dial}
	t.Cleanup(func() {
		h.Close()
		tr.CloseIdleConnections()
		_ = s.Close()
	})
	return &peer{t: t, client: &http.Client{Transport: tr}, url: "http://localhost", header: http.Header{}}
}

type pipeListener struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func (l *pipeListener) dial(context.Context, string, string) (net.Conn, error) {
	a, b := net.Pipe()
	select {
	case l.conns <- a:
		return b, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error { l.once.Do(func() { close(l.done) }); return nil }

func (l *pipeListener) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 80} }

func (p *peer) request(method, body string) *http.Request {
	p.t.Helper()
	r, err := http.NewRequestWithContext(p.t.Context(), method, p.url, strings.NewReader(body))
	if err != nil {
		p.t.Fatal(err)
	}
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/json")
	}
	r.Header.Set("Accept", "application/json, text/event-stream")
	if p.session != "" {
		r.Header.Set("Mcp-Session-Id", p.session)
		if p.version >= "2025-06-18" {
			r.Header.Set("MCP-Protocol-Version", p.version)
		}
	}
	for k, v := range p.header {
		r.Header[k] = v
	}
	return r
}

func (p *peer) do(r *http.Request) *http.Response {
	p.t.Helper()
	resp, err := p.client.Do(r)
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { _ = resp.Body.Close() })
	return resp
}

func (p *peer) post(body string) *http.Response {
	p.t.Helper()
	return p.do(p.request(http.MethodPost, body))
}

// get opens a stream; last is the Last-Event-ID, "" for none.
func (p *peer) get(last string) *http.Response {
	p.t.Helper()
	r := p.request(http.MethodGet, "")
	if last != "" {
		r.Header.Set("Last-Event-ID", last)
	}
	return p.do(r)
}

// call posts and returns status and body.
func (p *peer) call(body string) (int, string) {
	p.t.Helper()
	resp := p.post(body)
	return resp.StatusCode, text(p.t, resp)
}

// initialize opens a session of this version.
func (p *peer) initialize(version mcp.Version) *http.Response {
	p.t.Helper()
	resp := p.post(initialize(version))
	p.session, p.version = resp.Header.Get("Mcp-Session-Id"), string(version)
	_ = text(p.t, resp)
	if p.session == "" {
		p.t.Fatalf("initialize gave no session: %s", resp.Status)
	}
	return resp
}

func initialize(version mcp.Version) string {
	return `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"` + string(version) +
		`","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`
}

func text(t *testing.T, resp *http.Response) string {
	t.Helper()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// events reads an SSE body event by event.
type events struct {
	t *testing.T
	d *sse.Decoder
}

func readEvents(t *testing.T, resp *http.Response) *events {
	t.Helper()
	if got := resp.Header.Get("Content-Type"); got != "text/event-stream" {
		t.Fatalf("Content-Type = %q, want an event stream (%s)", got, resp.Status)
	}
	return &events{t, sse.NewDecoder(bufio.NewReader(resp.Body), 32<<20)}
}

// next returns the next event as "id|data".
func (e *events) next() string {
	e.t.Helper()
	ev, err := e.d.Next()
	if err != nil {
		e.t.Fatalf("stream ended: %v", err)
	}
	return ev.ID + "|" + string(ev.Data)
}

// rest returns the events up to the end of the stream.
func (e *events) rest() (all []string) {
	e.t.Helper()
	for {
		ev, err := e.d.Next()
		if err != nil {
			return all
		}
		all = append(all, ev.ID+"|"+string(ev.Data))
	}
}

func want(t *testing.T, what string, got, want any) {
	t.Helper()
	if g, w := fmt.Sprint(got), fmt.Sprint(want); g != w {
		t.Errorf("%s\n got %s\nwant %s", what, g, w)
	}
}

// async posts without waiting for the response.
func (p *peer) async(body string) <-chan *http.Response {
	p.t.Helper()
	r := p.request(http.MethodPost, body)
	c := make(chan *http.Response, 1)
	go func() {
		resp, err := p.client.Do(r)
		if err != nil {
			p.t.Error(err)
		} else {
			p.t.Cleanup(func() { _ = resp.Body.Close() })
		}
		c <- resp
	}()
	return c
}

// eventually waits for what no event tells.
func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	deadline := time.After(10 * time.Second)
	for !done() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("never: %s", what)
		}
	}
}
