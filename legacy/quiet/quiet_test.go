//go:build linux

package quiet

import (
	"bufio"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcpbridge/bridge/internal/gate"
	"github.com/mcpbridge/bridge/legacy/h1"
	"github.com/mcpbridge/bridge/legacy/message"
	"github.com/mcpbridge/bridge/sessions"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// event is a stream whose events are lines.
type event struct {
	*sessions.Stream
	listens bool
	over    chan error  // every call of Over
	lapsed  atomic.Bool // its client may not listen any more
}

func (*event) Frame(to *message.Frames, _, _ uint64, data []byte) {
	buf := to.Buffer()
	if len(data) < long {
		*buf = append(append(*buf, data...), '\n')
		return
	}
	to.Share(data)
	*buf = append(*buf, '\n')
}

// long is from where on an event is not copied.
const long = 1 << 20

func (e *event) Listens() bool  { return e.listens }
func (e *event) Lapsed() bool   { return e.lapsed.Load() }
func (e *event) Over(err error) { e.over <- err }

// head is the carrier that begins a response, and has nothing to say.
type head struct{}

func (head) Write(uint64, uint64, []byte) {}
func (head) Flush(bool) error             { return nil }
func (head) Ping() error                  { return nil }
func (head) Drain() error                 { return nil }
func (head) End(error)                    {}

// endpoint serves "/call" and "/listen" with responses that are parked at once, and all
// else with the path.
type endpoint struct {
	t      *testing.T
	conns  *Conns
	gate   *gate.Gate
	addr   string
	parked chan *event
}

func serve(t *testing.T, opt Options) *endpoint {
	opt.Gate = gate.New()
	e := &endpoint{t: t, conns: New(opt), gate: opt.Gate, parked: make(chan *event, 16)}
	s := &http.Server{Handler: e, ConnContext: ConnContext, ErrorLog: log.New(io.Discard, "", 0)}
	lean := h1.New(e, s)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	e.addr = l.Addr().String()
	done := make(chan error, 1)
	go func() { done <- lean.Serve(l) }()
	t.Cleanup(func() {
		e.conns.Close()
		_ = lean.Close()
		<-done
	})
	return e
}

func (e *endpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/call" && r.URL.Path != "/listen" {
		_, _ = io.WriteString(w, r.URL.Path)
		return
	}
	s := &event{Stream: sessions.NewStream(1, sessions.Limits{Bytes: 64 << 20}), listens: r.URL.Path == "/listen", over: make(chan error, 8)}
	s.Attach(head{}, 0)
	w.WriteHeader(http.StatusOK)
	_ = http.NewResponseController(w).Flush()
	if !e.conns.Ready(w, r) || !s.Hold(head{}) || !e.conns.Park(w, r, head{}, s) {
		e.t.Error("it cannot be parked")
	}
	e.parked <- s
}

// A parked response whose client may not listen any more ends in order, and its connection is used again.
func TestAResponseThatLapsesEnds(t *testing.T) {
	e := serve(t, Options{KeepAlive: 30 * time.Millisecond, WriteTimeout: time.Second})
	l, resp, s := e.park("/listen")
	s.lapsed.Store(true)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	late := time.After(10 * time.Second)
	for over := false; !over; {
		select {
		case err := <-s.over:
			want(t, "why", err, nil)
			over = true
		case <-tick.C:
			e.conns.Run()
		case <-late:
			t.Fatal("it goes on")
		}
	}
	_ = l.text(resp)
	want(t, "the next request", l.text(l.get("/x")), "/x")
}

// line is a client's connection.
type line struct {
	t    *testing.T
	conn net.Conn
	r    *bufio.Reader
}

func (e *endpoint) dial() *line {
	e.t.Helper()
	conn, err := net.Dial("tcp", e.addr)
	if err != nil {
		e.t.Fatal(err)
	}
	e.t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	return &line{e.t, conn, bufio.NewReader(conn)}
}

func (l *line) get(path string) *http.Response {
	l.t.Helper()
	if _, err := io.WriteString(l.conn, "GET "+path+" HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
		l.t.Fatal(err)
	}
	resp, err := http.ReadResponse(l.r, nil)
	if err != nil {
		l.t.Fatal(err)
	}
	return resp
}

// park opens a response that is parked by the time that park returns.
func (e *endpoint) park(path string) (*line, *http.Response, *event) {
	e.t.Helper()
	l := e.dial()
	resp := l.get(path)
	return l, resp, <-e.parked
}

func (l *line) text(resp *http.Response) string {
	l.t.Helper()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		l.t.Fatal(err)
	}
	return string(body)
}

func (l *line) closed() bool {
	_, err := l.r.ReadByte()
	ne, timeout := err.(net.Error)
	return err != nil && !(timeout && ne.Timeout())
}

func want(t *testing.T, what string, got, want any) {
	t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// eventually waits for what another goroutine does.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(20 * time.Second); !is(); <-tick.C {
		if time.Now().After(end) {
			t.Fatal("never: " + what)
		}
	}
}

func (e *endpoint) wait(responses, idle int) {
	e.t.Helper()
	eventually(e.t, fmt.Sprintf("%d responses and %d idle connections", responses, idle), func() bool {
		r, i := e.conns.Count()
		return r == responses && i == idle
	})
}

var fine = Options{KeepAlive: time.Hour, WriteTimeout: time.Minute}

func TestParkedResponseGoesOnAndItsConnectionServesFurtherRequests(t *testing.T) {
	e := serve(t, fine)
	l := e.dial()
	for range 3 {
		resp := l.get("/call")
		s := <-e.parked
		e.wait(1, 0)
		s.Append([]byte("one"))
		s.Append([]byte("two"))
		s.Finish([]byte("three"))
		want(t, "events", l.text(resp), "one\ntwo\nthree\n")
		want(t, "it ended in order", <-s.over, error(nil))
		e.wait(0, 1)
		want(t, "the next request", l.text(l.get("/next")), "/next")
	}
}

// It takes a part of a piece at a time, of the connection's own and of what is not copied.
func TestLongEventsReachAReaderThatIsBehind(t *testing.T) {
	e := serve(t, fine)
	l, resp, s := e.park("/call")
	text := strings.Repeat("0123456789abcdef", long)
	s.Append([]byte("one"))
	s.Append([]byte(text))
	s.Finish([]byte(text + "end"))
	got := l.text(resp)
	want(t, "bytes", len(got), len("one\n")+2*len(text)+len("\nend\n"))
	want(t, "all in order", got == "one\n"+text+"\n"+text+"end\n", true)
	want(t, "it ended in order", <-s.over, error(nil))
	want(t, "the next request", l.text(l.get("/next")), "/next")
}

func TestHangUpOnlyDetaches_E12(t *testing.T) {
	e := serve(t, fine)
	l, _, s := e.park("/call")
	_ = l.conn.Close()
	want(t, "it is over", <-s.over, error(nil))
	eventually(t, "the stream is free", func() bool { return !s.Attached() })
	want(t, "and goes on", s.Append([]byte("x")), true)
	e.wait(0, 0)
}

// The client has left a moment ago, and the poller has yet to say so: what is written goes nowhere.
func TestTheLastWordOverAParkedConnectionIsNoneForAClientThatHasLeft_E20(t *testing.T) {
	e := serve(t, fine)
	l, _, s := e.park("/call")
	e.wait(1, 0)
	for _, o := range e.conns.poller.Load().Owners() {
		e.conns.poller.Load().Forget(o.(*parked).watch)
	}
	_ = l.conn.Close()
	s.Finish([]byte("last"))
	want(t, "it counts as delivered", s.Delivered(), false)
	want(t, "the connection is the stream's still", s.Attached(), false)
	want(t, "why", <-s.over, errClosed)
	want(t, "the last word is kept", s.Follows(0), true)
}

func TestSilenceIsBrokenByComments(t *testing.T) {
	e := serve(t, Options{KeepAlive: 30 * time.Millisecond, WriteTimeout: time.Minute})
	l, resp, s := e.park("/listen")
	var stop atomic.Bool
	done := make(chan struct{})
	go func() {
		defer close(done)
		eventually(t, "the client has seen enough", func() bool { e.conns.Run(); return stop.Load() })
	}()
	body := bufio.NewReader(resp.Body)
	for comments := 0; comments < 3; {
		text, err := body.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(text, ":") {
			comments++
		}
	}
	stop.Store(true)
	<-done
	s.Finish(nil)
	_, _ = io.Copy(io.Discard, body)
	want(t, "the next request", l.text(l.get("/next")), "/next")
}

func TestReaderThatStallsIsLetGo(t *testing.T) {
	e := serve(t, Options{KeepAlive: time.Hour, WriteTimeout: 50 * time.Millisecond})
	_, _, s := e.park("/call")
	s.Append([]byte(strings.Repeat("x", 16<<20)))
	want(t, "why", <-s.over, ErrSlow)
	e.wait(0, 0)
	eventually(t, "nobody waits for it", func() bool { return e.gate.Count() == 0 })
}

func TestShutdownEndsWhatListensAndWaitsForCalls(t *testing.T) {
	e := serve(t, fine)
	call, answer, s := e.park("/call")
	listener, events, _ := e.park("/listen")
	e.gate.Shut()
	e.conns.EndListeners()
	want(t, "what listens", listener.text(events), "")
	s.Finish([]byte("answer"))
	want(t, "the call", call.text(answer), "answer\n")
	// A balancer takes each for free, and may be about to use it: they are the server's to end.
	want(t, "a request behind what listened", listener.text(listener.get("/next")), "/next")
	want(t, "a request behind the call", call.text(call.get("/next")), "/next")
}

func TestWhatIsParkedDuringAShutdown(t *testing.T) {
	e := serve(t, fine)
	e.gate.Shut()
	e.conns.EndListeners()
	l, events, _ := e.park("/listen")
	want(t, "what listens ends", l.text(events), "")
	l, answer, s := e.park("/call")
	s.Finish([]byte("answer"))
	want(t, "a call does not", l.text(answer), "answer\n")
}

func TestCloseCutsResponsesAndGivesConnectionsBack(t *testing.T) {
	e := serve(t, fine)
	call, _, s := e.park("/call")
	idle, resp, done := e.park("/call")
	done.Finish(nil)
	_ = idle.text(resp)
	e.wait(1, 1)
	e.conns.Close()
	e.wait(0, 0)
	want(t, "the response", call.closed(), true)
	want(t, "it is over", <-s.over, error(nil))
	want(t, "a request on the idle connection, which is the server's", idle.text(idle.get("/next")), "/next")
}

func idleLine(e *endpoint) *line {
	l, resp, s := e.park("/call")
	s.Finish(nil)
	_ = l.text(resp)
	e.wait(0, 1)
	return l
}

func TestIdleConnectionIsClosedInTheEnd(t *testing.T) {
	e := serve(t, fine)
	l := idleLine(e)
	for _, o := range e.conns.poller.Load().Owners() {
		o.(*idleConn).Due()
	}
	want(t, "closed", l.closed(), true)
	e.wait(0, 0)
}

func TestIdleConnectionThatTheClientClosesIsForgotten(t *testing.T) {
	e := serve(t, fine)
	l := idleLine(e)
	_ = l.conn.Close()
	e.wait(0, 0)
	eventually(t, "it is off the agenda", func() bool { return e.conns.idle.Len() == 0 })
}
