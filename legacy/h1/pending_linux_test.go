package h1

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"runtime"
	"testing"
)

// TestShutdownServesARequestThatHasCome: though nobody has seen it yet.
func TestShutdownServesARequestThatHasCome(t *testing.T) {
	client, nc := tcpPair(t)
	s := New(number(t), new(http.Server))
	cn := newConn(s, nc)
	s.add(cn)
	if pending(nc) {
		t.Fatal("something has come")
	}
	arrive(t, client, nc)
	ended := make(chan error)
	go func() { ended <- s.Shutdown(t.Context()) }()
	for !s.closing.Load() {
		runtime.Gosched()
	}
	cn.dismiss() // as Shutdown does
	wantServed(t, cn, client, ended)
}

// TestShutdownServesARequestThatComesUntilTheConnectionEnds: the connection has the shutdown's word, and its goroutine has yet to run.
func TestShutdownServesARequestThatComesUntilTheConnectionEnds(t *testing.T) {
	client, nc := tcpPair(t)
	s := New(number(t), new(http.Server))
	cn := newConn(s, nc)
	s.add(cn)
	open := s.begin()
	open[0].dismiss()
	arrive(t, client, nc)
	ended := make(chan error)
	go func() { ended <- s.Shutdown(t.Context()) }()
	wantServed(t, cn, client, ended)
}

// arrive has a request come that nobody reads.
func arrive(t *testing.T, client, nc net.Conn) {
	t.Helper()
	if _, err := io.WriteString(client, get); err != nil {
		t.Fatal(err)
	}
	for !pending(nc) {
		runtime.Gosched()
	}
}

func wantServed(t *testing.T, cn *conn, client net.Conn, ended <-chan error) {
	t.Helper()
	go cn.serve()
	resp, err := http.ReadResponse(bufio.NewReader(client), nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if err := <-ended; err != nil || resp.StatusCode != http.StatusOK || !resp.Close {
		t.Errorf("%s, the last: %v, %v", resp.Status, resp.Close, err)
	}
}
