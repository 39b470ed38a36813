package h1

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// inBubble runs f in synthetic time with a server and connections to it that
// need no network.
func inBubble(t *testing.T, h http.HandlerFunc, f func(t *testing.T, s *Server, connect func() *wire)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := New(h, &http.Server{ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute})
		var open []*wire
		f(t, s, func() *wire {
			near, far := net.Pipe()
			s.ServeConn(far)
			w := newWire(t, near)
			open = append(open, w)
			return w
		})
		_ = s.Close()
		for _, w := range open {
			_ = w.Close()
		}
		synctest.Wait()
		if n := s.conns.Len(); n > 0 {
			t.Errorf("%d connections are left", n)
		}
	})
}

// lasts reports how long the server keeps a connection on which no more comes.
func (w *wire) lasts() time.Duration {
	began := time.Now()
	_, _ = io.Copy(io.Discard, w.in)
	return time.Since(began)
}

func TestUnusedSlowAndIdleConnectionsAreClosed(t *testing.T) {
	inBubble(t, echo, func(t *testing.T, _ *Server, connect func() *wire) {
		expect := func(what string, got, want time.Duration) {
			t.Helper()
			if got != want {
				t.Errorf("%s: closed after %s, want %s", what, got, want)
			}
		}
		expect("unused", connect().lasts(), 10*time.Second)
		w := connect()
		w.send("GET / HT")
		expect("slow head", w.lasts(), 10*time.Second)
		w = connect()
		time.Sleep(9 * time.Second)
		w.send(get[:10])
		expect("late and slow head", w.lasts(), time.Second)
		w = connect()
		for range 5 {
			w.send(get)
			w.read()
			time.Sleep(100 * time.Second)
		}
		expect("idle", w.lasts(), 20*time.Second)
		w = connect()
		w.send(get)
		w.read()
		time.Sleep(119 * time.Second)
		for _, c := range get[:9] { // a slow second head has its own time
			w.send(string(c))
			time.Sleep(time.Second)
		}
		expect("slow second head", w.lasts(), time.Second)
	})
}

func TestDeadlinesOfBeforeEndNothing(t *testing.T) {
	inBubble(t, func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		select {
		case <-r.Context().Done():
			t.Error("the context ended")
		case <-time.After(time.Hour):
		}
		_, _ = w.Write(b)
	}, func(t *testing.T, _ *Server, connect func() *wire) {
		w := connect()
		for range 3 {
			w.send(post("abc"))
			if got := w.body(); got != "abc" {
				t.Fatalf("%q", got)
			}
			time.Sleep(time.Minute)
		}
	})
}

// A body that does not come does not hold a connection for ever, and not the
// handler. One that makes progress takes as long as it takes.
func TestBodiesMustMakeProgress(t *testing.T) {
	var took time.Duration
	var failed error
	began := func(w http.ResponseWriter, r *http.Request) {
		start := time.Now()
		_, failed = io.Copy(io.Discard, r.Body)
		took = time.Since(start)
	}
	chunked := func(request string) string {
		head, body, _ := strings.Cut(request, "\r\n\r\n")
		return strings.Replace(head, "Content-Length: ", "Transfer-Encoding: chunked\r\nX: ", 1) + "\r\n\r\nffffff\r\n" + body
	}
	for name, form := range map[string]func(string) string{
		"lean": func(s string) string { return s }, "net/http": chunked,
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, began, func(t *testing.T, _ *Server, connect func() *wire) {
				request := form(post(strings.Repeat("b", 4<<20)))
				w := connect()
				w.send(request[:1000])
				last := w.lasts()
				if took != bodyGrace || last < took || failed == nil {
					t.Errorf("nothing: read for %s, closed after %s, %v", took, last, failed)
				}
				w = connect()
				for len(request) > 1<<20 { // 128 KiB each second
					w.send(request[:128<<10])
					request = request[128<<10:]
					time.Sleep(time.Second)
				}
				last = w.lasts()
				if took < bodyGrace+3<<20/bodyRate*time.Second || last < 20*time.Second || failed == nil {
					t.Errorf("progress: read for %s, closed after another %s, %v", took, last, failed)
				}
			})
		})
	}
}

func TestReadDeadlineOfTheHandler(t *testing.T) {
	var failed error
	inBubble(t, func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(time.Second))
		_, failed = io.Copy(io.Discard, r.Body)
	}, func(t *testing.T, _ *Server, connect func() *wire) {
		w := connect()
		w.send(post("abc")[:len(post("abc"))-1])
		if last := w.lasts(); last > 2*time.Second || failed == nil || !timeout(failed) {
			t.Errorf("closed after %s with %v", last, failed)
		}
		w = connect()
		w.send(post("abc"))
		if resp, _ := w.read(); resp.StatusCode != 200 || failed != nil {
			t.Error(resp.Status, failed)
		}
		if last := w.lasts(); last != 2*time.Minute {
			t.Errorf("idle for %s", last)
		}
	})
}

func TestWriteDeadlineEndsAWriteToASlowReaderAndNoLaterOne(t *testing.T) {
	var failed error
	inBubble(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(time.Second))
		}
		_, failed = w.Write(make([]byte, 10000))
	}, func(t *testing.T, _ *Server, connect func() *wire) {
		w := connect()
		w.send(get)
		w.read()
		time.Sleep(time.Minute) // past the deadline, which is none of the next response's
		w.send(post(""))
		time.Sleep(bodyGrace - time.Second)
		w.read()
		if failed != nil {
			t.Error(failed)
		}
		w.send(get)
		time.Sleep(2 * time.Second)
		if _, err := http.ReadResponse(w.in, nil); err == nil || failed == nil || !timeout(failed) {
			t.Errorf("%v; the handler got %v", err, failed)
		}
	})
}

func TestClientThatReadsNothingIsGivenUp(t *testing.T) {
	var failed error
	var took time.Duration
	inBubble(t, func(w http.ResponseWriter, _ *http.Request) {
		began := time.Now()
		_, failed = w.Write(make([]byte, 10<<20))
		took = time.Since(began)
	}, func(t *testing.T, _ *Server, connect func() *wire) {
		w := connect()
		w.send(get)
		time.Sleep(time.Hour)
		synctest.Wait()
		want := 2*bodyGrace + 10<<20/bodyRate*time.Second
		if _ = w.Close(); failed == nil || !timeout(failed) || took != want {
			t.Errorf("%v after %s, want %s", failed, took, want)
		}
	})
}

// Shutdown waits for handlers, and for nothing that clients have yet to send.
func TestShutdownWaitsOnlyForHandlers(t *testing.T) {
	inBubble(t, func(w http.ResponseWriter, r *http.Request) {
		_, err := io.Copy(io.Discard, r.Body)
		if err == nil {
			time.Sleep(5 * time.Second)
		}
		_, _ = io.WriteString(w, "done")
	}, func(t *testing.T, s *Server, connect func() *wire) {
		unused, slow, idle, busy, half, rest := connect(), connect(), connect(), connect(), connect(), connect()
		slow.send("GET /")
		idle.send(get)
		idle.read()
		busy.send(get)
		half.send(post("abc")[:len(post("abc"))-1])
		rest.send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab")
		synctest.Wait()
		began := time.Now()
		done := make(chan error)
		go func() { done <- s.Shutdown(context.Background()) }()
		for name, w := range map[string]*wire{"unused": unused, "slow head": slow, "idle": idle} {
			if last := w.lasts(); last != 0 {
				t.Errorf("%s: closed after %s", name, last)
			}
		}
		for name, w := range map[string]*wire{"half a body": half, "half a chunk": rest} {
			if _, got := w.read(); got != "done" || time.Since(began) > time.Second {
				t.Errorf("%s: %q after %s", name, got, time.Since(began))
			}
			_ = w.lasts()
		}
		if resp, got := busy.read(); got != "done" || !resp.Close {
			t.Errorf("busy: %q, close %t", got, resp.Close)
		}
		if err := <-done; err != nil || time.Since(began) > 6*time.Second {
			t.Errorf("%v after %s", err, time.Since(began))
		}
		if w := connect(); w.lasts() != 0 {
			t.Error("a connection was taken after the end")
		}
	})
}

func TestShutdownGivesUpWithItsContext(t *testing.T) {
	inBubble(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, func(t *testing.T, s *Server, connect func() *wire) {
		connect().send(get)
		synctest.Wait()
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if err := s.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
	})
}
