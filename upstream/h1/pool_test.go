package h1

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"
)

func TestOneConnectionServesManyRequests(t *testing.T) {
	for name, response := range map[string]string{
		"length":   "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
		"chunked":  "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\no\r\n1;ext=1\r\nk\r\n0\r\nX-T: 1\r\n\r\n",
		"interim":  "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
		"bare LFs": "HTTP/1.1 200 OK\nContent-Length: 2\n\nok",
	} {
		t.Run(name, func(t *testing.T) {
			conns := make(chan int, 10)
			c := newTestClient(t, rawServer(t, func(n int, nc net.Conn, br *bufio.Reader) {
				conns <- n
				for readRequest(br) {
					_, _ = io.WriteString(nc, response)
				}
			}))
			for range 3 {
				if got := fetch(t, c, request("{}")); got != "ok" {
					t.Fatalf("body %q", got)
				}
			}
			if len(conns) != 1 {
				t.Fatalf("%d connections", len(conns))
			}
		})
	}
}

func TestConnectionsThatEndAreNotReused(t *testing.T) {
	for name, response := range map[string]string{
		"close":           "HTTP/1.1 200 OK\r\nConnection: x, Close\r\nContent-Length: 2\r\n\r\nok",
		"HTTP/1.0":        "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok",
		"surplus":         "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\n\r\n",
		"length as well":  "HTTP/1.1 200 OK\r\nContent-Length: 7\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
		"until it closes": "HTTP/1.1 200 OK\r\n\r\nok",
	} {
		t.Run(name, func(t *testing.T) {
			conns := make(chan int, 10)
			c := newTestClient(t, rawServer(t, func(n int, nc net.Conn, br *bufio.Reader) {
				conns <- n
				if readRequest(br) {
					_, _ = io.WriteString(nc, response)
				}
			}))
			for i := range 3 {
				if got := fetch(t, c, request("{}")); got != "ok" {
					t.Fatalf("body %q", got)
				}
				if len(conns) != i+1 {
					t.Fatalf("%d connections after %d requests", len(conns), i+1)
				}
			}
		})
	}
}

// D-15: only what provably never left, or may be repeated, is sent again.
func TestD15AStaleConnectionIsReplacedOnlyWhenThatIsSafe(t *testing.T) {
	for _, tc := range []struct {
		name   string
		resend bool
		idle   time.Duration
		ok     bool
	}{
		{"noticed before use", false, time.Hour, true},
		{"noticed after use, may be repeated", true, 0, true},
		{"noticed after use, must not be repeated", false, 0, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			gone := make(chan struct{}, 1)
			c := newTestClient(t, rawServer(t, func(n int, nc net.Conn, br *bufio.Reader) {
				for readRequest(br) {
					_, _ = io.WriteString(nc, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
					if n == 0 && tc.idle == 0 {
						readRequest(br) // and never answer it
						return
					}
					if n == 0 {
						_ = nc.Close()
						gone <- struct{}{}
						return
					}
				}
			}))
			fetch(t, c, request("{}"))
			if tc.idle > 0 {
				<-gone
				awaitEnd(t, c.idle[0])
				c.idle[0].since = c.idle[0].since.Add(-time.Second)
			}
			r := request("{}")
			r.Resend = tc.resend
			resp, err := c.Do(t.Context(), r)
			if err == nil {
				resp.Finish()
			}
			failed, _ := errors.AsType[*Error](err)
			if tc.ok != (err == nil) || failed != nil && !failed.Sent {
				t.Fatalf("error %v", err)
			}
		})
	}
}

// awaitEnd waits until the peer's close has arrived at the socket.
func awaitEnd(t *testing.T, cn *conn) {
	t.Helper()
	var b [1]byte
	for range 1_000_000 {
		if _, open := cn.nc.Peek(b[:]); !open {
			return
		}
	}
	t.Fatal("the connection did not end")
}

// TestAConnectionThatWasJustClosedIsNotUsed: a server may close after each response, and not say so.
func TestAConnectionThatWasJustClosedIsNotUsed(t *testing.T) {
	c := newTestClient(t, rawServer(t, func(_ int, nc net.Conn, br *bufio.Reader) {
		readRequest(br)
		_, _ = io.WriteString(nc, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
	}))
	for range 3 {
		resp, err := c.Do(t.Context(), request("{}"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadAll(resp); err != nil {
			t.Fatal(err)
		}
		resp.Finish()
		cn := c.idle[0]
		awaitEnd(t, cn)
		cn.since = time.Now() // as if it had not taken so long
	}
}

func TestACancelAfterTheResponseLeavesTheConnectionAlone(t *testing.T) {
	c := newTestClient(t, rawServer(t, func(_ int, nc net.Conn, br *bufio.Reader) {
		for readRequest(br) {
			_, _ = io.WriteString(nc, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
		}
	}))
	for range 100 {
		ctx, cancel := context.WithCancel(t.Context())
		resp, err := c.Do(ctx, request("{}"))
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.ReadAll(resp)
		resp.Finish()
		cancel()
	}
}

// partly reads a stream to its answer, and no further.
func partly(t *testing.T, c *Client) {
	t.Helper()
	resp, err := c.Do(t.Context(), request("{}"))
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 2)
	if _, err := io.ReadFull(resp, b); err != nil || string(b) != "ok" {
		t.Fatalf("%q %v", b, err)
	}
	resp.Finish()
}

// A stream read to its answer is reused once its end has arrived, and not before.
func TestUnsettledStreams(t *testing.T) {
	end := make(chan struct{})
	ended := make(chan struct{})
	conns := make(chan int, 10)
	c := newTestClient(t, rawServer(t, func(n int, nc net.Conn, br *bufio.Reader) {
		conns <- n
		for i := 0; readRequest(br); i++ {
			_, _ = io.WriteString(nc, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n")
			if n == 0 && i == 0 {
				<-end
			}
			_, _ = io.WriteString(nc, "0\r\n\r\n")
			if n == 0 && i == 0 {
				ended <- struct{}{}
			}
		}
	}))
	partly(t, c)
	first := c.idle[0]
	if got := fetch(t, c, request("{}")); got != "ok" || len(conns) != 2 {
		t.Fatalf("body %q over %d connections", got, len(conns))
	}
	close(end)
	<-ended
	c.discard(c.pop()) // the second connection
	if c.idle[0] != first {
		t.Fatal("the unsettled connection is gone")
	}
	for first.state(time.Now()) == unready {
	}
	if got := fetch(t, c, request("{}")); got != "ok" || len(conns) != 2 {
		t.Fatalf("body %q over %d connections", got, len(conns))
	}
}

// TestAStreamWhoseConnectionEndsAfterItIsNotReused: the end of the connection shows only when that of the stream has been read.
func TestAStreamWhoseConnectionEndsAfterItIsNotReused(t *testing.T) {
	answered, closed := make(chan struct{}), make(chan struct{})
	c := newTestClient(t, rawServer(t, func(n int, nc net.Conn, br *bufio.Reader) {
		if !readRequest(br) {
			return
		}
		_, _ = io.WriteString(nc, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n")
		if n == 0 {
			<-answered
		}
		_, _ = io.WriteString(nc, "0\r\n\r\n")
		_ = nc.Close()
		if n == 0 {
			close(closed)
		}
	}))
	partly(t, c)
	close(answered)
	<-closed
	if got := fetch(t, c, request("{}")); got != "ok" {
		t.Fatalf("body %q", got)
	}
}

// TestAStreamThatEndedMeanwhileStaysInReserve: nobody came for its connection until then.
func TestAStreamThatEndedMeanwhileStaysInReserve(t *testing.T) {
	ended := make(chan struct{})
	conns := make(chan int, 10)
	c := newTestClient(t, rawServer(t, func(n int, nc net.Conn, br *bufio.Reader) {
		conns <- n
		for readRequest(br) {
			_, _ = io.WriteString(nc, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n")
			_, _ = io.WriteString(nc, "0\r\n\r\n")
			ended <- struct{}{}
		}
	}))
	for range 2 {
		partly(t, c)
		<-ended
		c.idle[0].since = c.idle[0].since.Add(-2 * settleTime)
		c.reap()
	}
	if len(conns) != 1 {
		t.Errorf("%d connections", len(conns))
	}
}

func TestAStreamThatGoesOnIsNotReused(t *testing.T) {
	c := newTestClient(t, rawServer(t, func(_ int, nc net.Conn, br *bufio.Reader) {
		if readRequest(br) {
			_, _ = io.WriteString(nc, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n3\r\nmor")
			_, _ = br.ReadByte()
		}
	}))
	partly(t, c)
	if len(c.idle) == 1 {
		for c.idle[0].state(time.Now()) == unready {
		}
		if c.takeIdle(time.Now()) != nil {
			t.Fatal("the connection was reused")
		}
	}
}

func TestIdleConnectionsExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New(Options{IdleTimeout: time.Minute, Dial: func(context.Context, string, string) (net.Conn, error) {
			client, server := net.Pipe()
			go func() {
				br := bufio.NewReader(server)
				for readRequest(br) {
					_, _ = io.WriteString(server, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
				}
			}()
			return client, nil
		}})
		defer c.Close()
		fetch(t, c, request("{}"))
		time.Sleep(50 * time.Second)
		fetch(t, c, request("{}"))
		time.Sleep(59 * time.Second)
		if open, _ := counts(c); open != 1 {
			t.Fatalf("%d connections are open", open)
		}
		time.Sleep(3 * time.Second)
		synctest.Wait()
		if open, idle := counts(c); open != 0 || idle != 0 {
			t.Fatalf("%d open, %d idle", open, idle)
		}
	})
}

func TestCloseEndsExchanges(t *testing.T) {
	begun := make(chan struct{})
	c := New(Options{Addr: rawServer(t, func(_ int, _ net.Conn, br *bufio.Reader) {
		readRequest(br)
		close(begun)
		_, _ = br.ReadByte()
	})})
	go func() { <-begun; c.Close() }()
	if _, err := c.Do(context.Background(), request("{}")); err == nil {
		t.Fatal("no error")
	}
	if _, err := c.Do(context.Background(), request("{}")); !errors.Is(err, ErrClosed) {
		t.Fatalf("error %v", err)
	}
}
