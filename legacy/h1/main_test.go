package h1

import (
	"bufio"
	"bytes"
	"io"
	"log"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

// net/http sleeps before it closes a connection with something unread.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("net/http.(*conn).closeWriteAndWait"))
}

// serve starts a server on the loopback.
func serve(t testing.TB, h http.HandlerFunc) (*Server, string) {
	t.Helper()
	return serveWith(t, h, &http.Server{})
}

func serveWith(t testing.TB, h http.HandlerFunc, standard *http.Server) (*Server, string) {
	t.Helper()
	if standard.ErrorLog == nil {
		standard.ErrorLog = log.New(io.Discard, "", 0)
	}
	s := New(h, standard)
	return s, listen(t, s.Serve, s.Close)
}

// serveStandard starts net/http's.
func serveStandard(t testing.TB, h http.HandlerFunc) string {
	t.Helper()
	s := &http.Server{Handler: h, ErrorLog: log.New(io.Discard, "", 0)}
	return listen(t, s.Serve, s.Close)
}

func listen(t testing.TB, serve func(net.Listener) error, stop func() error) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- serve(l) }()
	t.Cleanup(func() {
		_ = stop()
		<-done
	})
	return l.Addr().String()
}

// wire is a client that shows the wire as it is.
type wire struct {
	t testing.TB
	net.Conn
	in *bufio.Reader
}

func dial(t testing.TB, addr string) *wire {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return newWire(t, c)
}

func newWire(t testing.TB, c net.Conn) *wire { return &wire{t, c, bufio.NewReader(c)} }

func (w *wire) send(text string) {
	w.t.Helper()
	if _, err := io.WriteString(w, text); err != nil {
		w.t.Fatal(err)
	}
}

// read returns the next response and its body.
func (w *wire) read() (*http.Response, string) {
	w.t.Helper()
	return w.readFor(http.MethodGet)
}

func (w *wire) readFor(method string) (*http.Response, string) {
	w.t.Helper()
	resp, err := http.ReadResponse(w.in, &http.Request{Method: method})
	if err != nil {
		w.t.Fatal(err)
	}
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		w.t.Fatalf("body after %q: %v", b, err)
	}
	return resp, string(b)
}

// body returns the body of the next response.
func (w *wire) body() string {
	w.t.Helper()
	_, b := w.read()
	return b
}

// closed waits for the end of the connection.
func (w *wire) closed() bool {
	_, err := w.in.ReadByte()
	return err != nil
}

func post(body string) string {
	return "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n" +
		"User-Agent: test\r\nMcp-Session-Id: 0123456789abcdef0123456789abcdef\r\nMcp-Protocol-Version: 2025-11-25\r\nContent-Length: " +
		strconv.Itoa(len(body)) + "\r\n\r\n" + body
}

const get = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"

// echo answers with the request's body.
func echo(w http.ResponseWriter, r *http.Request) {
	b, err := io.ReadAll(r.Body)
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	_, _ = w.Write(b)
}

var typeJSON = []string{"application/json"}

func benchmarkServe(b *testing.B, addr string, size int) {
	request := []byte(post(strings.Repeat("x", size)))
	c, err := net.Dial("tcp", addr)
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	in := make([]byte, 1<<20)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Write(request); err != nil {
			b.Fatal(err)
		}
		for n := 0; ; {
			m, err := c.Read(in[n:])
			if err != nil {
				b.Fatal(err)
			}
			n += m
			if i := bytes.Index(in[:n], []byte("\r\n\r\n")); i >= 0 && n >= i+4+size {
				break
			}
		}
	}
}

// answer is what a call does: it reads the body to its end and writes a result.
func answer(w http.ResponseWriter, r *http.Request) {
	b := make([]byte, r.ContentLength)
	if _, err := io.ReadFull(r.Body, b); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	h := w.Header()
	h["Content-Type"] = typeJSON
	if len(b) >= 2048 {
		h["Content-Length"] = []string{strconv.Itoa(len(b))}
	}
	w.WriteHeader(http.StatusOK)
	_, _ = w.Write(b)
}

// BenchmarkServe is one call on a kept connection, with the client's part.
func BenchmarkServe(b *testing.B) {
	for _, size := range []int{200, 64 << 10} {
		b.Run(strconv.Itoa(size)+"/h1", func(b *testing.B) {
			_, addr := serve(b, answer)
			benchmarkServe(b, addr, size)
		})
		b.Run(strconv.Itoa(size)+"/net-http", func(b *testing.B) {
			benchmarkServe(b, serveStandard(b, answer), size)
		})
	}
}
