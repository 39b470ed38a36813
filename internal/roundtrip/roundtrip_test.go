package roundtrip

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/mcpbridge/bridge/internal/carriertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// server returns a transport that reaches a server behind pipes, for use in a bubble of
// synctest.
func server(t *testing.T, dials *atomic.Int32, script func(n int32, nc net.Conn, br *bufio.Reader)) *Transport {
	return New(Options{IdleTimeout: carriertest.Idle, Dial: carriertest.Pipes(t, dials, script)})
}

// carrier is what all carriers have in common, of a Transport.
func carrier(dial carriertest.Dial) carriertest.Carrier {
	tr := New(Options{IdleTimeout: carriertest.Idle, Dial: dial})
	return carriertest.Carrier{
		Call: func(ctx context.Context) error {
			_, err := fetch(tr, call().WithContext(ctx))
			return err
		},
		Ask: func(ctx context.Context) error {
			resp, use, err := tr.Do(call().WithContext(ctx), true)
			if err == nil {
				_ = resp.Body.Close()
				use.End(true)
			}
			return err
		},
		Kept:  func() int { return open(tr) },
		Close: tr.CloseIdleConnections,
	}
}

func TestAnAnnouncedKeepAliveIsHeeded(t *testing.T)              { carriertest.KeepAlive(t, carrier) }
func TestOneLossRetiresTheIdleConnectionsOfThatAge(t *testing.T) { carriertest.OneLoss(t, carrier) }
func TestAQuestionThatIsNotAnsweredRetiresIdleConnections(t *testing.T) {
	carriertest.Question(t, carrier)
}
func TestACancelRetiresNoOtherConnection(t *testing.T) { carriertest.Cancel(t, carrier) }

// answering is a script that answers every request.
func answering(response string) func(int32, net.Conn, *bufio.Reader) {
	return func(_ int32, nc net.Conn, br *bufio.Reader) {
		for carriertest.Next(br) != nil {
			_, _ = io.WriteString(nc, response)
		}
	}
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

// A call may take longer than an idle connection may live.
func TestAKeepAliveIsAboutIdleConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var dials atomic.Int32
		tr := server(t, &dials, func(_ int32, nc net.Conn, br *bufio.Reader) {
			for carriertest.Next(br) != nil {
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

// Below TLS the same holds, and a server that has HTTP/2 too is not asked for it.
func TestOverTLS(t *testing.T) {
	release := make(chan struct{})
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			<-release
		}
		w.Header().Set("Keep-Alive", "timeout=0")
		_, _ = fmt.Fprint(w, r.Proto, " ", r.TLS.NegotiatedProtocol)
	}))
	srv.Config.ErrorLog = log.New(io.Discard, "", 0) // of connections that are not needed after all
	srv.TLS = &tls.Config{NextProtos: []string{"h2", "http/1.1"}}
	srv.StartTLS()
	defer srv.Close()
	tr := trusting(srv)
	defer tr.CloseIdleConnections()
	get := func(path string) (string, error) {
		r, _ := http.NewRequest(http.MethodPost, srv.URL+path, strings.NewReader("{}"))
		return fetch(tr, r)
	}
	if got, err := get("/"); got != "HTTP/1.1 http/1.1" || err != nil {
		t.Fatalf("%q %v", got, err)
	}
	tr.mu.Lock()
	for c := range tr.conns {
		if !c.settled.Load() {
			t.Error("a connection that is used may pass for a spare one")
		}
	}
	tr.mu.Unlock()
	slow := make(chan error, 1)
	go func() { _, err := get("/slow"); slow <- err }()
	for range 3 {
		if got, err := get("/"); got != "HTTP/1.1 http/1.1" || err != nil {
			t.Errorf("%q %v", got, err)
		}
	}
	close(release)
	if err := <-slow; err != nil {
		t.Error(err)
	}
}

// The head of a response is read whole before anybody can judge it: it is bounded.
func TestHeadsAreBounded(t *testing.T) {
	srv := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		size := 32 << 10
		if r.URL.Path == "/long" {
			size = 80 << 10
		}
		w.Header().Set("X", strings.Repeat("x", size))
	}))
	defer srv.Close()
	tr := trusting(srv)
	defer tr.CloseIdleConnections()
	for path, fine := range map[string]bool{"/": true, "/long": false} {
		r, _ := http.NewRequest(http.MethodPost, srv.URL+path, strings.NewReader("{}"))
		if _, err := fetch(tr, r); (err == nil) != fine {
			t.Errorf("%s: %v", path, err)
		}
	}
}
