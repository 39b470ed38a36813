package h1

import (
	"bufio"
	"context"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// pipeServer is a client of a server behind net.Pipe, for use in a bubble of
// synctest. script runs on each connection.
func pipeServer(t *testing.T, dials *atomic.Int32, script func(n int32, nc net.Conn, br *bufio.Reader)) *Client {
	c := New(Options{IdleTimeout: time.Minute, Dial: func(context.Context, string, string) (net.Conn, error) {
		n := dials.Add(1)
		client, server := net.Pipe()
		go func() {
			defer server.Close()
			script(n, server, bufio.NewReader(server))
		}()
		return client, nil
	}})
	t.Cleanup(c.Close)
	return c
}

// try makes one call.
func try(c *Client) error {
	resp, err := c.Do(context.Background(), request("{}"))
	if err == nil {
		_, err = io.ReadAll(resp)
		resp.Finish()
	}
	return err
}

// A server that says when it will close an idle connection is believed: a request
// that crosses the close on its way would be lost.
func TestAnAnnouncedKeepAliveIsHeeded(t *testing.T) {
	for _, tc := range []struct {
		header string
		gap    time.Duration
		dials  int32
	}{
		{"Keep-Alive: timeout=5\r\n", 3900 * time.Millisecond, 1},
		{"Keep-Alive: timeout=5\r\n", 4 * time.Second, 2},
		{"keep-alive: max=100, TIMEOUT=5\r\n", 4 * time.Second, 2},
		{"Keep-Alive: timeout=1\r\n", 400 * time.Millisecond, 1},
		{"Keep-Alive: timeout=1\r\n", 500 * time.Millisecond, 2},
		{"Keep-Alive: timeout=0\r\n", 0, 2},
		{"Keep-Alive: timeout=900\r\n", time.Minute, 2}, // our own limit is lower
		{"Keep-Alive: max=100\r\n", 50 * time.Second, 1},
		{"", 50 * time.Second, 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			var dials atomic.Int32
			c := pipeServer(t, &dials, func(_ int32, nc net.Conn, br *bufio.Reader) {
				for readRequest(br) {
					_, _ = io.WriteString(nc, "HTTP/1.1 200 OK\r\n"+tc.header+"Content-Length: 2\r\n\r\nok")
				}
			})
			fetch(t, c, request("{}"))
			time.Sleep(tc.gap)
			fetch(t, c, request("{}"))
			if dials.Load() != tc.dials {
				t.Errorf("%q after %v: %d connections", tc.header, tc.gap, dials.Load())
			}
			c.Close()
			synctest.Wait()
		})
	}
}

// What is announced holds until the next response, which may say nothing.
func TestAKeepAliveOfAnEarlierResponseIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var dials atomic.Int32
		c := pipeServer(t, &dials, func(_ int32, nc net.Conn, br *bufio.Reader) {
			for header := "Keep-Alive: timeout=5\r\n"; readRequest(br); header = "" {
				_, _ = io.WriteString(nc, "HTTP/1.1 200 OK\r\n"+header+"Content-Length: 2\r\n\r\nok")
			}
		})
		for _, gap := range []time.Duration{0, time.Second, 30 * time.Second} {
			time.Sleep(gap)
			fetch(t, c, request("{}"))
		}
		if dials.Load() != 1 {
			t.Errorf("%d connections", dials.Load())
		}
		c.Close()
		synctest.Wait()
	})
}

// A server that was replaced without a word costs one call, not one for each idle
// connection.
func TestOneLossRetiresTheIdleConnectionsOfThatAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const many = 8
		var dials atomic.Int32
		var replaced atomic.Bool
		answer := make(chan struct{})
		c := pipeServer(t, &dials, func(n int32, nc net.Conn, br *bufio.Reader) {
			for readRequest(br) && (n > many || !replaced.Load()) {
				if n <= many {
					<-answer
				}
				_, _ = io.WriteString(nc, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
			}
		})
		for range many {
			go try(c)
		}
		synctest.Wait()
		close(answer)
		synctest.Wait()
		if _, idle := counts(c); idle != many {
			t.Fatalf("%d idle connections", idle)
		}
		replaced.Store(true)
		time.Sleep(time.Second)
		lost := 0
		for range 2 * many {
			if try(c) != nil {
				lost++
			}
		}
		if lost != 1 {
			t.Errorf("%d calls were lost", lost)
		}
		c.Close()
		synctest.Wait()
	})
}

// A call that its client gives up says nothing about other connections.
func TestACancelRetiresNoOtherConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var dials atomic.Int32
		answer := make(chan struct{}, 10)
		c := pipeServer(t, &dials, func(_ int32, nc net.Conn, br *bufio.Reader) {
			for readRequest(br) {
				<-answer
				_, _ = io.WriteString(nc, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
			}
		})
		for range 3 {
			go try(c)
		}
		synctest.Wait()
		for range 3 {
			answer <- struct{}{}
		}
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := c.Do(ctx, request("{}")); err == nil {
			t.Fatal("no error")
		}
		if _, idle := counts(c); idle != 2 {
			t.Errorf("%d idle connections", idle)
		}
		c.Close()
		close(answer)
		synctest.Wait()
	})
}
