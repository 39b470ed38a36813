package edge

import (
	"context"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

// pipes is a listener of connections within the process.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case conn := <-p.conns:
		return conn, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { close(p.done); return nil }
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

func TestConnectionsWithoutARequestDoNotHoldUpTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var u unused
		srv := &http.Server{Handler: http.NotFoundHandler(), ConnState: u.note}
		listener := &pipes{make(chan net.Conn), make(chan struct{})}
		go func() { _ = srv.Serve(listener) }()
		dial := func() net.Conn {
			near, far := net.Pipe()
			listener.conns <- far
			synctest.Wait()
			return near
		}
		first := dial()
		u.close()
		for _, conn := range []net.Conn{first, dial()} {
			if _, err := conn.Read(make([]byte, 1)); err == nil {
				t.Error("an unused connection is open")
			}
		}
		synctest.Wait()
		if u.mu.Lock(); len(u.conns) > 0 {
			t.Errorf("%d connections are still noted", len(u.conns))
		}
		u.mu.Unlock()
		began := time.Now() // of the bubble
		if err := srv.Shutdown(context.Background()); err != nil || time.Since(began) > time.Second {
			t.Errorf("it ended with %v after %s", err, time.Since(began))
		}
	})
}
