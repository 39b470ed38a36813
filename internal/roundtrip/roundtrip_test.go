package roundtrip

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const plain = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

// server runs script on each connection, numbered from 1. It returns a transport
// that reaches it, for use in a bubble of synctest.
func server(t *testing.T, dials *atomic.Int32, script func(n int32, nc net.Conn, br *bufio.Reader)) *Transport {
	return New(Options{IdleTimeout: time.Minute, Dial: func(context.Context, string, string) (net.Conn, error) {
		n := dials.Add(1)
		client, server := net.Pipe()
		go func() {
			defer server.Close()
			script(n, server, bufio.NewReader(server))
		}()
		t.Cleanup(func() { _ = client.Close() })
		return client, nil
	}})
}

// answering is a script that answers every request.
func answering(response string) func(int32, net.Conn, *bufio.Reader) {
	return func(_ int32, nc net.Conn, br *bufio.Reader) {
		for next(br) != nil {
			_, _ = io.WriteString(nc, response)
		}
	}
}

// next reads a request; nil at the connection's end.
func next(br *bufio.Reader) *http.Request {
	r, err := http.ReadRequest(br)
	if err != nil {
		return nil
	}
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		return nil
	}
	return r
}

func call(header ...string) *http.Request {
	r, _ := http.NewRequest(http.MethodPost, "http://server.test/mcp", strings.NewReader("{}"))
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	return r
}

// fetch makes one call as ReverseProxy would.
func fetch(t *Transport, r *http.Request) (string, error) {
	resp, err := t.RoundTrip(r)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return string(b), err
}

func TestAnAnnouncedKeepAliveIsHeeded(t *testing.T) {
	for _, tc := range []struct {
		header string
		gap    time.Duration
		dials  int32
	}{
		{"Keep-Alive: timeout=5\r\n", 3900 * time.Millisecond, 1},
		{"Keep-Alive: timeout=5\r\n", 4001 * time.Millisecond, 2},
		{"keep-alive: max=100, TIMEOUT=5\r\n", 4001 * time.Millisecond, 2},
		{"Keep-Alive: timeout=0\r\n", time.Millisecond, 2},
		{"", 50 * time.Second, 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			var dials atomic.Int32
			tr := server(t, &dials, answering(strings.Replace(plain, "Content", tc.header+"Content", 1)))
			for range 2 {
				if got, err := fetch(tr, call()); got != "ok" || err != nil {
					t.Fatalf("%q %v", got, err)
				}
				synctest.Wait()
				time.Sleep(tc.gap)
				synctest.Wait()
			}
			if dials.Load() != tc.dials {
				t.Errorf("%q after %v: %d connections", tc.header, tc.gap, dials.Load())
			}
			tr.CloseIdleConnections()
		})
	}
}

// A call may take longer than an idle connection may live.
func TestAKeepAliveIsAboutIdleConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var dials atomic.Int32
		tr := server(t, &dials, func(_ int32, nc net.Conn, br *bufio.Reader) {
			for next(br) != nil {
				time.Sleep(time.Hour)
				_, _ = io.WriteString(nc, "HTTP/1.1 200 OK\r\nKeep-Alive: timeout=5\r\nContent-Length: 2\r\n\r\no")
				time.Sleep(time.Hour)
				_, _ = io.WriteString(nc, "k")
			}
		})
		for range 3 {
			if got, err := fetch(tr, call()); got != "ok" || err != nil {
				t.Fatalf("%q %v", got, err)
			}
		}
		if dials.Load() != 1 {
			t.Errorf("%d connections", dials.Load())
		}
		tr.CloseIdleConnections()
	})
}

func TestOneLossRetiresTheIdleConnectionsOfThatAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const many = 8
		var dials atomic.Int32
		var replaced atomic.Bool
		answer := make(chan struct{})
		tr := server(t, &dials, func(n int32, nc net.Conn, br *bufio.Reader) {
			for next(br) != nil && (n > many || !replaced.Load()) {
				if n <= many {
					<-answer
				}
				_, _ = io.WriteString(nc, plain)
			}
		})
		for range many {
			go fetch(tr, call())
		}
		synctest.Wait()
		close(answer)
		synctest.Wait()
		replaced.Store(true)
		time.Sleep(time.Second)
		lost := 0
		for range 2 * many {
			if _, err := fetch(tr, call()); err != nil {
				lost++
			}
			synctest.Wait()
		}
		if lost != 1 {
			t.Errorf("%d calls were lost", lost)
		}
		tr.CloseIdleConnections()
	})
}

// Below TLS the same holds, and over HTTP/2 requests do not wait for each other.
func TestOverTLS(t *testing.T) {
	for _, http2 := range []bool{false, true} {
		release := make(chan struct{})
		srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/slow" {
				<-release
			}
			if r.Proto == "HTTP/1.1" {
				w.Header().Set("Keep-Alive", "timeout=0")
			}
			_, _ = io.WriteString(w, r.Proto)
		}))
		srv.EnableHTTP2 = http2
		srv.StartTLS()
		roots := x509.NewCertPool()
		roots.AddCert(srv.Certificate())
		tr := New(Options{TLS: &tls.Config{RootCAs: roots}})
		get := func(path string) (string, error) {
			r, _ := http.NewRequest(http.MethodPost, srv.URL+path, strings.NewReader("{}"))
			return fetch(tr, r)
		}
		slow := make(chan error, 1)
		if _, err := get("/"); err != nil {
			t.Fatal(err)
		}
		go func() { _, err := get("/slow"); slow <- err }()
		want := map[bool]string{false: "HTTP/1.1", true: "HTTP/2.0"}[http2]
		for range 3 {
			if got, err := get("/"); got != want || err != nil {
				t.Errorf("%q %v", got, err)
			}
		}
		close(release)
		if err := <-slow; err != nil {
			t.Error(err)
		}
		tr.CloseIdleConnections()
		srv.Close()
	}
}

func TestACancelSaysNothingAboutOtherConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var dials atomic.Int32
		answer := make(chan struct{}, 10)
		tr := server(t, &dials, func(_ int32, nc net.Conn, br *bufio.Reader) {
			for next(br) != nil {
				<-answer
				_, _ = io.WriteString(nc, plain)
			}
		})
		for range 3 {
			go fetch(tr, call())
		}
		synctest.Wait()
		for range 3 {
			answer <- struct{}{}
		}
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := fetch(tr, call().WithContext(ctx)); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		synctest.Wait()
		if len(tr.conns) != 2 {
			t.Errorf("%d connections are left", len(tr.conns))
		}
		close(answer)
		tr.CloseIdleConnections()
	})
}
