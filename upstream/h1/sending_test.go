package h1

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestLargeRequestsAreWrittenWhole(t *testing.T) {
	body := strings.Repeat("x", 1<<20)
	c := newTestClient(t, rawServer(t, func(_ int, nc net.Conn, br *bufio.Reader) {
		for {
			r, err := http.ReadRequest(br)
			if err != nil {
				return
			}
			n, _ := io.Copy(io.Discard, r.Body)
			text := fmt.Sprint(n)
			_, _ = fmt.Fprintf(nc, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(text), text)
		}
	}))
	for range 2 {
		r := request(body)
		r.Wire, r.Body = r.Wire[:len(r.Wire)-len(body)], []byte(body)
		if got := fetch(t, c, r); got != fmt.Sprint(len(body)) {
			t.Fatalf("the server read %s bytes", got)
		}
	}
}

// A server may refuse a body that it does not want to read.
func TestAnEarlyRefusalIsRead(t *testing.T) {
	c := newTestClient(t, rawServer(t, func(_ int, nc net.Conn, br *bufio.Reader) {
		_, _ = br.ReadString('\n')
		_, _ = io.WriteString(nc, "HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
		_, _ = io.Copy(io.Discard, br)
	}))
	r := request("")
	r.Body = make([]byte, 8<<20)
	resp, err := c.Do(t.Context(), r)
	if err != nil || resp.Status() != 413 {
		t.Fatalf("%v", err)
	}
	resp.Finish()
}

func TestHeaderTimeout(t *testing.T) {
	c := New(Options{HeaderTimeout: time.Millisecond, Addr: rawServer(t, func(_ int, _ net.Conn, br *bufio.Reader) {
		readRequest(br)
		_, _ = br.ReadByte()
	})})
	defer c.Close()
	_, err := c.Do(t.Context(), request("{}"))
	var ne net.Error
	if !errors.As(err, &ne) || !ne.Timeout() {
		t.Fatalf("error %v", err)
	}
}

func TestArrivingIsOnlyWhatAReadReturnsAtOnce(t *testing.T) {
	const head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none"
	for sent, want := range map[string]bool{
		"~3\r\nt":           true, // the end of the chunk came with it
		"~":                 false,
		"~3\r\n":            false,
		"":                  false,
		"\r":                false,
		"\r\n":              false,
		"\r\n3":             false,
		"\r\n3\r\n":         false, // the line, but nothing of the chunk
		"\r\n3\r\nt":        true,
		"\r\n3\r\ntwo\r\n":  true,
		"\r\n0\r\n\r\n":     false, // the end is no content
		"\r\n00003\r\ntwo":  false,
		"nonsense\r\nabout": false,
	} {
		t.Run(sent, func(t *testing.T) {
			more, written := make(chan struct{}), make(chan struct{})
			c := newTestClient(t, rawServer(t, func(_ int, nc net.Conn, br *bufio.Reader) {
				readRequest(br)
				first, then := head, sent
				if after, ended := strings.CutPrefix(sent, "~"); ended {
					first, then = head+"\r\n", after
				}
				_, _ = io.WriteString(nc, first)
				<-more
				_, _ = io.WriteString(nc, then)
				close(written)
				_, _ = br.ReadByte()
			}))
			resp, err := c.Do(t.Context(), request("{}"))
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Abort()
			buf := make([]byte, 16)
			if n, err := resp.Read(buf); n != 3 || err != nil {
				t.Fatal(n, err)
			}
			if resp.Arriving() {
				t.Fatal("something arrives before it was sent")
			}
			close(more)
			<-written
			if resp.cn.nc.Peekable() && strings.TrimPrefix(sent, "~") != "" { // what was written to loopback is there
				for range 1000 {
					if n, _ := resp.cn.nc.Peek(buf); n > 0 {
						break
					}
				}
			}
			if got := resp.Arriving(); got != (want && resp.cn.nc.Peekable()) {
				t.Errorf("%q: arriving %v", sent, got)
			}
		})
	}
}
