//go:build linux

package legacy

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/bridge/internal/testmode"
)

func waitParked(t *testing.T, h *HTTP, streams, idle int) {
	t.Helper()
	testmode.NeedsParking(t)
	eventually(t, fmt.Sprintf("%d streams and %d idle connections are parked", streams, idle), func() bool {
		s, i := h.streams.Parked()
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

// waitParked waits until this connection, on which a response has begun, carries it
// without a goroutine.
func (l *wire) waitParked(h *HTTP) {
	l.t.Helper()
	testmode.NeedsParking(l.t)
	eventually(l.t, "the stream is parked", func() bool {
		_, busy := running.Load(l.conn.LocalAddr().String())
		streams, _ := h.streams.Parked()
		return !busy && streams > 0
	})
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

// idleAfterCall makes a call and waits until its connection is parked without a
// stream.
func idleAfterCall(t *testing.T, h *HTTP, p *peer, b *fakeBackend) *wire {
	t.Helper()
	l, resp, k := heldCall(t, h, p, b)
	k.finish(`{}`)
	_ = readEvents(t, resp).rest()
	waitParked(t, h, 0, 1)
	return l
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
