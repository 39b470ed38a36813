package roundtrip

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/bridge/internal/carriertest"
)

// counted is a connection that counts as open until it is closed.
type counted struct {
	net.Conn
	closed func()
}

func (c *counted) Close() error {
	c.closed()
	return c.Conn.Close()
}

// swallowing says where a server is silent while connections to it are opened, and returns how
// many of those there are.
var swallowing = map[string]func() (url string, dial carriertest.Dial, open *atomic.Int32){
	"connections are never opened": func() (string, carriertest.Dial, *atomic.Int32) {
		open := new(atomic.Int32)
		return "http://server.test/", func(ctx context.Context, _, _ string) (net.Conn, error) {
			open.Add(1)
			defer open.Add(-1)
			<-ctx.Done()
			return nil, ctx.Err()
		}, open
	},
	"handshakes have no answer": func() (string, carriertest.Dial, *atomic.Int32) {
		open := new(atomic.Int32)
		return "https://server.test/", func(context.Context, string, string) (net.Conn, error) {
			open.Add(1)
			near, far := net.Pipe()
			go func() { _, _ = io.Copy(io.Discard, far) }()
			return &counted{near, sync.OnceFunc(func() { open.Add(-1) })}, nil
		}, open
	},
}

// Requests that were given up have no turn, and count nowhere: neither may the connections that
// were dialed for them, but for a few. Those of requests that wait are left alone.
func TestFewConnectionsAreOpenedForRequestsThatHaveGone(t *testing.T) {
	for name, place := range swallowing {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				url, dial, open := place()
				tr := New(Options{Dial: dial})
				ask := func(ctx context.Context) {
					r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, http.NoBody)
					if err != nil {
						t.Error(err)
					}
					if _, err := fetch(tr, r); err == nil {
						t.Error("it was answered")
					}
				}
				patient, end := context.WithCancel(t.Context())
				go ask(patient)
				for range 5 {
					ctx, leave := context.WithCancel(t.Context())
					for range 4 * spares {
						go ask(ctx)
					}
					synctest.Wait()
					leave()
					synctest.Wait()
					if n := open.Load(); n != 1+spares {
						t.Errorf("%d connections are being opened, for one request", n)
					}
				}
				end()
				synctest.Wait()
				tr.CloseIdleConnections()
				time.Sleep(DefaultDialTimeout)
				synctest.Wait()
				if n := open.Load(); n != 0 || tr.spares != 0 {
					t.Errorf("%d connections in the end, %d spare ones", n, tr.spares)
				}
			})
		})
	}
}

// A connection whose request has gone is there for the next one, and makes room for another.
func TestSpareConnectionsAreUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var dials atomic.Int32
		opened := make(chan struct{})
		pipes := carriertest.Pipes(t, &dials, answering("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"))
		tr := New(Options{Dial: func(ctx context.Context, network, addr string) (net.Conn, error) {
			<-opened
			return pipes(ctx, network, addr)
		}})
		ctx, leave := context.WithCancel(t.Context())
		for range spares {
			go func() { _, _ = fetch(tr, call().WithContext(ctx)) }()
		}
		synctest.Wait()
		leave()
		close(opened)
		synctest.Wait()
		for i := range spares {
			if tr.spares != spares-min(i, 1) {
				t.Errorf("%d spare connections after %d calls", tr.spares, i)
			}
			if got, err := fetch(tr, call()); got != "{}" || err != nil {
				t.Errorf("%q %v", got, err)
			}
			synctest.Wait()
		}
		if n := dials.Load(); n != spares {
			t.Errorf("%d connections for %d calls one after another", n, spares)
		}
		tr.CloseIdleConnections()
		synctest.Wait()
		if tr.spares != 0 {
			t.Errorf("%d spare connections in the end", tr.spares)
		}
	})
}

// A request may be answered by nobody over and over, on connections of others, while one that was
// dialed for it is being opened each time.
func TestOneRequestHasFewConnectionsOpened(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var dials, opening atomic.Int32
		asked := make(chan struct{})
		pipes := carriertest.Pipes(t, &dials, func(_ int32, nc net.Conn, br *bufio.Reader) {
			if carriertest.Next(br) != nil { // and the next one is lost
				<-asked
				_, _ = io.WriteString(nc, carriertest.Plain)
				carriertest.Next(br)
			}
		})
		tr := New(Options{Dial: func(ctx context.Context, network, addr string) (net.Conn, error) {
			if ctx.Value(asker{}).(*Use).again {
				opening.Add(1)
				defer opening.Add(-1)
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return pipes(ctx, network, addr)
		}})
		for range 4 * spares {
			go func() { _, _ = fetch(tr, call()) }()
		}
		synctest.Wait()
		ctx, leave := context.WithCancel(t.Context())
		lost := make(chan error)
		go func() { _, _, err := tr.Do(call().WithContext(ctx), true); lost <- err }()
		synctest.Wait()
		for range 4 * spares {
			asked <- struct{}{}
			synctest.Wait()
			if n := opening.Load(); n > 1+spares {
				t.Fatalf("%d connections are being opened for one request", n)
			}
		}
		leave()
		if err := <-lost; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		synctest.Wait()
		if n := opening.Load(); n > spares {
			t.Errorf("%d connections in the end", n)
		}
		tr.CloseIdleConnections()
	})
}
