package fleet

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/mcpbridge/bridge/internal/mount"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/upstream"
)

// slow is a server whose calls take this long.
type slow struct {
	server
	takes time.Duration
}

func (s *slow) Do(ctx context.Context, call *upstream.Call, notify func(jsonrpc.Message)) (*upstream.Answer, error) {
	if call.Method != mcp.MethodToolsCall {
		return s.server.Do(ctx, call, notify)
	}
	select {
	case <-time.After(s.takes):
		return &upstream.Answer{Result: []byte(`{"resultType":"complete","content":[]}`)}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// slowly says how to mount such a server. settings are what a reload may change.
func slowly(path, settings string, takes time.Duration) Spec {
	return Spec{Path: path, Identity: settings, Log: zerolog.Nop(), Open: func() (*mount.Mount, error) {
		return mount.New(mount.Options{Caller: &slow{takes: takes}})
	}}
}

// reload gives the fleet these mounts.
func reload(t *testing.T, f *Fleet, handover, drain time.Duration, specs ...Spec) {
	t.Helper()
	change, err := f.Prepare(specs)
	if err != nil {
		t.Fatal(err)
	}
	change.Commit(handover, drain)
}

func post(f *Fleet, session, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, "http://localhost/mcp", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	if session != "" {
		r.Header.Set(mcp.HeaderSessionID, session)
	}
	w := httptest.NewRecorder()
	f.ServeHTTP(w, r)
	return w
}

// call begins a call in a session of its own.
func call(t *testing.T, f *Fleet) (answer <-chan string) {
	t.Helper()
	opened := post(f, "", `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`)
	said := make(chan string, 1)
	go func() {
		said <- post(f, opened.Header().Get(mcp.HeaderSessionID), `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","arguments":{}}}`).Body.String()
	}()
	synctest.Wait()
	return said
}

func TestAStopLeavesRetiredMountsTheirDrain(t *testing.T) {
	const handover = time.Second
	for name, tc := range map[string]struct {
		takes, drain, stop time.Duration
		after              []Spec
		stops              time.Duration // when, after the reload
		finishes, late     bool
		over               time.Duration // when all has ended, after the stop
	}{
		"the call ends in time":           {10 * time.Second, 30 * time.Second, 30 * time.Second, []Spec{slowly("/mcp", "new", 0)}, 2 * time.Second, true, false, 8 * time.Second},
		"the mount was removed":           {10 * time.Second, 30 * time.Second, 30 * time.Second, []Spec{slowly("/other", "new", 0)}, 2 * time.Second, true, false, 8 * time.Second},
		"the handover was not over":       {10 * time.Second, 30 * time.Second, 30 * time.Second, []Spec{slowly("/mcp", "new", 0)}, handover / 2, true, false, 9500 * time.Millisecond},
		"its own drain is over first":     {time.Hour, 5 * time.Second, 30 * time.Second, []Spec{slowly("/mcp", "new", 0)}, 2 * time.Second, false, false, 4 * time.Second},
		"the drain of the stop ends both": {time.Hour, 30 * time.Second, 5 * time.Second, []Spec{slowly("/mcp", "new", 0)}, 2 * time.Second, false, true, 5 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := open(t, nil, slowly("/mcp", "old", tc.takes))
				answer := call(t, f)
				reload(t, f, handover, tc.drain, tc.after...)
				time.Sleep(tc.stops)
				ctx, cancel := context.WithTimeout(t.Context(), tc.stop)
				defer cancel()
				began := time.Now()
				err := f.Shutdown(ctx)
				if late := errors.Is(err, context.DeadlineExceeded); late != tc.late || !late && err != nil {
					t.Errorf("the stop returns %v", err)
				}
				if took := time.Since(began); took < tc.over || took > tc.over+time.Second {
					t.Errorf("it took %v and not %v", took, tc.over)
				}
				if said := <-answer; strings.Contains(said, `"result"`) != tc.finishes {
					t.Errorf("the call gets %s", said)
				}
			})
		})
	}
}
