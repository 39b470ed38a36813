package roundtrip

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/mcpbridge/bridge/internal/carriertest"
)

// D-15: whatever the client's headers say, a request that may have been executed
// is not sent again, unless the caller allows it.
func TestD15NothingIsRepeated(t *testing.T) {
	for name, broken := range map[string]string{
		"before the response": "",
		"in the head":         "HTTP/1.1 200 OK\r\nContent-Le",
		"in the body":         "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nok",
	} {
		for _, key := range []string{"Accept", "Idempotency-Key", "X-Idempotency-Key"} {
			for _, again := range []bool{false, true} {
				synctest.Test(t, func(t *testing.T) {
					var dials, executed atomic.Int32
					tr := server(t, &dials, func(n int32, nc net.Conn, br *bufio.Reader) {
						for served := 0; ; served++ {
							r := carriertest.Next(br)
							if r == nil {
								return
							}
							if got := r.Header.Values(key); len(got) != 1 || got[0] != "k" {
								t.Errorf("%s: %q", key, got)
							}
							executed.Add(1)
							if n == 1 && served == 1 {
								_, _ = io.WriteString(nc, broken)
								return
							}
							_, _ = io.WriteString(nc, carriertest.Plain)
						}
					})
					if _, err := fetch(tr, call(key, "k")); err != nil {
						t.Fatal(err)
					}
					synctest.Wait()
					executed.Store(0)
					resp, use, err := tr.Do(call(key, "k"), again)
					if err == nil {
						_, err = io.ReadAll(resp.Body)
						_ = resp.Body.Close()
						use.End(err == nil)
					}
					repeats := again && broken == ""
					if repeats != (err == nil) || err != nil && !Sent(err) && name != "in the body" || executed.Load() > 1 && !repeats {
						t.Errorf("%s, %s, again %v: executed %d times, error %v", name, key, again, executed.Load(), err)
					}
					tr.CloseIdleConnections()
				})
			}
		}
	}
}

// What never left may be sent again: nobody can have executed it.
func TestD15WhatNeverLeftIsSentAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var dials atomic.Int32
		tr := server(t, &dials, answering(carriertest.Plain))
		for range 2 {
			if _, err := fetch(tr, call()); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			tr.mu.Lock()
			for c := range tr.conns { // as expire may at any moment
				c.gone = true
			}
			tr.mu.Unlock()
		}
		if dials.Load() != 2 {
			t.Errorf("%d connections", dials.Load())
		}
		tr.CloseIdleConnections()
	})
}

func TestAnUnreachableServerGetsNothing(t *testing.T) {
	tr := New(Options{Dial: func(context.Context, string, string) (net.Conn, error) {
		client, server := net.Pipe()
		_ = server.Close()
		return client, nil
	}})
	if _, err := fetch(tr, call()); err == nil || Sent(err) {
		t.Errorf("%v", err)
	}
}

// The next request waits until the response before is judged, and goes over
// another connection when that is not trusted.
func TestADistrustedResponseEndsItsConnection(t *testing.T) {
	for _, trusted := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			var dials atomic.Int32
			tr := server(t, &dials, answering(carriertest.Plain))
			resp, use, err := tr.Do(call(), false)
			if err != nil {
				t.Fatal(err)
			}
			_, _ = io.ReadAll(resp.Body)
			synctest.Wait() // net/http takes the connection for free
			done := make(chan error, 1)
			go func() {
				_, err := fetch(tr, call())
				done <- err
			}()
			synctest.Wait()
			if len(done) > 0 {
				t.Error("the connection was used before it was judged")
			}
			use.End(trusted)
			use.End(!trusted) // too late
			_ = resp.Body.Close()
			if err := <-done; err != nil {
				t.Error(err)
			}
			if want := map[bool]int32{true: 1, false: 2}[trusted]; dials.Load() != want {
				t.Errorf("trusted %v: %d connections", trusted, dials.Load())
			}
			synctest.Wait()
			tr.CloseIdleConnections()
		})
	}
}

func TestTrailersDoNotCross(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var dials atomic.Int32
		tr := server(t, &dials, answering("HTTP/1.1 200 OK\r\nTrailer: X-T\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nX-T: 1\r\nX-U: 2\r\n\r\n"))
		resp, err := tr.RoundTrip(call())
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if resp.Trailer != nil {
			t.Errorf("%v", resp.Trailer)
		}
		synctest.Wait()
		tr.CloseIdleConnections()
	})
}

// A connection is free again before its last response was judged. Who waits for that and
// leaves is not held up by it.
func TestWhoLeavesDoesNotWaitForTheResponseBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var dials, executed atomic.Int32
		tr := server(t, &dials, func(_ int32, nc net.Conn, br *bufio.Reader) {
			for carriertest.Next(br) != nil {
				executed.Add(1)
				_, _ = io.WriteString(nc, carriertest.Plain)
			}
		})
		resp, use, err := tr.Do(call(), false)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.ReadAll(resp.Body)
		synctest.Wait() // net/http takes the connection for free
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() {
			_, err := fetch(tr, call().WithContext(ctx))
			done <- err
		}()
		synctest.Wait()
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		use.End(true)
		_ = resp.Body.Close()
		if _, err := fetch(tr, call()); err != nil {
			t.Error(err)
		}
		if dials.Load() < 2 || executed.Load() != 2 { // http.Transport may have opened one more for who left
			t.Errorf("%d requests over %d connections", executed.Load(), dials.Load())
		}
		synctest.Wait()
		tr.CloseIdleConnections()
	})
}

// D-15: behind a proxy nothing has left for the server before the proxy has let it through.
func TestD15AProxyThatLetsNothingThroughHasSentNothing(t *testing.T) {
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }))
	at, _ := url.Parse(proxy.URL)
	for _, closed := range []bool{false, true} {
		if closed {
			proxy.Close()
		}
		tr := New(Options{})
		tr.std.Proxy = http.ProxyURL(at)
		if _, err := fetch(tr, secure("/")); err == nil || Sent(err) {
			t.Errorf("closed %v: %v", closed, err)
		}
	}
}
