package streamable

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/rawjson"
	"github.com/mcpbridge/bridge/upstream"
)

// newEcho answers a call with its arguments, sometimes as a stream, and counts
// its connections.
func newEcho(t testing.TB, stream func() bool) (url string, conns *atomic.Int32) {
	conns = &atomic.Int32{}
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		msg, _ := jsonrpc.Parse(body)
		out := jsonrpc.AppendResult(nil, msg.ID, rawjson.Get(msg.Params, "arguments"))
		if !stream() {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write(out)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = fmt.Fprintf(w, "data: %s\n\n", progress)
		_ = http.NewResponseController(w).Flush()
		_, _ = fmt.Fprintf(w, "data: %s\n\n", out)
		_ = http.NewResponseController(w).Flush()
	}))
	srv.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			conns.Add(1)
		}
	}
	srv.Start()
	t.Cleanup(srv.Close)
	return srv.URL, conns
}

func TestConnectionsAreReusedAfterStreamsToo(t *testing.T) {
	for _, streaming := range []bool{false, true} {
		url, conns := newEcho(t, func() bool { return streaming })
		c := newClient(t, url, Options{})
		for range 200 {
			mustDo(t, c, call(mcp.MethodToolsCall, `"name":"t","arguments":{}`))
		}
		if n := conns.Load(); n > 10 {
			t.Errorf("streaming %v: %d connections for 200 calls in a row", streaming, n)
		}
	}
}

// Cancelled calls leave nothing behind that another call could read, and released
// memory is nobody else's.
func TestCancelledCallsNeverSpoilOthers(t *testing.T) {
	eachTransport(t, func(t *testing.T, opt Options) {
		url, _ := newEcho(t, func() bool { return rand.N(2) == 0 })
		c := newClient(t, url, opt)
		var wg sync.WaitGroup
		for g := range 16 {
			wg.Go(func() {
				for i := range 40 {
					want := fmt.Sprintf(`{"g":%d,"i":%d,"pad":%q}`, g, i, strings.Repeat("x", rand.N(20000)))
					ctx, cancel := context.WithCancel(t.Context())
					if rand.N(3) == 0 {
						go cancel()
					}
					ans, err := c.Do(ctx, call(mcp.MethodToolsCall, `"name":"t","arguments":`+want), nil)
					if f, ok := err.(*upstream.Failure); err != nil && (!ok || f.Cause != upstream.Canceled) {
						t.Errorf("%v", err)
					}
					if err == nil && string(ans.Result) != want {
						t.Errorf("got %.60s, want %.60s", ans.Result, want)
					}
					if rand.N(4) > 0 {
						ans.Release()
					}
					cancel()
				}
			})
		}
		wg.Wait()
	})
}
