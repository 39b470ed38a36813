package replica

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/mcpbridge/bridge/internal/testcert"
)

// one is a listener of the one connection that there is.
type one struct {
	conn   chan net.Conn
	closed chan struct{}
}

func (o *one) Accept() (net.Conn, error) {
	select {
	case nc := <-o.conn:
		return nc, nil
	case <-o.closed:
		return nil, net.ErrClosed
	}
}

func (o *one) Close() error   { close(o.closed); return nil }
func (o *one) Addr() net.Addr { return &net.TCPAddr{} }

// What a client does not read stays at the replica that says it, but for a window.
func TestWhatIsNotReadStaysAtTheOtherReplica(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const slow, size = 50, 1 << 20
		cert, key, leaf := testcert.Write(t, t.TempDir(), 1)
		roots := x509.NewCertPool()
		roots.AddCert(leaf)
		var written atomic.Int64
		server := http.Server{TLSConfig: &tls.Config{SessionTicketsDisabled: true}, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			for n := 0; n < size; {
				k, err := w.Write(make([]byte, 1<<10))
				if n += k; err != nil {
					return
				}
				written.Add(int64(k))
			}
		})}
		l := &one{make(chan net.Conn, 1), make(chan struct{})}
		go func() { _ = server.ServeTLS(l, cert, key) }()
		tr := newTransport(&tls.Config{RootCAs: roots})
		tr.DialContext = func(context.Context, string, string) (net.Conn, error) {
			client, server := net.Pipe()
			l.conn <- server
			return client, nil
		}
		ctx, cancel := context.WithCancel(t.Context())
		for range slow {
			req, _ := http.NewRequestWithContext(ctx, http.MethodGet, "https://127.0.0.1/", http.NoBody)
			resp, err := tr.RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
		}
		synctest.Wait()
		if each := written.Load() / slow; each > window+(16<<10) { // what it has not sent yet
			t.Errorf("%d bytes of each response were taken", each)
		}
		cancel()
		tr.CloseIdleConnections()
		_ = server.Close()
	})
}
