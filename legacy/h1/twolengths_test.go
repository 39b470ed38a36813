package h1

import (
	"bufio"
	"crypto/tls"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/mcpbridge/bridge/internal/testcert"
)

// RFC 9112 6.3, where net/http serves: it reads the chunks and forgets the length, so
// nothing that stands behind them is taken for a request.
func TestNothingBehindARequestWithTwoLengthsIsServedByNetHTTP(t *testing.T) {
	handler := func(served chan string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			served <- r.URL.Path + " " + string(body)
		}
	}
	const smuggling = "POST /outer HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" +
		"POST /smuggled HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n"
	for name, tc := range map[string]struct {
		secure bool
		first  string
		want   []string
	}{
		"TLS":         {true, "", []string{"/outer "}},
		"a later one": {false, "GET /first HTTP/1.1\r\nHost: a\r\nPragma: no-cache\r\n\r\n", []string{"/first ", "/outer "}},
	} {
		served := make(chan string, 8)
		quiet := &http.Server{ErrorLog: log.New(io.Discard, "", 0)}
		var addr string
		if tc.secure {
			s := NewStandard(handler(served), quiet)
			cert, key, _ := testcert.Write(t, t.TempDir(), 1)
			pair, err := tls.LoadX509KeyPair(cert, key)
			if err != nil {
				t.Fatal(err)
			}
			config := &tls.Config{Certificates: []tls.Certificate{pair}}
			addr = listen(t, func(l net.Listener) error { return s.Serve(tls.NewListener(l, config)) }, s.Close)
		} else {
			_, addr = serveWith(t, handler(served), quiet)
		}
		nc, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		if tc.secure {
			nc = tls.Client(nc, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"http/1.1"}}) //nolint:gosec // a test
		}
		in := bufio.NewReader(nc)
		for _, text := range []string{tc.first, smuggling} {
			if text == "" {
				continue
			}
			_, _ = io.WriteString(nc, text)
			resp, err := http.ReadResponse(in, nil)
			if err != nil || resp.Close != strings.HasPrefix(text, "POST") {
				t.Fatalf("%s: %+v, %v", name, resp, err)
			}
			_, _ = io.Copy(io.Discard, resp.Body)
		}
		if rest, _ := io.ReadAll(in); len(rest) > 0 {
			t.Errorf("%s: there is another response: %q", name, rest)
		}
		_ = nc.Close()
		for _, want := range tc.want {
			if got := <-served; got != want {
				t.Errorf("%s: served %q", name, got)
			}
		}
		if len(served) > 0 {
			t.Errorf("%s: served %q, too", name, <-served)
		}
	}
}
