// Package carriertest has what whoever carries requests to servers must do with connections
// that are idle, whichever HTTP it speaks: tests of upstream/h1 and of internal/roundtrip.
package carriertest

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// Plain is a response with the body "ok".
const Plain = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

// Idle is how long a Carrier keeps a connection that nobody uses.
const Idle = time.Minute

// Dial is how a Carrier reaches its server.
type Dial = func(context.Context, string, string) (net.Conn, error)

// Carrier sends requests over connections that it keeps.
type Carrier struct {
	Call  func(context.Context) error // sends a request, and reads its response
	Ask   func(context.Context) error // the same of one that may be sent again, since it only asks
	Kept  func() int                  // connections that are open while no request is under way
	Close func()
}

// Pipes is a server behind net.Pipe, for use in a bubble of synctest. script runs on each
// connection, numbered from 1 by dials.
func Pipes(t *testing.T, dials *atomic.Int32, script func(n int32, nc net.Conn, br *bufio.Reader)) Dial {
	return func(context.Context, string, string) (net.Conn, error) {
		n := dials.Add(1)
		client, server := net.Pipe()
		go func() {
			defer server.Close()
			script(n, server, bufio.NewReader(server))
		}()
		t.Cleanup(func() { _ = client.Close() })
		return client, nil
	}
}

// Next reads a request; nil at the connection's end.
func Next(br *bufio.Reader) *http.Request {
	r, err := http.ReadRequest(br)
	if err != nil {
		return nil
	}
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		return nil
	}
	return r
}

// KeepAlive tests that a server is believed which says when it will close an idle connection: a
// request that crosses the close on its way would be lost.
func KeepAlive(t *testing.T, open func(Dial) Carrier) {
	for _, tc := range []struct {
		header string
		gap    time.Duration
		dials  int32
	}{
		{"Keep-Alive: timeout=5\r\n", 3900 * time.Millisecond, 1},
		{"Keep-Alive: timeout=5\r\n", 4001 * time.Millisecond, 2},
		{"keep-alive: max=100, TIMEOUT=5\r\n", 4001 * time.Millisecond, 2},
		{"Keep-Alive: timeout=1\r\n", 400 * time.Millisecond, 1},
		{"Keep-Alive: timeout=1\r\n", 501 * time.Millisecond, 2},
		{"Keep-Alive: timeout=0\r\n", time.Millisecond, 2},
		{"Keep-Alive: timeout=900\r\n", Idle + time.Millisecond, 2}, // the carrier's own limit is lower
		{"Keep-Alive: max=100\r\n", 50 * time.Second, 1},
		{"", 50 * time.Second, 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			var dials atomic.Int32
			response := strings.Replace(Plain, "Content", tc.header+"Content", 1)
			c := open(Pipes(t, &dials, func(_ int32, nc net.Conn, br *bufio.Reader) {
				for Next(br) != nil {
					_, _ = io.WriteString(nc, response)
				}
			}))
			for range 2 {
				if err := c.Call(t.Context()); err != nil {
					t.Fatalf("%q %v", tc.header, err)
				}
				synctest.Wait()
				time.Sleep(tc.gap)
				synctest.Wait()
			}
			if dials.Load() != tc.dials {
				t.Errorf("%q after %v: %d connections", tc.header, tc.gap, dials.Load())
			}
			c.Close()
			synctest.Wait()
		})
	}
}

// opened has as many idle connections as calls: each is on one of its own while all wait for their answer.
func opened(t *testing.T, c Carrier, calls int, answer chan<- struct{}) {
	t.Helper()
	for range calls {
		go func() { _ = c.Call(t.Context()) }()
	}
	synctest.Wait()
	for range calls {
		answer <- struct{}{}
	}
	synctest.Wait()
	if kept := c.Kept(); kept != calls {
		t.Fatalf("%d idle connections", kept)
	}
}

// givenUp makes a request that nobody waits for longer than a second, and that has no answer.
func givenUp(t *testing.T, request func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if request(ctx) == nil {
		t.Fatal("no error")
	}
	synctest.Wait()
}

// swallowed is a connection whose end nobody hears of, until the kernel has asked in vain.
type swallowed struct{ net.Conn }

func (c swallowed) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if err == io.EOF {
		time.Sleep(25 * time.Second)
		err = &net.OpError{Op: "read", Net: "tcp", Err: os.NewSyscallError("read", syscall.ETIMEDOUT)}
	}
	return n, err
}

// OneLoss tests that a server that was replaced without a word costs one call, not one for each idle
// connection, and so does one that the network does not lead to any more.
func OneLoss(t *testing.T, open func(Dial) Carrier) {
	oneLoss(t, open)
	oneLoss(t, func(dial Dial) Carrier {
		return open(func(ctx context.Context, network, addr string) (net.Conn, error) {
			nc, err := dial(ctx, network, addr)
			return swallowed{nc}, err
		})
	})
}

func oneLoss(t *testing.T, open func(Dial) Carrier) {
	synctest.Test(t, func(t *testing.T) {
		const many = 8
		var dials atomic.Int32
		var replaced atomic.Bool
		answer := make(chan struct{})
		c := open(Pipes(t, &dials, func(n int32, nc net.Conn, br *bufio.Reader) {
			for Next(br) != nil && (n > many || !replaced.Load()) {
				if n <= many {
					<-answer
				}
				_, _ = io.WriteString(nc, Plain)
			}
		}))
		opened(t, c, many, answer)
		replaced.Store(true)
		time.Sleep(time.Second)
		lost := 0
		for range 2 * many {
			if c.Call(t.Context()) != nil {
				lost++
			}
			synctest.Wait()
		}
		if lost != 1 {
			t.Errorf("%d calls were lost", lost)
		}
		c.Close()
		synctest.Wait()
	})
}

// Cancel tests that a call that its client gives up says nothing about other connections.
func Cancel(t *testing.T, open func(Dial) Carrier) {
	synctest.Test(t, func(t *testing.T) {
		var dials atomic.Int32
		answer := make(chan struct{})
		c := open(Pipes(t, &dials, func(_ int32, nc net.Conn, br *bufio.Reader) {
			for Next(br) != nil {
				<-answer
				_, _ = io.WriteString(nc, Plain)
			}
		}))
		opened(t, c, 3, answer)
		givenUp(t, c.Call)
		if kept := c.Kept(); kept != 2 {
			t.Errorf("%d connections are left", kept)
		}
		close(answer)
		c.Close()
		synctest.Wait()
	})
}

// Question tests that the idle connections that a network has swallowed, with a server behind it
// that takes new ones, are given up with the first one on which a question is not answered in time.
func Question(t *testing.T, open func(Dial) Carrier) {
	synctest.Test(t, func(t *testing.T) {
		const many = 4
		var dials atomic.Int32
		var swallowed atomic.Bool
		answer := make(chan struct{})
		c := open(Pipes(t, &dials, func(n int32, nc net.Conn, br *bufio.Reader) {
			for Next(br) != nil {
				<-answer
				if n > many || !swallowed.Load() {
					_, _ = io.WriteString(nc, Plain)
				}
			}
		}))
		opened(t, c, many, answer)
		close(answer)
		swallowed.Store(true)
		time.Sleep(time.Second)
		givenUp(t, c.Ask)
		if kept := c.Kept(); kept != 0 {
			t.Errorf("%d connections are kept", kept)
		} else if err := c.Call(t.Context()); err != nil {
			t.Error(err)
		}
		c.Close()
		synctest.Wait()
	})
}
