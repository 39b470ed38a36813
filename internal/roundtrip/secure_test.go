package roundtrip

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/bridge/internal/http1"
	"github.com/mcpbridge/bridge/internal/testcert"
)

// piped is a server over TLS behind pipes, for use in a bubble of synctest.
type piped struct {
	t      *testing.T
	server http.Server
	conns  chan net.Conn
	closed chan struct{}
}

// startPiped starts a server, and returns a transport to it.
func startPiped(t *testing.T, handler http.HandlerFunc) *Transport {
	p := &piped{t: t, conns: make(chan net.Conn), closed: make(chan struct{})}
	cert, key, leaf := testcert.Write(t, t.TempDir(), 1)
	roots := x509.NewCertPool()
	roots.AddCert(leaf)
	p.server = http.Server{Handler: handler, ReadHeaderTimeout: time.Hour,
		TLSConfig: &tls.Config{SessionTicketsDisabled: true}} // nobody reads them from a pipe in time
	go func() { _ = p.server.ServeTLS(p, cert, key) }()
	tr := New(Options{TLS: &tls.Config{RootCAs: roots}, Dial: p.dial})
	t.Cleanup(func() {
		tr.CloseIdleConnections()
		_ = p.server.Close()
	})
	return tr
}

func (p *piped) dial(context.Context, string, string) (net.Conn, error) {
	client, server := net.Pipe()
	p.t.Cleanup(func() { _ = client.Close() })
	p.conns <- server
	return client, nil
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

func secure(path string) *http.Request {
	r, _ := http.NewRequest(http.MethodPost, "https://127.0.0.1"+path, strings.NewReader("{}"))
	return r
}

// What a client does not read stays at the server, but for what fits into buffers, and holds up nobody else.
func TestWhatIsNotReadStaysAtTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const slow, size = 100, 1 << 20
		var written atomic.Int64
		tr := startPiped(t, func(w http.ResponseWriter, r *http.Request) {
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
		if each := written.Load() / slow; each > 3*buffer { // ours, that of TLS, and what the server has not sent yet
			t.Errorf("%d bytes of each response were taken", each)
		}
		if _, err := fetch(tr, secure("/")); err != nil {
			t.Errorf("another request: %v", err)
		}
		cancel()
	})
}

// open returns how many connections are open.
func open(tr *Transport) int {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	return len(tr.conns)
}

// trusting returns a transport that trusts a server.
func trusting(srv *httptest.Server) *Transport {
	roots := x509.NewCertPool()
	roots.AddCert(srv.Certificate())
	return New(Options{TLS: &tls.Config{RootCAs: roots}})
}

// The next connection goes on from the handshake of one before.
func TestHandshakesAreResumed(t *testing.T) {
	srv := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = fmt.Fprint(w, r.TLS.DidResume) }))
	defer srv.Close()
	tr := trusting(srv)
	for _, want := range []string{"false", "true", "true"} {
		r, _ := http.NewRequest(http.MethodPost, srv.URL, strings.NewReader("{}"))
		if got, err := fetch(tr, r); got != want || err != nil {
			t.Errorf("resumed: %s %v, want %s", got, err, want)
		}
		tr.CloseIdleConnections()
	}
}

// What a server that speaks only HTTP/2 does with a client that does not.
func TestAServerThatSpeaksOnlyHTTP2IsNamed(t *testing.T) {
	const settings, goAway = "\x00\x00\x06\x04\x00\x00\x00\x00\x00\x00\x03\x00\x00\x00\x64", "\x00\x00\x08\x07\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01"
	for name, tc := range map[string]struct {
		protocol, first, then string
	}{
		"it agrees to no protocol":        {protocol: "another"},
		"it begins":                       {first: settings},
		"it begins in two pieces":         {first: settings[:2], then: settings[2:] + goAway},
		"it answers":                      {then: settings + goAway},
		"it answers with the end":         {then: goAway},
		"it answers with a line's end in": {then: settings + "\n" + goAway},
	} {
		for _, plain := range []bool{false, true} {
			if plain && tc.protocol != "" {
				continue
			}
			t.Run(fmt.Sprintf("%s, plain %v", name, plain), func(t *testing.T) {
				srv := httptest.NewUnstartedServer(http.NotFoundHandler())
				srv.Config.ErrorLog = log.New(io.Discard, "", 0)
				if srv.TLS = (&tls.Config{}); tc.protocol != "" {
					srv.TLS.NextProtos = []string{tc.protocol}
				} else { // of what nobody agreed to
					srv.Config.ConnContext = func(ctx context.Context, nc net.Conn) context.Context {
						_, _ = io.WriteString(nc, tc.first)
						if tc.then != "" {
							_, _ = nc.Read(make([]byte, buffer))
							_, _ = io.WriteString(nc, tc.then)
						}
						return ctx
					}
				}
				tr := New(Options{})
				if plain {
					srv.Start()
				} else {
					srv.StartTLS()
					tr = trusting(srv)
				}
				defer srv.Close()
				r, _ := http.NewRequest(http.MethodPost, srv.URL, strings.NewReader("{}"))
				if _, err := fetch(tr, r); !errors.Is(err, http1.ErrHTTP2) {
					t.Error(err)
				}
				tr.CloseIdleConnections()
			})
		}
	}
}

// A proxy is reached like a server, and the server through it.
func TestThroughAProxy(t *testing.T) {
	for _, secured := range []bool{false, true} {
		srv := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Proto) }))
		proxy := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			far, err := net.Dial("tcp", r.Host)
			if err != nil {
				t.Error(err)
				return
			}
			defer far.Close()
			near, _, _ := http.NewResponseController(w).Hijack()
			defer near.Close()
			_, _ = io.WriteString(near, "HTTP/1.1 200 OK\r\n\r\n")
			go func() { _, _ = io.Copy(far, near); _ = far.Close() }()
			_, _ = io.Copy(near, far)
		}))
		if secured {
			proxy.StartTLS()
		} else {
			proxy.Start()
		}
		tr := trusting(srv)
		at, _ := url.Parse(proxy.URL)
		tr.std.Proxy = http.ProxyURL(at)
		for range 2 {
			r, _ := http.NewRequest(http.MethodPost, srv.URL, strings.NewReader("{}"))
			if got, err := fetch(tr, r); got != "HTTP/1.1" || err != nil {
				t.Errorf("TLS %v: %q %v", secured, got, err)
			}
		}
		if n := open(tr); n != 1 {
			t.Errorf("TLS %v: %d connections", secured, n)
		}
		tr.CloseIdleConnections()
		srv.Close()
		proxy.Close()
	}
}

// A proxy over TLS learns nothing of what is for the server: no certificate of the bridge's, nor under which name the server's is.
func TestAProxyIsNotShownTheServersCertificate(t *testing.T) {
	var shown atomic.Int32
	proxy := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		shown.Store(int32(1 + len(r.TLS.PeerCertificates)))
		w.WriteHeader(http.StatusBadGateway)
	}))
	proxy.TLS = &tls.Config{ClientAuth: tls.RequestClientCert}
	proxy.StartTLS()
	defer proxy.Close()
	roots := x509.NewCertPool()
	roots.AddCert(proxy.Certificate())
	tr := New(Options{TLS: &tls.Config{RootCAs: roots, ServerName: "mcp.internal", Certificates: proxy.TLS.Certificates}})
	at, _ := url.Parse(proxy.URL)
	tr.std.Proxy = http.ProxyURL(at)
	if _, err := fetch(tr, secure("/")); err == nil {
		t.Error("the proxy let it through")
	}
	if shown.Load() != 1 {
		t.Errorf("the proxy was asked: %t, and shown %d certificates", shown.Load() > 0, shown.Load()-1)
	}
}
