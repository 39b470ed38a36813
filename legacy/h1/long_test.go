package h1

import (
	"io"
	"log"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// fields returns n header fields.
func fields(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString("X" + strconv.Itoa(i) + ":\r\n")
	}
	return b.String()
}

const requestLine = "GET / HTTP/1.1\r\nHost: localhost\r\n"

func TestTheHeadOfARequestIsBounded(t *testing.T) {
	quiet := func() *http.Server { return &http.Server{ErrorLog: log.New(io.Discard, "", 0)} }
	_, lean := serveWith(t, echo, quiet())
	standard := NewStandard(http.HandlerFunc(echo), quiet())
	for name, addr := range map[string]string{"lean": lean, "standard": listen(t, standard.Serve, standard.Close)} {
		for what, tc := range map[string]struct {
			head string
			want int
		}{
			"long":            {"X: " + strings.Repeat("x", MaxHead-1000) + "\r\n", http.StatusOK},
			"too long":        {"X: " + strings.Repeat("x", MaxHead+5000) + "\r\n", http.StatusRequestHeaderFieldsTooLarge},
			"many fields":     {fields(maxFields - 1), http.StatusOK},
			"too many fields": {fields(maxFields + 1), http.StatusRequestHeaderFieldsTooLarge},
			"the same field":  {strings.Repeat("X:\r\n", maxFields+1), http.StatusRequestHeaderFieldsTooLarge},
		} {
			w := dial(t, addr)
			w.send(requestLine + tc.head + "\r\n")
			if resp, _ := w.read(); resp.StatusCode != tc.want || resp.Close != (tc.want != http.StatusOK) {
				t.Errorf("%s, %s: %s, close %v", name, what, resp.Status, resp.Close)
			}
		}
	}
}

// What is unfinished is kept as it came: net/http would make ten times as much of it.
func TestALongHeadIsReadBeforeNetHTTPGetsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var given atomic.Int32
		s := New(http.HandlerFunc(echo), &http.Server{ReadHeaderTimeout: 10 * time.Second, ConnState: func(_ net.Conn, state http.ConnState) {
			if state == http.StateNew {
				given.Add(1)
			}
		}})
		connect := func() *wire {
			near, far := net.Pipe()
			s.ServeConn(far)
			return newWire(t, near)
		}
		late := connect()
		late.send(requestLine + fields(900))
		time.Sleep(9 * time.Second)
		whole := connect()
		whole.send(requestLine + fields(900))
		time.Sleep(9 * time.Second)
		if n := given.Load(); n != 0 {
			t.Errorf("net/http has %d connections with half a head", n)
		}
		if !late.closed() {
			t.Error("a head may take as long as it likes")
		}
		whole.send("\r\n")
		if resp, _ := whole.read(); resp.StatusCode != http.StatusOK || given.Load() != 1 {
			t.Errorf("%s of %d connections of net/http", resp.Status, given.Load())
		}
		_ = whole.Close()
		_ = s.Close()
		synctest.Wait()
	})
}
