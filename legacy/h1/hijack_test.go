package h1

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"
)

// takeOver hijacks and answers each line with its length.
func takeOver(t testing.TB) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			askDone(r) // with a watcher that has to be stopped
		}
		nc, buf, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		if _, err := w.Write(nil); err != http.ErrHijacked {
			t.Error(err)
		}
		go func() {
			defer nc.Close()
			for {
				line, err := buf.ReadString('\n')
				if err != nil {
					return
				}
				_, _ = fmt.Fprintf(buf, "%d\n", len(line))
				_ = buf.Flush()
			}
		}()
	}
}

// askDone asks for the end of the request's context, and lets whoever watches for it
// run.
func askDone(r *http.Request) {
	_ = r.Context().Done()
	for range 100 {
		runtime.Gosched()
	}
}

func TestHijackedConnectionHasEverythingThatWasSentAhead(t *testing.T) {
	s, addr := serve(t, takeOver(t))
	for _, request := range []string{get, post("")} {
		for _, early := range []string{"", "ab\n", "ab\ncd"} {
			w := dial(t, addr)
			w.send(request + early)
			rest := "abc\n"
			if strings.HasSuffix(early, "d") {
				rest = "\n"
			}
			if early != "" {
				w.line("3\n")
			}
			w.send(rest)
			w.line(map[bool]string{true: "3\n", false: "4\n"}[rest == "\n"])
		}
	}
	// The goroutine that served a connection may still be leaving when the client
	// has its line.
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := s.Shutdown(ctx); err != nil {
		t.Errorf("connections are still the server's: %v", err)
	}
}

func (w *wire) line(want string) {
	w.t.Helper()
	if got, err := w.in.ReadString('\n'); got != want {
		w.t.Fatalf("%q, %v", got, err)
	}
}

func TestHijackSendsWhatWasWritten(t *testing.T) {
	_, addr := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "abc")
		nc, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = io.WriteString(nc, "0\r\n\r\n")
		_ = nc.Close()
	})
	w := dial(t, addr)
	w.send(get)
	if got := w.body(); got != "abc" || !w.closed() {
		t.Fatalf("%q", got)
	}
}

// A handler's own goroutine may ask for the context's end when the connection is
// no longer the server's: nobody may read from it then.
func TestAskingAfterTheHijackReadsNothing(t *testing.T) {
	_, addr := serve(t, func(w http.ResponseWriter, r *http.Request) {
		nc, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		done := r.Context().Done()
		b := make([]byte, 3)
		_, _ = io.WriteString(nc, "go\n")
		_, _ = io.ReadFull(nc, b)
		select {
		case <-done:
			t.Error("the context ended")
		default:
		}
		_, _ = nc.Write(append(b, '\n'))
		_ = nc.Close()
	})
	w := dial(t, addr)
	w.send(get)
	w.line("go\n")
	w.send("abc")
	w.line("abc\n")
}
