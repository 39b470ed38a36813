package h1

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
)

// replay is a connection that delivers a text in pieces.
type replay struct {
	net.Conn
	r    io.Reader
	size int
}

func (r *replay) Read(p []byte) (int, error) { return r.r.Read(p[:min(len(p), max(r.size, 1))]) }
func (r *replay) Close() error               { return nil }

// FuzzResponse compares with net/http: what this package accepts, net/http
// accepts with the same meaning. This package may be stricter.
func FuzzResponse(f *testing.F) {
	for _, s := range []string{
		"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\nok",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;a=b\r\nok\r\n0\r\nA: b\r\n\r\n",
		"HTTP/1.1 200\r\n\r\nuntil the end",
		"HTTP/1.0 204 No Content\r\nConnection: keep-alive\r\n\r\n",
		"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nContent-Length: 0\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 02\r\nContent-Length: 2\r\n\r\nok",
		"HTTP/1.1 200 OK\nContent-Length: 5\nTransfer-Encoding: chunked\n\n1\r\nx\r\n0\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
	} {
		f.Add([]byte(s), uint8(7))
	}
	f.Fuzz(func(t *testing.T, text []byte, size uint8) {
		cn := newConn(New(Options{}), &replay{r: bytes.NewReader(text), size: int(size)})
		r := &cn.resp
		r.reset()
		if _, err := r.readHead(cn.br, DefaultMaxHead); err != nil {
			return
		}
		body, err := io.ReadAll(r)
		if err != nil {
			return
		}
		want, wantBody, err := reference(text)
		if err != nil {
			t.Fatalf("net/http refuses: %v", err)
		}
		if r.status != want.StatusCode || !bytes.Equal(body, wantBody) {
			t.Fatalf("status %d, body %q; net/http: %d, %q", r.status, body, want.StatusCode, wantBody)
		}
		if want.Close && !r.close {
			t.Fatal("would reuse a connection that net/http closes")
		}
		for name, values := range want.Header {
			got := r.Values(name)
			for i, v := range values {
				if name != "Content-Length" && strings.Trim(v, " \t") != strings.Trim(got[i], " \t") {
					t.Fatalf("%s: %q; net/http: %q", name, got, values)
				}
			}
		}
	})
}

// reference reads a response as net/http does.
func reference(text []byte) (*http.Response, []byte, error) {
	br := bufio.NewReader(bytes.NewReader(text))
	for {
		resp, err := http.ReadResponse(br, &http.Request{Method: "POST"})
		if err != nil {
			return nil, nil, err
		}
		if resp.StatusCode >= 200 {
			body, err := io.ReadAll(resp.Body)
			return resp, body, err
		}
	}
}
