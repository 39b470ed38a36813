package h1

import (
	"bytes"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// heard is what a handler hears of the requests on a connection.
type heard struct {
	mu   sync.Mutex
	said []string
}

func (h *heard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	header := r.Header.Clone()
	header.Del("Content-Length")
	h.mu.Lock()
	defer h.mu.Unlock()
	h.said = append(h.said, fmt.Sprint(r.Method, r.RequestURI, r.URL, r.Proto, r.Host, header, r.ContentLength, r.TransferEncoding, r.Trailer, r.Close,
		string(body), err))
}

// hear serves one connection on which the client sends text and then no more.
func hear(t *testing.T, text []byte, serve func(http.Handler, net.Conn)) []string {
	var h heard
	synctest.Test(t, func(*testing.T) {
		near, far := net.Pipe()
		go func() { _, _ = io.Copy(io.Discard, near) }()
		serve(&h, &halfClosed{far, bytes.NewReader(text)})
		time.Sleep(time.Second) // net/http lingers on some connections
		_ = near.Close()
		_ = far.Close()
		synctest.Wait()
	})
	return h.said
}

// halfClosed is a connection whose client has closed its sending half.
type halfClosed struct {
	net.Conn
	in io.Reader
}

func (c *halfClosed) Read(p []byte) (int, error) { return c.in.Read(p) }

// lastWithChunks has net/http close a connection after a request in chunks, as we do.
type lastWithChunks struct{ http.Handler }

func (h lastWithChunks) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if len(r.TransferEncoding) > 0 {
		w.Header().Set("Connection", "close")
	}
	h.Handler.ServeHTTP(w, r)
}

// FuzzConnection: whatever comes on a connection, the handler hears the same
// requests as behind net/http alone, up to one that came in chunks, or says in two ways
// where it ends. No request hides in another one.
func FuzzConnection(f *testing.F) {
	for _, a := range seeds {
		for _, b := range seeds {
			f.Add([]byte(a + b))
		}
	}
	chunked := "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"
	f.Add([]byte(get + chunked + get))
	f.Add([]byte(strings.Replace(chunked, "Host: a", "Host: a\r\nContent-Length: 4", 1) + get))
	f.Add([]byte(post(get) + get))
	f.Add([]byte(post("{}") + "\r\n\r\n" + get))
	f.Add([]byte(get + "\r\n" + get))
	f.Add([]byte(post("{}") + "\r\n\r\n\r" + chunked))
	f.Add([]byte(strings.Replace(chunked, "0\r\n\r\n", "0\r\nno trailer\r\n", 1) + get))
	f.Add([]byte(strings.Replace(chunked, "0\r\n\r\n", "0\r\na: trailer\r\n\r\n", 1) + get))
	f.Add([]byte("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 300000\r\n\r\n"))
	quiet := log.New(io.Discard, "", 0)
	f.Fuzz(func(t *testing.T, text []byte) {
		ours := hear(t, text, func(h http.Handler, nc net.Conn) { New(h, &http.Server{ErrorLog: quiet}).ServeConn(nc) })
		theirs := hear(t, text, func(h http.Handler, nc net.Conn) {
			ServeOne(&http.Server{Handler: lastWithChunks{h}, ErrorLog: quiet}, nc, nil)
		})
		if low := strings.ToLower(string(text)); strings.Contains(low, "content-length") && strings.Contains(low, "transfer-encoding") &&
			len(ours) < len(theirs) {
			theirs = theirs[:len(ours)] // we refuse such a request, and with it all that follow
		}
		if !slices.Equal(ours, theirs) {
			t.Errorf("%q\n  h1:       %q\n  net/http: %q", text, ours, theirs)
		}
	})
}
