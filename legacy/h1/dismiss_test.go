package h1

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
)

// untimely is a connection that tells of what was read before whoever reads knows it.
type untimely struct {
	net.Conn
	read func()
}

func (u *untimely) Read(p []byte) (int, error) {
	n, err := u.Conn.Read(p)
	if n > 0 {
		u.read()
	}
	return n, err
}

// TestShutdownServesARequestThatHasJustBeenRead: its bytes are with the bridge alone.
func TestShutdownServesARequestThatHasJustBeenRead(t *testing.T) {
	client, server := net.Pipe()
	defer client.Close()
	s := New(number(t), new(http.Server))
	nc := &untimely{Conn: server}
	cn := newConn(s, nc)
	s.add(cn)
	ended := make(chan error, 1)
	nc.read = sync.OnceFunc(func() {
		for _, open := range s.begin() {
			open.dismiss()
		}
		go func() { ended <- s.Shutdown(t.Context()) }()
	})
	go cn.serve()
	if _, err := io.WriteString(client, get); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(client), nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if err := <-ended; err != nil || resp.StatusCode != http.StatusOK || !resp.Close {
		t.Errorf("%s, close: %v, %v", resp.Status, resp.Close, err)
	}
}
