package h1

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"testing"
)

// hook is a context whose end is told by AfterFunc only.
type hook struct {
	context.Context
	f       func()
	stopped int
}

func (*hook) Done() <-chan struct{} { panic("asked for its channel") }
func (*hook) Err() error            { return nil }
func (h *hook) AfterFunc(f func()) (stop func() bool) {
	h.f = f
	return func() bool { h.stopped++; return true }
}

func TestContextsThatCanAreWatchedWithoutAChannel(t *testing.T) {
	addr := rawServer(t, func(_ int, c net.Conn, br *bufio.Reader) {
		for n := 0; readRequest(br); n++ {
			if n < 2 {
				_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
				continue
			}
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\no")
		}
	})
	c := newTestClient(t, addr)
	fetch(t, c, request("{}")) // dialing may ask for the channel
	h := &hook{Context: context.Background()}
	resp, err := c.Do(h, request("{}"))
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.ReadAll(resp)
	resp.Finish()
	if h.f == nil || h.stopped != 1 {
		t.Fatalf("stopped %d times", h.stopped)
	}

	resp, err = c.Do(h, request("{}"))
	if err != nil {
		t.Fatal(err)
	}
	h.f() // the context ends
	if _, err := io.ReadAll(resp); !errors.Is(err, net.ErrClosed) {
		t.Errorf("read: %v", err)
	}
	resp.Abort()
}

func TestChunksThatCameTogetherAreReadTogether(t *testing.T) {
	addr := rawServer(t, func(_ int, c net.Conn, br *bufio.Reader) {
		if readRequest(br) {
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"+
				"3\r\none\r\n3;x=y\r\ntwo\r\n05\r\nthree\r\n4\r\nfour\r\n0\r\n\r\n")
			readRequest(br)
		}
	})
	c := newTestClient(t, addr)
	resp, err := c.Do(context.Background(), request("{}"))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	buf := make([]byte, 100)
	for {
		n, err := resp.Read(buf)
		if n > 0 {
			got = append(got, string(buf[:n]))
		}
		if err != nil {
			break
		}
	}
	if len(got) != 2 || got[0] != "onetwo" || got[1] != "threefour" { // a size that begins with 0 may be the last one
		t.Errorf("%q", got)
	}
	resp.Finish()
	if _, idle := counts(c); idle != 1 {
		t.Error("the connection was not kept")
	}
}
