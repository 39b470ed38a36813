package mcpbridge_test

import (
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"strings"
	"testing"

	mcpbridge "github.com/mcpbridge/bridge"
)

// TestWhatAnIdleSessionTakes: a session that has opened and does nothing is about a kilobyte of live
// objects, and keeps nothing of the requests that opened it. Their heads, of which each header is a
// part, have 16 KiB here.
func TestWhatAnIdleSessionTakes(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates, too")
	}
	for name, tt := range map[string]struct {
		bearer func(n int) string
		most   int
	}{
		"without credentials": {func(int) string { return "" }, 1200},
		"each with a token":   {func(n int) string { return "Bearer token-" + strconv.Itoa(n) }, 3000},
	} {
		t.Run(name, func(t *testing.T) {
			server := modernServer()
			defer server.Close()
			b, err := mcpbridge.New(mcpbridge.Options{Upstream: server.URL})
			if err != nil {
				t.Fatal(err)
			}
			defer b.Close()
			open := func(n int) {
				_, opened := postHead(b, initialize, "", tt.bearer(n))
				status, _ := postHead(b, initialized, opened.Get("Mcp-Session-Id"), tt.bearer(n))
				if status != http.StatusAccepted {
					t.Fatalf("session %d: status %d", n, status)
				}
			}
			for n := range 100 { // what all share
				open(n)
			}
			const sessions = 2000
			before := liveHeap()
			for n := range sessions {
				open(100 + n)
			}
			each := (liveHeap() - before) / sessions
			t.Logf("%d bytes", each)
			if each > tt.most {
				t.Errorf("a session takes %d bytes, more than %d", each, tt.most)
			}
		})
	}
}

const initialized = `{"jsonrpc":"2.0","method":"notifications/initialized"}`

// postHead posts a message whose headers are parts of one large text, as those of package h1 are.
func postHead(h http.Handler, message, session, bearer string) (int, http.Header) {
	head := session + bearer + strings.Repeat("x", 16<<10)
	r := httptest.NewRequest(http.MethodPost, "http://127.0.0.1/mcp", strings.NewReader(message))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	if session != "" {
		r.Header.Set("Mcp-Session-Id", head[:len(session)])
	}
	if bearer != "" {
		r.Header.Set("Authorization", head[len(session):len(session)+len(bearer)])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Code, w.Header()
}

func liveHeap() int {
	var m runtime.MemStats
	for range 2 { // the second finds what finalizers have let go of
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}
