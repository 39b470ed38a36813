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
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	client, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	nc, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	s := New(number(t), new(http.Server))
	cn := newConn(s, nc)
	s.add(cn)
	if pending(nc) {
		t.Fatal("something has come")
	}
	if _, err := io.WriteString(client, get); err != nil {
		t.Fatal(err)
	}
	for !pending(nc) {
		runtime.Gosched()
	}
	ended := make(chan error)
	go func() { ended <- s.Shutdown(t.Context()) }()
	for !s.closing.Load() {
		runtime.Gosched()
	}
	cn.dismiss() // as Shutdown does
	go cn.serve()
	resp, err := http.ReadResponse(bufio.NewReader(client), nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if err := <-ended; err != nil || resp.StatusCode != http.StatusOK {
		t.Errorf("%s, %v", resp.Status, err)
	}
}
