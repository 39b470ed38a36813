package edge

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
)

// TestLeavingLosesNoRequest: those in line when the listener closes are served, also when
// nobody has seen to them before. Else a balancer that has sent a request would be told
// that the connection was reset, and does not know what came of it.
func TestLeavingLosesNoRequest(t *testing.T) {
	for name, standard := range map[string]bool{"lean": false, "standard": true} {
		t.Run(name, func(t *testing.T) {
			served := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Connection", "close")
				_, _ = io.Copy(w, r.Body)
			})
			e, err := Open(t.Context(), served, Options{Listen: "127.0.0.1:0", StandardHTTP: standard, Log: zerolog.Nop()})
			if err != nil {
				t.Fatal(err)
			}
			var line []net.Conn
			for range 50 {
				conn, err := net.Dial("tcp", e.Addr().String())
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				if _, err := io.WriteString(conn, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\ncall"); err != nil {
					t.Fatal(err)
				}
				line = append(line, conn)
			}
			ended := make(chan error)
			go func() { ended <- e.Serve() }()
			e.Leave(context.Background(), 0, func() {})
			e.Shutdown(context.Background())
			<-ended
			for i, conn := range line {
				resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
				if err != nil {
					t.Fatalf("request %d: %v", i, err)
				}
				if text, _ := io.ReadAll(resp.Body); string(text) != "call" {
					t.Errorf("request %d gets %q", i, text)
				}
				_ = resp.Body.Close()
			}
			if conn, err := net.Dial("tcp", e.Addr().String()); err == nil {
				_ = conn.Close()
				t.Error("it still listens")
			}
		})
	}
}

// TestARequestBehindAStreamThatLeavingEndedIsServed: a balancer takes its connection for free as soon as the end
// of the stream is there, and uses it before any other.
func TestARequestBehindAStreamThatLeavingEndedIsServed(t *testing.T) {
	for name, standard := range map[string]bool{"lean": false, "standard": true} {
		t.Run(name, func(t *testing.T) {
			passing, endStreams := context.WithCancel(t.Context())
			served := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodGet {
					_ = http.NewResponseController(w).Flush()
					<-passing.Done()
					return
				}
				w.Header().Set("Connection", "close")
				_, _ = io.Copy(w, r.Body)
			})
			e, err := Open(t.Context(), served, Options{Listen: "127.0.0.1:0", StandardHTTP: standard, Log: zerolog.Nop()})
			if err != nil {
				t.Fatal(err)
			}
			ended := make(chan error)
			go func() { ended <- e.Serve() }()
			conn, err := net.Dial("tcp", e.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			_, _ = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
			in := bufio.NewReader(conn)
			stream, err := http.ReadResponse(in, nil)
			if err != nil {
				t.Fatal(err)
			}
			go func() {
				e.Leave(context.Background(), 0, endStreams)
				e.Shutdown(context.Background())
			}()
			_, _ = io.Copy(io.Discard, stream.Body)
			_, _ = io.WriteString(conn, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\ncall")
			resp, err := http.ReadResponse(in, nil)
			if err != nil {
				t.Fatal(err)
			}
			if text, _ := io.ReadAll(resp.Body); string(text) != "call" || !resp.Close {
				t.Errorf("got %q, the last: %v", text, resp.Close)
			}
			<-ended
		})
	}
}

// TestWhoIsOverheardGetsNotInLine: those who are in line stay there.
func TestWhoIsOverheardGetsNotInLine(t *testing.T) {
	l, err := open(t.Context(), "--listen", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	early, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer early.Close()
	if !overhear(l) {
		t.Skip("left out: the kernel filters no newcomers")
	}
	if late, err := net.DialTimeout("tcp", l.Addr().String(), 100*time.Millisecond); err == nil {
		late.Close()
		t.Error("somebody got in line")
	}
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
}

// TestWhoConnectsWhileTheListenerClosesIsServedOrRefused: a balancer goes on elsewhere when it is refused, but not
// when it has sent a request.
func TestWhoConnectsWhileTheListenerClosesIsServedOrRefused(t *testing.T) {
	served := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Connection", "close")
		_, _ = io.Copy(w, r.Body)
	})
	e, err := Open(t.Context(), served, Options{Listen: "127.0.0.1:0", Log: zerolog.Nop()})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error)
	go func() { ended <- e.Serve() }()
	begun := make(chan struct{}, 1)
	var clients sync.WaitGroup
	for range 64 {
		clients.Go(func() {
			for {
				conn, err := net.Dial("tcp", e.Addr().String())
				if err != nil {
					return // refused
				}
				_, _ = io.WriteString(conn, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\ncall")
				_, err = http.ReadResponse(bufio.NewReader(conn), nil)
				_ = conn.Close()
				if err != nil {
					t.Error("a request that was sent is lost:", err)
					return
				}
				select {
				case begun <- struct{}{}:
				default:
				}
			}
		})
	}
	<-begun
	e.Leave(t.Context(), 0, func() {})
	clients.Wait()
	e.Shutdown(t.Context())
	<-ended
}
