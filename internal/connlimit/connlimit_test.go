package connlimit

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"testing"
	"time"
)

// serve serves with at most this many connections that wait. A request for /stay stays
// until the test ends it.
func serve(t *testing.T, most int) (addr string, staying chan struct{}) {
	t.Helper()
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	staying, end := make(chan struct{}), make(chan struct{})
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/stay" {
			staying <- struct{}{}
			<-end
		}
	})}
	l := Listen(server, inner, most)
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	t.Cleanup(func() { close(end); _ = server.Close(); <-ended })
	return inner.Addr().String(), staying
}

func dial(t *testing.T, addr string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
	return conn
}

func get(t *testing.T, conn net.Conn, path string) (ok bool) {
	t.Helper()
	if _, err := io.WriteString(conn, "GET "+path+" HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		return false
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	return err == nil && resp.Body.Close() == nil && resp.StatusCode == http.StatusOK
}

// closed waits until the other side closes a connection.
func closed(conn net.Conn) bool {
	_, err := conn.Read(make([]byte, 1))
	return err == io.EOF || err != nil && !isTimeout(err)
}

func isTimeout(err error) bool {
	failure, ok := err.(net.Error)
	return ok && failure.Timeout()
}

func TestWhoSaysNothingMakesRoom(t *testing.T) {
	addr, staying := serve(t, 4)
	busy := dial(t, addr)
	answered := make(chan bool, 1)
	go func() { answered <- get(t, busy, "/stay") }()
	<-staying
	kept := dial(t, addr)
	if !get(t, kept, "/") {
		t.Fatal("the first request got no answer")
	}
	var silent []net.Conn
	for range 12 {
		silent = append(silent, dial(t, addr))
	}
	for i, conn := range silent[:9] {
		if !closed(conn) {
			t.Errorf("silent connection %d is still open", i)
		}
	}
	if !get(t, dial(t, addr), "/") {
		t.Error("a newcomer with a request got no answer")
	}
	if !get(t, kept, "/") {
		t.Error("a connection that had a request before was closed while silent ones were there")
	}
	select {
	case ok := <-answered:
		t.Error("the connection with a request under way ended", ok)
	default:
	}
}

// accepted are connections as a server would have them.
type accepted struct {
	net.Listener
	conns chan net.Conn
}

func (a accepted) Accept() (net.Conn, error) { return <-a.conns, nil }

// The states of connections decide: of those that are kept the one goes that has waited
// longest, and nothing is left of those that ended.
func TestKeptConnectionsMakeRoomForOneAnother(t *testing.T) {
	a := accepted{conns: make(chan net.Conn, 4)}
	server := &http.Server{}
	g := Listen(server, a, 2).(*guard)
	var kept, far []net.Conn
	for range 4 {
		near, other := net.Pipe()
		a.conns <- near
		conn, _ := g.Accept()
		server.ConnState(conn, http.StateNew)
		server.ConnState(conn, http.StateActive)
		server.ConnState(conn, http.StateIdle)
		kept, far = append(kept, conn), append(far, other)
	}
	for i, conn := range far {
		_ = conn.SetReadDeadline(time.Now()) // what is closed says so at once
		if got := closed(conn); got != (i < 2) {
			t.Errorf("connection %d is closed: %v", i, got)
		}
	}
	server.ConnState(kept[3], http.StateActive)
	for _, conn := range kept {
		server.ConnState(conn, http.StateClosed)
	}
	if n := len(g.at) + g.fresh.Len() + g.idle.Len(); n != 0 {
		t.Errorf("%d entries are left", n)
	}
}
