package h1

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/mcpbridge/bridge/internal/http1"
	"github.com/mcpbridge/bridge/internal/testport"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rawServer accepts connections and runs one script on each.
func rawServer(t testing.TB, script func(n int, c net.Conn, br *bufio.Reader)) (addr string) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for n := 0; ; n++ {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer c.Close()
				script(n, c, bufio.NewReader(c))
			})
		}
	})
	t.Cleanup(func() { _ = ln.Close(); wg.Wait() })
	return ln.Addr().String()
}

func newTestClient(t testing.TB, addr string) *Client {
	c := New(Options{Addr: addr, DialTimeout: 5 * time.Second})
	t.Cleanup(c.Close)
	return c
}

// readRequest reads one request of a client and reports whether there was one.
func readRequest(br *bufio.Reader) bool {
	r, err := http.ReadRequest(br)
	if err != nil {
		return false
	}
	_, err = io.Copy(io.Discard, r.Body)
	return err == nil
}

func counts(c *Client) (open, idle int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.open), len(c.idle)
}

func request(body string) *Request {
	return &Request{Wire: fmt.Appendf(nil, "POST /mcp HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", len(body), body)}
}

func fetch(t testing.TB, c *Client, r *Request) string {
	t.Helper()
	resp, err := c.Do(context.Background(), r)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(resp)
	if err != nil {
		t.Fatal(err)
	}
	resp.Finish()
	return string(b)
}

func TestBrokenBodiesAreNotTakenForWholeOnes(t *testing.T) {
	for name, response := range map[string]string{
		"short":           "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nok",
		"in a chunk":      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nok",
		"between chunks":  "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n",
		"in the trailer":  "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n",
		"bad chunk size":  "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\nok\r\n0\r\n\r\n",
		"bare LF":         "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\nok\n0\n\n",
		"huge chunk size": "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n",
		"bad chunk end":   "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nokxx0\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			c := newTestClient(t, rawServer(t, func(_ int, nc net.Conn, br *bufio.Reader) {
				if readRequest(br) {
					_, _ = io.WriteString(nc, response)
				}
			}))
			resp, err := c.Do(t.Context(), request("{}"))
			if err != nil {
				t.Fatal(err)
			}
			if b, err := io.ReadAll(resp); err == nil {
				t.Fatalf("read %q without an error", b)
			}
			resp.Finish()
			if len(c.idle) != 0 {
				t.Fatal("the connection was kept")
			}
		})
	}
}

func TestMalformedHeadsAreRefused(t *testing.T) {
	for name, response := range map[string]string{
		"no HTTP":           "SSH-2.0-OpenSSH\r\n\r\n",
		"HTTP/2":            "HTTP/2.0 200 OK\r\n\r\n",
		"frame of HTTP/2":   "\x00\x00\x06\x04\x00\x00\x00\x00\x00\x00\x03\x00\x00\x00\x64",
		"bad status":        "HTTP/1.1 2x0 OK\r\n\r\n",
		"low status":        "HTTP/1.1 099 OK\r\n\r\n",
		"long status":       "HTTP/1.1 2000 OK\r\n\r\n",
		"upgrade":           "HTTP/1.1 101 Switching Protocols\r\n\r\n",
		"endless interim":   strings.Repeat("HTTP/1.1 100 Continue\r\n\r\n", DefaultMaxHead/21),
		"two lengths":       "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nok",
		"length, 2 ways":    "HTTP/1.1 200 OK\r\nContent-Length: 02\r\nContent-Length: 2\r\n\r\nok",
		"signed length":     "HTTP/1.1 200 OK\r\nContent-Length: +2\r\n\r\nok",
		"negative length":   "HTTP/1.1 200 OK\r\nContent-Length: -2\r\n\r\nok",
		"another coding":    "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
		"space before :":    "HTTP/1.1 200 OK\r\nContent-Length : 2\r\n\r\nok",
		"no colon":          "HTTP/1.1 200 OK\r\nnonsense\r\n\r\nok",
		"folded":            "HTTP/1.1 200 OK\r\nX: 1\r\n 2\r\nContent-Length: 2\r\n\r\nok",
		"control character": "HTTP/1.1 200 OK\r\nX: a\x00b\r\nContent-Length: 2\r\n\r\nok",
		"too large":         "HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", DefaultMaxHead) + "\r\n\r\n",
		"too many":          "HTTP/1.1 200 OK\r\n" + strings.Repeat("X: 1\r\n", DefaultMaxHead/6) + "\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			c := newTestClient(t, rawServer(t, func(_ int, nc net.Conn, br *bufio.Reader) {
				if readRequest(br) {
					_, _ = io.WriteString(nc, response)
				}
			}))
			_, err := c.Do(t.Context(), request("{}"))
			failed, ok := errors.AsType[*Error](err)
			if !ok || failed.Op != OpParse || !failed.Sent || !errors.Is(err, http1.ErrMalformed) {
				t.Fatalf("error %v", err)
			}
		})
	}
}

func TestLongHeaderLinesAndValues(t *testing.T) {
	long := strings.Repeat("y", 3*readBuffer)
	c := newTestClient(t, rawServer(t, func(_ int, nc net.Conn, br *bufio.Reader) {
		if readRequest(br) {
			_, _ = io.WriteString(nc, "HTTP/1.1 401 No\r\nWWW-Authenticate: "+long+"\r\nContent-Type: Application/JSON ; charset=utf-8\r\nwww-authenticate:  b \r\nContent-Length: 0\r\n\r\n")
		}
	}))
	resp, err := c.Do(t.Context(), request("{}"))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Finish()
	if v := resp.Values("WWW-Authenticate"); resp.Status() != 401 || len(v) != 2 || v[0] != long || v[1] != "b" {
		t.Fatalf("status %d, %d values", resp.Status(), len(v))
	}
	if resp.Media() != "application/json" || resp.Length() != 0 {
		t.Fatalf("media %q, length %d", resp.Media(), resp.Length())
	}
}

func TestARefusedDialSaysThatNothingWasSent(t *testing.T) {
	_, err := newTestClient(t, testport.Closed).Do(t.Context(), request("{}"))
	failed, ok := errors.AsType[*Error](err)
	if !ok || failed.Op != OpDial || failed.Sent {
		t.Fatalf("error %v", err)
	}
}

// E-37: the end of the context closes the connection, which is the cancel.
func TestE37CancellationClosesTheConnection(t *testing.T) {
	for _, head := range []string{"", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"} {
		begun, closed := make(chan struct{}), make(chan struct{})
		c := newTestClient(t, rawServer(t, func(_ int, nc net.Conn, br *bufio.Reader) {
			readRequest(br)
			close(begun)
			_, _ = io.WriteString(nc, head)
			_, _ = br.ReadByte()
			close(closed)
		}))
		ctx, cancel := context.WithCancel(t.Context())
		if head == "" {
			go func() { <-begun; cancel() }()
		}
		resp, err := c.Do(ctx, request("{}"))
		if head != "" {
			if err != nil {
				t.Fatal(err)
			}
			go cancel()
			_, err = io.ReadAll(resp)
			resp.Abort()
		}
		if err == nil {
			t.Fatal("no error")
		}
		<-closed
		cancel()
		if open, idle := counts(c); open != 0 || idle != 0 {
			t.Fatalf("%d open, %d idle", open, idle)
		}
	}
}
