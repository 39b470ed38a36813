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
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/bridge/internal/carriertest"
	"github.com/mcpbridge/bridge/internal/testcert"
)

// piped is a server over HTTP/2 behind pipes, for use in a bubble of synctest.
type piped struct {
	t         *testing.T
	server    http.Server
	conns     chan net.Conn
	closed    chan struct{}
	dials     atomic.Int32
	swallowed atomic.Int32 // connections up to this one: what is sent on them arrives nowhere
}

// startPiped returns a server, and a transport to it.
func startPiped(t *testing.T, config *http.HTTP2Config, handler http.HandlerFunc) (*piped, *Transport) {
	p := &piped{t: t, conns: make(chan net.Conn), closed: make(chan struct{})}
	cert, key, leaf := testcert.Write(t, t.TempDir(), 1)
	roots := x509.NewCertPool()
	roots.AddCert(leaf)
	p.server = http.Server{Handler: handler, HTTP2: config, ReadHeaderTimeout: time.Hour,
		TLSConfig: &tls.Config{SessionTicketsDisabled: true}} // nobody reads them from a pipe in time
	go func() { _ = p.server.ServeTLS(p, cert, key) }()
	tr := New(Options{TLS: &tls.Config{RootCAs: roots}, Dial: p.dial})
	t.Cleanup(func() {
		tr.CloseIdleConnections()
		_ = p.server.Close()
	})
	return p, tr
}

func (p *piped) dial(context.Context, string, string) (net.Conn, error) {
	client, server := net.Pipe()
	p.t.Cleanup(func() { _ = client.Close() })
	p.conns <- server
	return &lossy{Conn: client, server: p, n: p.dials.Add(1)}, nil
}

func (p *piped) Accept() (net.Conn, error) {
	select {
	case nc := <-p.conns:
		return nc, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *piped) Close() error   { close(p.closed); return nil }
func (p *piped) Addr() net.Addr { return &net.TCPAddr{} }

type lossy struct {
	net.Conn
	server *piped
	n      int32
}

func (s *lossy) Write(b []byte) (int, error) {
	if s.n <= s.server.swallowed.Load() {
		return len(b), nil
	}
	return s.Conn.Write(b)
}

func secure(path string) *http.Request {
	r, _ := http.NewRequest(http.MethodPost, "https://127.0.0.1"+path, strings.NewReader("{}"))
	return r
}

// All requests share a connection over HTTP/2: one that the network has swallowed costs what is
// under way, and no more.
func TestASwallowedConnectionIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, tr := startPiped(t, nil, func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Proto) })
		if got, err := fetch(tr, secure("/")); got != "HTTP/2.0" || err != nil {
			t.Fatalf("%q %v", got, err)
		}
		p.swallowed.Store(1)
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if _, err := fetch(tr, secure("/").WithContext(ctx)); err == nil || time.Since(began) > 30*time.Second {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
		if got, err := fetch(tr, secure("/")); got != "HTTP/2.0" || err != nil || p.dials.Load() != 2 {
			t.Errorf("%q %v over %d connections", got, err, p.dials.Load())
		}
	})
}

// What a client does not read stays at the server, but for a window, and holds up nobody else.
func TestOverHTTP2WhatIsNotReadStaysAtTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const slow, size = 100, 1 << 20
		var written atomic.Int64
		p, tr := startPiped(t, nil, func(w http.ResponseWriter, r *http.Request) {
			for n := 0; r.URL.Path == "/large" && n < size; {
				k, err := w.Write(make([]byte, 1<<10))
				if n += k; err != nil {
					return
				}
				written.Add(int64(k))
			}
		})
		ctx, cancel := context.WithCancel(t.Context())
		for range slow {
			resp, err := tr.RoundTrip(secure("/large").WithContext(ctx))
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
		}
		synctest.Wait()
		if each := written.Load() / slow; each > window+(16<<10) { // what the server has not sent yet
			t.Errorf("%d bytes of each response were taken", each)
		}
		if _, err := fetch(tr, secure("/")); err != nil || p.dials.Load() != 1 {
			t.Errorf("another request: %v over %d connections", err, p.dials.Load())
		}
		cancel()
	})
}

// stingy is a server over HTTP/2 that answers one request on each connection, and says before
// that it takes no others, but keeps it open.
func stingy(config *tls.Config) func(int32, net.Conn, *bufio.Reader) {
	const preface, answer = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "\x00\x00\x00\x04\x00\x00\x00\x00\x00"
	const noMore = "\x00\x00\x06\x04\x00\x00\x00\x00\x00\x00\x03\x00\x00\x00\x00" // SETTINGS_MAX_CONCURRENT_STREAMS 0
	const ok = "\x00\x00\x01\x01\x05\x00\x00\x00\x01\x88"                         // a head of the first stream that ends it, :status 200
	return func(_ int32, nc net.Conn, _ *bufio.Reader) {
		c := tls.Server(nc, config)
		_, _ = io.CopyN(io.Discard, c, int64(len(preface)))
		say := func(frames string) { go func() { _, _ = io.WriteString(c, frames) }() } // who writes reads on
		say(answer)
		for head := make([]byte, 9); ; {
			if _, err := io.ReadFull(c, head); err != nil {
				return
			}
			_, _ = io.CopyN(io.Discard, c, int64(head[1])<<8|int64(head[2]))
			if head[3] == 1 { // HEADERS
				say(noMore + ok)
			}
		}
	}
}

// startStingy returns a transport to a stingy server.
func startStingy(t *testing.T) *Transport {
	cert, key, leaf := testcert.Write(t, t.TempDir(), 1)
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(leaf)
	return New(Options{TLS: &tls.Config{RootCAs: roots}, Dial: carriertest.Pipes(t, new(atomic.Int32), stingy(&tls.Config{Certificates: []tls.Certificate{pair}, NextProtos: []string{"h2"}, SessionTicketsDisabled: true}))})
}

// open returns how many connections are open.
func open(tr *Transport) int {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	return len(tr.conns)
}

// A server that accepts connections and no requests on them has http.Transport open another one
// whenever it has one.
func TestAServerThatTakesNoRequestsHasFewConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var opened atomic.Int32
		tr := New(Options{Dial: carriertest.Pipes(t, &opened, func(_ int32, nc net.Conn, _ *bufio.Reader) { _, _ = io.Copy(io.Discard, nc) })})
		tr.send = func(r *http.Request) (*http.Response, error) {
			for opened.Load() < 1000 {
				if _, err := tr.connect(r.Context(), "tcp", "server"); err != nil {
					return nil, err
				}
				synctest.Wait()
				if n := open(tr); n > 1+spares {
					t.Fatalf("%d connections for one request", n)
				}
			}
			return nil, io.ErrNoProgress
		}
		for range 3 {
			before := opened.Load()
			ctx, cancel := context.WithCancel(t.Context())
			if _, err := fetch(tr, secure("/").WithContext(ctx)); !errors.Is(err, errDials) {
				t.Fatal(err)
			}
			cancel()
			synctest.Wait()
			if made, left := opened.Load()-before, open(tr); made > dials || left > spares {
				t.Errorf("%d connections for one request, %d afterwards", made, left)
			}
		}
	})
}

// Connections that a server takes no more requests on are kept no more than idle ones are.
func TestConnectionsOfNoFurtherUseAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := startStingy(t)
		served := 0
		for range 2 * useless {
			_, err := fetch(tr, secure("/"))
			switch {
			case err == nil:
				served++
			case !errors.Is(err, errIdle):
				t.Fatal(err)
			}
		}
		if n := open(tr); served < useless || n > 1+useless {
			t.Errorf("%d served, %d connections are open", served, n)
		}
		time.Sleep(DefaultIdleTimeout)
		synctest.Wait()
		if _, err := fetch(tr, secure("/")); err != nil {
			t.Errorf("after they have gone: %v", err)
		}
		time.Sleep(DefaultIdleTimeout)
	})
}
