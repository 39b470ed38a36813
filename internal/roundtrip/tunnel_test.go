package roundtrip

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/url"
	"testing"
	"testing/synctest"
	"time"
)

// proxied has a transport reach its server through a proxy that says this.
func proxied(tr *Transport, at, says string) {
	server := tr.dial
	tr.dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
		client, near := net.Pipe()
		go func() {
			defer near.Close()
			in := bufio.NewReader(near)
			_, _ = in.Peek(1)
			if says == "" {
				_, _ = io.Copy(io.Discard, in)
				return
			}
			_, _ = http.ReadRequest(in)
			far, _ := server(ctx, network, addr)
			defer far.Close()
			_, _ = io.WriteString(near, says)
			go func() { _, _ = io.Copy(far, in); _ = far.Close() }()
			_, _ = io.Copy(near, far)
		}()
		return client, nil
	}
	tr.std.Proxy = http.ProxyURL(&url.URL{Scheme: at, Host: "127.0.0.1:3128"})
}

// What a proxy is asked for is part of connecting, and has its bound.
func TestAProxyThatSaysNothingIsGivenUp(t *testing.T) {
	for _, at := range []string{"http", "socks5"} {
		synctest.Test(t, func(t *testing.T) {
			tr := startPiped(t, http.NotFound)
			proxied(tr, at, "")
			began := time.Now()
			_, err := fetch(tr, secure("/"))
			if took := time.Since(began); err == nil || Sent(err) || took > DefaultDialTimeout {
				t.Errorf("%s: %v after %v", at, err, took)
			}
			if n := open(tr); n != 0 {
				t.Errorf("%s: %d connections", at, n)
			}
		})
	}
}

func TestAServerBehindAProxyHasItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := startPiped(t, func(w http.ResponseWriter, _ *http.Request) {
			time.Sleep(2 * DefaultDialTimeout)
			_, _ = io.WriteString(w, "done")
		})
		proxied(tr, "http", "HTTP/1.1 200 OK\r\n\r\n")
		for range 2 {
			if got, err := fetch(tr, secure("/")); got != "done" || err != nil {
				t.Errorf("%q %v", got, err)
			}
			time.Sleep(DefaultDialTimeout) // the connection is idle
		}
	})
}
