//go:build linux

package legacy

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcpbridge/bridge/internal/park"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/sessions"
	"github.com/mcpbridge/bridge/sse"
	"golang.org/x/sys/unix"
)

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

// parkedCount returns how many connections stream without a goroutine, and how
// many wait for another request.
func (h *HTTP) parkedCount() (streams, idle int) {
	poller := h.lot.poller.Load()
	if poller == nil {
		return 0, 0
	}
	for _, o := range poller.Owners() {
		if _, ok := o.(*parked); ok {
			streams++
		} else {
			idle++
		}
	}
	return streams, idle
}

func waitParked(t *testing.T, h *HTTP, streams, idle int) {
	t.Helper()
	eventually(t, fmt.Sprintf("%d streams and %d idle connections are parked", streams, idle), func() bool {
		s, i := h.parkedCount()
		return s == streams && i == idle
	})
}

// wire is a client's connection, byte by byte.
type wire struct {
	t    *testing.T
	conn net.Conn
	r    *bufio.Reader
}

func dialWire(t *testing.T, p *peer) *wire {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(p.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	return &wire{t, conn, bufio.NewReader(conn)}
}

// send writes requests in one piece.
func (l *wire) send(requests ...*http.Request) {
	l.t.Helper()
	var b strings.Builder
	for _, r := range requests {
		if err := r.Write(&b); err != nil {
			l.t.Fatal(err)
		}
	}
	if _, err := io.WriteString(l.conn, b.String()); err != nil {
		l.t.Fatal(err)
	}
}

// response reads the head of the next response.
func (l *wire) response() *http.Response {
	l.t.Helper()
	resp, err := http.ReadResponse(l.r, nil)
	if err != nil {
		l.t.Fatal(err)
	}
	return resp
}

// body reads a whole response and returns its body.
func (l *wire) body() string {
	l.t.Helper()
	return text(l.t, l.response())
}

// closed reports whether the server closed the connection with nothing left to read.
func (l *wire) closed() bool {
	n, err := l.r.Read(make([]byte, 1))
	return n == 0 && err != nil && !isTimeout(err)
}

func isTimeout(err error) bool {
	ne, ok := err.(net.Error)
	return ok && ne.Timeout()
}

// waitParked waits until this connection carries a stream without a goroutine.
func (l *wire) waitParked(h *HTTP) {
	l.t.Helper()
	eventually(l.t, "the stream is parked", func() bool {
		poller := h.lot.poller.Load()
		return poller != nil && slices.ContainsFunc(poller.Owners(), func(o park.Owner) bool {
			p, ok := o.(*parked)
			return ok && peerPort(p.sock) == l.conn.LocalAddr().(*net.TCPAddr).Port
		})
	})
}

func peerPort(s park.Socket) int {
	sa, _ := unix.Getpeername(int(s))
	in4, ok := sa.(*unix.SockaddrInet4)
	if !ok {
		return 0
	}
	return in4.Port
}

// heldCall starts a call on a fresh connection and waits until it is parked.
func heldCall(t *testing.T, h *HTTP, p *peer, b *fakeBackend) (*wire, *http.Response, *call) {
	t.Helper()
	l := dialWire(t, p)
	l.send(p.request(http.MethodPost, hold))
	k := <-b.held
	k.Send([]byte(note))
	resp := l.response()
	l.waitParked(h)
	return l, resp, k
}

// heldGet opens a standalone stream and waits until it is parked.
func heldGet(t *testing.T, h *HTTP, p *peer, last string) (*wire, *http.Response) {
	t.Helper()
	l := dialWire(t, p)
	r := p.request(http.MethodGet, "")
	if last != "" {
		r.Header.Set("Last-Event-ID", last)
	}
	l.send(r)
	resp := l.response()
	l.waitParked(h)
	return l, resp
}

func TestParkedCallGoesOnAndItsConnectionServesFurtherRequests(t *testing.T) {
	b := newFake()
	h, p := serve(t, Options{}, b)
	p.initialize(mcp.V20250618)
	l := dialWire(t, p)
	for round := 1; round <= 3; round++ {
		l.send(p.request(http.MethodPost, hold))
		k := <-b.held
		k.Send([]byte(note))
		resp := l.response()
		waitParked(t, h, 1, 0)
		k.Send([]byte(`{"n":1}`))
		k.finish(`{"done":true}`)
		want(t, "events", readEvents(t, resp).rest(), []string{
			fmt.Sprintf("%d-1|%s", round, note), fmt.Sprintf(`%d-2|{"n":1}`, round),
			fmt.Sprintf(`%d-3|{"jsonrpc":"2.0","id":1,"result":{"done":true}}`, round),
		})
		waitParked(t, h, 0, 1)
		l.send(p.request(http.MethodPost, ping))
		want(t, "next request", l.body(), `{"jsonrpc":"2.0","id":1,"result":{"n":1}}`)
	}
}

func TestParkedGetDeliversResumesAndReplays_E21(t *testing.T) {
	b := newFake()
	h, p := serve(t, Options{}, b)
	p.initialize(mcp.V20251125)
	conv := b.last()
	_, resp := heldGet(t, h, p, "")
	ev := readEvents(t, resp)
	want(t, "priming", ev.next(), "0-1|")
	conv.push.Push("k", []byte(`{"n":1}`))
	want(t, "live", ev.next(), `0-2|{"n":1}`)
	conv.push.Push("k", []byte(`{"n":2}`))
	_, resp2 := heldGet(t, h, p, "0-2") // takes over, and is parked in its turn
	ev2 := readEvents(t, resp2)
	want(t, "the first one got it as well, then ended", ev.rest(), []string{`0-3|{"n":2}`})
	want(t, "replay", ev2.next(), `0-3|{"n":2}`)
	conv.push.Push("k", []byte(`{"n":3}`))
	want(t, "live again", ev2.next(), `0-4|{"n":3}`)
}

func TestReplacedStreamsConnectionServesFurtherRequests_A31(t *testing.T) {
	b := newFake()
	h, p := serve(t, Options{}, b)
	p.initialize(mcp.V20250618)
	l, resp := heldGet(t, h, p, "")
	_ = p.get("")
	want(t, "nothing", readEvents(t, resp).rest(), []string{})
	l.send(p.request(http.MethodPost, ping))
	want(t, "next request", l.body(), `{"jsonrpc":"2.0","id":1,"result":{"n":1}}`)
}

func TestHangUpOfAParkedCallIsNoCancellation_E12_E20(t *testing.T) {
	b := newFake()
	h, p := serve(t, Options{}, b)
	p.initialize(mcp.V20251125)
	l, _, k := heldCall(t, h, p, b)
	s, _ := h.table.Get(p.session)
	st := s.stream(1)
	l.conn.Close()
	eventually(t, "the hang-up is noticed", func() bool { return !st.Attached() })
	waitParked(t, h, 0, 0)
	want(t, "conversation", b.last().cause(), error(nil))
	want(t, "busy", s.busy(), true)
	k.Send([]byte(`{"n":1}`))
	k.finish(`{"late":true}`)
	want(t, "resumed", readEvents(t, p.get("1-2")).rest(), []string{
		`1-3|{"n":1}`, `1-4|{"jsonrpc":"2.0","id":1,"result":{"late":true}}`,
	})
}

func TestHangUpOfAParkedGetFreesItsSession_A33(t *testing.T) {
	b := newFake()
	h, p := serve(t, Options{}, b)
	p.initialize(mcp.V20250618)
	l, _ := heldGet(t, h, p, "")
	s, _ := h.table.Get(p.session)
	want(t, "busy while it listens", s.busy(), true)
	l.conn.Close()
	eventually(t, "the session is idle", func() bool { return !s.busy() })
	b.last().push.Push("k", []byte(`{"kept":1}`))
	_, resp := heldGet(t, h, p, "")
	want(t, "kept for the next one", readEvents(t, resp).next(), `0-1|{"kept":1}`)
}

func TestRequestSentAheadIsServedAfterTheStream(t *testing.T) {
	for name, early := range map[string]bool{"with the call": true, "while it is parked": false} {
		t.Run(name, func(t *testing.T) {
			b := newFake()
			h, p := serve(t, Options{}, b)
			p.initialize(mcp.V20250618)
			l := dialWire(t, p)
			call, next := p.request(http.MethodPost, hold), []*http.Request{p.request(http.MethodPost, ping), p.request(http.MethodPost, ping)}
			if early {
				l.send(call, next[0], next[1])
			} else {
				l.send(call)
			}
			k := <-b.held
			k.Send([]byte(note))
			resp := l.response()
			waitParked(t, h, 1, 0)
			if !early {
				l.send(next...)
			}
			k.finish(`{}`)
			want(t, "events", len(readEvents(t, resp).rest()), 2)
			for range next {
				want(t, "next", l.body(), `{"jsonrpc":"2.0","id":1,"result":{"n":1}}`)
			}
			// A connection that was read ahead is parked as well.
			l.send(p.request(http.MethodPost, hold))
			k = <-b.held
			k.Send([]byte(note))
			resp = l.response()
			waitParked(t, h, 1, 0)
			k.finish(`{}`)
			want(t, "again", len(readEvents(t, resp).rest()), 2)
		})
	}
}

func TestConnectionIsClosedWhenTheClientWantsIt(t *testing.T) {
	b := newFake()
	h, p := serve(t, Options{}, b)
	p.initialize(mcp.V20250618)
	l := dialWire(t, p)
	r := p.request(http.MethodPost, hold)
	r.Close = true
	l.send(r)
	k := <-b.held
	k.Send([]byte(note))
	resp := l.response()
	waitParked(t, h, 1, 0)
	k.finish(`{}`)
	want(t, "events", len(readEvents(t, resp).rest()), 2)
	want(t, "closed", l.closed(), true)
	waitParked(t, h, 0, 0)
}

func TestAbandonedParkedCallEndsItsResponse(t *testing.T) {
	b := newFake()
	h, p := serve(t, Options{}, b)
	p.initialize(mcp.V20250618)
	l, resp, k := heldCall(t, h, p, b)
	k.Abandon()
	want(t, "no response", readEvents(t, resp).rest(), []string{"1-1|" + note})
	l.send(p.request(http.MethodPost, ping))
	want(t, "next request", l.body(), `{"jsonrpc":"2.0","id":1,"result":{"n":1}}`)
}

func TestDeleteEndsParkedStreams_A30(t *testing.T) {
	b := newFake()
	h, p := serve(t, Options{}, b)
	p.initialize(mcp.V20250618)
	_, call, _ := heldCall(t, h, p, b)
	_, get := heldGet(t, h, p, "")
	want(t, "status", p.do(p.request(http.MethodDelete, "")).StatusCode, 204)
	want(t, "call", readEvents(t, call).rest(), []string{"1-1|" + note})
	want(t, "GET", readEvents(t, get).rest(), []string{})
	waitParked(t, h, 0, 2)
}

func TestShutdownEndsListenersWaitsForCallsAndClosesConnections(t *testing.T) {
	b := newFake()
	h, p := serve(t, Options{}, b)
	p.initialize(mcp.V20250618)
	callLine, call, k := heldCall(t, h, p, b)
	getLine, get := heldGet(t, h, p, "")
	down := make(chan error)
	go func() { down <- h.Shutdown(t.Context()) }()
	want(t, "GET ends", readEvents(t, get).rest(), []string{})
	want(t, "and is closed", getLine.closed(), true)
	k.Send([]byte(`{"still":"there"}`))
	k.finish(`{}`)
	want(t, "the call", len(readEvents(t, call).rest()), 3)
	want(t, "shutdown", <-down, error(nil))
	want(t, "the call's connection", callLine.closed(), true)
	waitParked(t, h, 0, 0)
}

func TestCloseCutsEverythingThatIsParked(t *testing.T) {
	b := newFake()
	h, p := serve(t, Options{}, b)
	p.initialize(mcp.V20250618)
	l, resp, k := heldCall(t, h, p, b)
	k.finish(`{}`)
	_ = readEvents(t, resp).rest()
	waitParked(t, h, 0, 1)
	stateless := dialWire(t, p) // its conversation belongs to no session
	r := p.request(http.MethodPost, hold)
	r.Header.Del("Mcp-Session-Id")
	stateless.send(r)
	k = <-b.held
	k.Send([]byte(note))
	_ = stateless.response()
	waitParked(t, h, 1, 1)
	h.Close()
	waitParked(t, h, 0, 0)
	want(t, "idle connection", l.closed(), true)
	k.finish(`{}`) // finds nobody
}

func TestIdleConnectionIsClosedInTheEnd(t *testing.T) {
	b := newFake()
	h, p := serve(t, Options{}, b)
	p.initialize(mcp.V20250618)
	l, resp, k := heldCall(t, h, p, b)
	k.finish(`{}`)
	_ = readEvents(t, resp).rest()
	waitParked(t, h, 0, 1)
	for _, o := range h.lot.poller.Load().Owners() {
		o.(*between).due()
	}
	want(t, "closed", l.closed(), true)
	waitParked(t, h, 0, 0)
}

func TestIdleConnectionThatTheClientClosesIsForgotten(t *testing.T) {
	b := newFake()
	h, p := serve(t, Options{}, b)
	p.initialize(mcp.V20250618)
	l, resp, k := heldCall(t, h, p, b)
	k.finish(`{}`)
	_ = readEvents(t, resp).rest()
	waitParked(t, h, 0, 1)
	l.conn.Close()
	waitParked(t, h, 0, 0)
	eventually(t, "it is off the agenda", func() bool {
		for i := range h.lot.idles.shards {
			s := &h.lot.idles.shards[i]
			s.mu.Lock()
			first := s.head
			s.mu.Unlock()
			if first != nil {
				return false
			}
		}
		return true
	})
}

func TestConnectionOfAStoppedServerIsClosed(t *testing.T) {
	b := newFake()
	h := NewHTTP(Options{Rest: janitorStep}, b)
	s := httptest.NewUnstartedServer(h)
	s.Config.ConnContext = ConnContext
	s.Start()
	p := &peer{t: t, client: s.Client(), url: s.URL, header: http.Header{}}
	p.initialize(mcp.V20250618)
	l, resp, k := heldCall(t, h, p, b)
	k.finish(`{}`)
	_ = readEvents(t, resp).rest()
	waitParked(t, h, 0, 1)
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
	plain := func(h http.Handler) *httptest.Server {
		s := httptest.NewUnstartedServer(h)
		s.Config.ConnContext = ConnContext
		return s
	}
	for name, start := range map[string]func(http.Handler) *httptest.Server{
		"no ConnContext": httptest.NewServer,
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
			h := NewHTTP(Options{Rest: janitorStep, KeepAlive: 90 * time.Millisecond}, b)
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
			streams, idle := h.parkedCount()
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

func TestSlowReaderHoldsNobodyUpAndLosesNothing(t *testing.T) {
	b := newFake()
	h, p := serve(t, Options{Log: testLimits}, b)
	const clients, events = 4, 40
	big := `{"jsonrpc":"2.0","method":"m","params":"` + strings.Repeat("x", 256<<10) + `"}`
	var slow *http.Response
	var quick sync.WaitGroup
	for i := range clients {
		p.session = ""
		p.initialize(mcp.V20250618)
		_, resp := heldGet(t, h, p, "")
		if i == 0 {
			slow = resp
			continue
		}
		quick.Go(func() { wantSequence(t, resp, events) })
	}
	for n := range events {
		for _, c := range b.convs {
			c.push.Push(fmt.Sprint(n), []byte(big))
		}
	}
	quick.Wait() // while the slow client has not read anything
	want(t, "somebody waits for the slow one", h.inFlight.Load(), 1)
	wantSequence(t, slow, events)
	streams, _ := h.parkedCount()
	want(t, "parked", streams, clients)
}

// wantSequence reads events and checks that none is missing or out of order.
func wantSequence(t *testing.T, resp *http.Response, events int) {
	d := sse.NewDecoder(resp.Body, 1<<20)
	for n := 1; n <= events; n++ {
		ev, err := d.Next()
		if err != nil || ev.ID != fmt.Sprintf("0-%d", n) {
			t.Errorf("event %d: %q, %v", n, ev.ID, err)
			return
		}
	}
}

func TestReaderThatStallsIsLetGoAndMayResume(t *testing.T) {
	b := newFake()
	h, p := serve(t, Options{WriteTimeout: 50 * time.Millisecond, Log: testLimits}, b)
	p.initialize(mcp.V20250618)
	_, _ = heldGet(t, h, p, "") // never reads
	s, _ := h.table.Get(p.session)
	big := []byte(`"` + strings.Repeat("x", 1<<20) + `"`)
	for n := range 16 {
		b.last().push.Push(fmt.Sprint(n), big)
	}
	eventually(t, "it is let go", func() bool { return !s.busy() })
	waitParked(t, h, 0, 0)
	want(t, "in flight", h.inFlight.Load(), 0)
	b.last().push.Push("k", []byte(`{"n":1}`))
	want(t, "resumed", readEvents(t, p.get("0-16")).next(), `0-17|{"n":1}`)
}

func TestCloseCutsASlowReader(t *testing.T) {
	b := newFake()
	h, p := serve(t, Options{WriteTimeout: time.Hour, Log: testLimits}, b)
	p.initialize(mcp.V20250618)
	l, _, k := heldCall(t, h, p, b)
	k.Send([]byte(`"` + strings.Repeat("x", 16<<20) + `"`))
	eventually(t, "somebody waits for the client", func() bool { return h.inFlight.Load() == 2 })
	h.Close()
	eventually(t, "nobody does", func() bool { return h.inFlight.Load() == 0 })
	_, err := io.Copy(io.Discard, l.conn)
	_ = err // cut: a reset or the end
	waitParked(t, h, 0, 0)
}

func TestAnswerToASlowReaderOutlivesItsCall(t *testing.T) {
	b := newFake()
	h, p := serve(t, Options{Log: testLimits}, b)
	p.initialize(mcp.V20250618)
	_, resp, k := heldCall(t, h, p, b)
	big := `"` + strings.Repeat("x", 8<<20) + `"`
	k.finish(big)
	down := make(chan error)
	go func() { down <- h.Shutdown(t.Context()) }() // waits until the answer is delivered
	all := text(t, resp)
	if !strings.HasSuffix(strings.TrimSpace(all), big+"}") {
		t.Errorf("got %d bytes", len(all))
	}
	want(t, "shutdown", <-down, error(nil))
}

func TestParkingLosesNothingUnderConcurrency(t *testing.T) {
	b := newFake()
	h, p := serve(t, Options{Rest: time.Nanosecond}, b)
	p.initialize(mcp.V20250618)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			l := dialWire(t, p)
			for range 10 {
				l.send(p.request(http.MethodPost, hold))
				k := <-b.held
				wg.Go(func() {
					tick := time.NewTicker(janitorStep / 7)
					defer tick.Stop()
					for n := range 20 {
						k.Send(fmt.Appendf(nil, `{"n":%d}`, n))
						<-tick.C
					}
					k.finish(`{}`)
				})
				got := readEvents(t, l.response()).rest()
				for n, e := range got[:len(got)-1] {
					if !strings.HasSuffix(e, fmt.Sprintf(`|{"n":%d}`, n)) {
						t.Errorf("event %d is %s", n, e)
					}
				}
				if len(got) != 21 {
					t.Errorf("%d events", len(got))
				}
			}
		})
	}
	wg.Wait()
	want(t, "in flight", h.inFlight.Load(), 0)
}

func TestHeldStreamsNeedNoGoroutines(t *testing.T) {
	const n = 400
	b := newFake()
	h, p := serve(t, Options{}, b)
	p.initialize(mcp.V20250618)
	before := runtime.NumGoroutine()
	var lines []*wire
	var calls []*call
	for range n {
		l := dialWire(t, p)
		l.send(p.request(http.MethodPost, hold))
		k := <-b.held
		k.Send([]byte(note))
		_ = l.response()
		lines, calls = append(lines, l), append(calls, k)
	}
	waitParked(t, h, n, 0)
	eventually(t, "goroutines are gone", func() bool { return runtime.NumGoroutine() <= before+5 })
	s, _ := h.table.Get(p.session)
	want(t, "in use", s.active.Load(), n)
	for i, k := range calls {
		k.finish(`{}`)
		if i%2 == 0 {
			lines[i].conn.Close()
		}
	}
	waitParked(t, h, 0, n/2)
	want(t, "in use", s.active.Load(), 0)
}

// testLimits lets logs hold the large events of these tests.
var testLimits = sessions.Limits{Bytes: 64 << 20}
