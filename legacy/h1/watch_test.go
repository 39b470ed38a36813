package h1

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// The client's departure is noticed by whoever asks, also when the request had a
// body, when more was sent ahead, and after other requests.
func TestContextEndsWhenTheClientLeaves(t *testing.T) {
	begun, left := make(chan struct{}), make(chan error)
	_, addr := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Wait") == "" {
			echo(w, r)
			return
		}
		_, _ = io.Copy(io.Discard, r.Body)
		begun <- struct{}{}
		<-r.Context().Done()
		left <- r.Context().Err()
	})
	wait := strings.Replace(get, "\r\n\r\n", "\r\nWait: 1\r\n\r\n", 1)
	long := strings.Replace(post(strings.Repeat("l", 20000)), "\r\n", "\r\nWait: 1\r\n", 1)
	for name, request := range map[string]string{
		"at once": wait, "after another": get + get + wait, "with a body": long, "after a body": post("{}") + long,
		"with more behind": wait + get,
	} {
		t.Run(name, func(t *testing.T) {
			w := dial(t, addr)
			w.send(request)
			<-begun
			_ = w.Close()
			if err := <-left; err != context.Canceled {
				t.Fatal(err)
			}
		})
	}
}

// The watch of one request goes on into the next, and nothing of it is lost.
func TestWatchedConnectionServesFurtherRequests(t *testing.T) {
	_, addr := serve(t, func(w http.ResponseWriter, r *http.Request) {
		done := r.Context().Done()
		child, cancel := context.WithTimeout(r.Context(), time.Hour)
		defer cancel()
		select {
		case <-done:
			t.Error("the context ended")
		case <-child.Done():
			t.Error("its child ended")
		default:
		}
		echo(w, r)
	})
	w := dial(t, addr)
	for i := range 200 {
		body := strings.Repeat("w", i*37)
		if i%3 == 0 {
			w.send(post(body) + post(body)) // one ahead
			if got := w.body(); got != body {
				t.Fatalf("request %d: %.20q", i, got)
			}
		} else {
			w.send(post(body))
		}
		if got := w.body(); got != body {
			t.Fatalf("request %d: %.20q", i, got)
		}
	}
}

func TestContextEndsWithTheHandler(t *testing.T) {
	contexts := make(chan context.Context, 2)
	_, addr := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			_ = r.Context().Done()
		}
		contexts <- r.Context()
	})
	w := dial(t, addr)
	for _, request := range []string{get, post("")} {
		w.send(request)
		w.read()
		ctx := <-contexts
		<-ctx.Done()
		if ctx.Err() != context.Canceled || context.Cause(ctx) != context.Canceled {
			t.Error(ctx.Err())
		}
		if _, ok := ctx.Deadline(); ok {
			t.Error("there is a deadline")
		}
	}
}

func TestWritesFailAndTheContextEndsAfterTheClientLeft(t *testing.T) {
	done := make(chan error)
	_, addr := serve(t, func(w http.ResponseWriter, r *http.Request) {
		piece := make([]byte, 64<<10)
		var err error
		for err == nil {
			if _, err = w.Write(piece); err == nil {
				err = http.NewResponseController(w).Flush()
			}
		}
		<-r.Context().Done()
		_, again := w.Write(piece)
		if again == nil {
			t.Error("another write worked")
		}
		done <- err
	})
	w := dial(t, addr)
	w.send(get)
	_, _ = w.in.ReadByte()
	_ = w.Close()
	if err := <-done; err == nil {
		t.Error("no error")
	}
}
