package resource

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// slow is a server whose metadata take half a second.
type slow struct{ asked atomic.Int32 }

func (s *slow) RoundTrip(r *http.Request) (*http.Response, error) {
	s.asked.Add(1)
	time.Sleep(500 * time.Millisecond)
	return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(`{"resource":"https://tools.test/mcp"}`)), Request: r}, nil
}

func slowly(t *testing.T) (s *slow, r *Resource, get func(ctx context.Context) (status int, took time.Duration)) {
	s = &slow{}
	r = Relay(RelayOptions{Server: "https://tools.test/mcp", Path: "/mcp", Servers: &http.Client{Transport: s}, Issuers: &http.Client{Transport: s}})
	t.Cleanup(r.Close)
	h := r.Routes([]string{"/mcp"}, true)["/.well-known/oauth-protected-resource/mcp"]
	return s, r, func(ctx context.Context) (int, time.Duration) {
		w, began := httptest.NewRecorder(), time.Now()
		h.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, "http://localhost/.well-known/oauth-protected-resource/mcp", nil))
		return w.Code, time.Since(began)
	}
}

func challenge(r *Resource, at string) {
	r.Challenge(httptest.NewRequest(http.MethodPost, "/mcp", nil), []string{`Bearer resource_metadata="https://tools.test` + at + `"`})
}

// Challenges of one client, and its many requests, keep nobody's metadata away: all who wait share one reading, as long as
// they want to.
func TestManyWhoWaitForMetadataShareOneReading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, r, get := slowly(t)
		challenge(r, "/all")
		var all sync.WaitGroup
		for range 100 {
			all.Go(func() {
				if status, took := get(t.Context()); status != 200 || took > 500*time.Millisecond {
					t.Errorf("%d after %v", status, took)
				}
			})
			all.Go(func() { challenge(r, "/all") })
		}
		synctest.Wait()
		leaves, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if _, took := get(leaves); took != 100*time.Millisecond {
			t.Errorf("who has left waits %v", took)
		}
		all.Wait()
		if n := s.asked.Load(); n != 1 {
			t.Errorf("the server was asked %d times", n)
		}
	})
}

// A challenge has metadata read again that are not of now, and those at another place at once.
func TestMetadataAreThoseOfNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, r, get := slowly(t)
		read := func(what string, want int32) {
			t.Helper()
			if get(t.Context()); s.asked.Load() != want {
				t.Errorf("%s the server was asked %d times, not %d", what, s.asked.Load(), want)
			}
		}
		challenge(r, "/all")
		read("at first", 1)
		challenge(r, "/all")
		read("after a challenge at once", 2)
		challenge(r, "/other")
		read("after a challenge that names another place", 3)
		time.Sleep(keepFailure)
		read("without a challenge", 3)
		challenge(r, "/other")
		read("after a challenge later", 4)
		time.Sleep(keepFound)
		read("after a minute", 5)
	})
}
