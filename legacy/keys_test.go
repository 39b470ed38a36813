package legacy

import (
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/sessions/store"
)

// underKeys is a store as a process with these keys has it, of which the first seals.
func underKeys(t *testing.T, inner store.Store, numbers ...byte) store.Store {
	t.Helper()
	keys := make([]store.Key, len(numbers))
	for i, n := range numbers {
		keys[i][0] = n
	}
	s, err := store.NewSealed(inner, keys)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestSessionsInUseOutliveTheKeyTheyBeganUnder, which is taken away when those that are not have expired: whether
// they make calls, listen, or leave memory between their calls.
func TestSessionsInUseOutliveTheKeyTheyBeganUnder(t *testing.T) {
	const idle = 40 * time.Minute
	for name, how := range map[string]struct {
		listens bool
		unload  time.Duration
	}{"calls": {}, "listens": {listens: true}, "leaves memory": {unload: time.Minute}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				inner := store.NewMemory(1000)
				opt := Options{StoreScope: "/mcp", IdleTimeout: idle, Replica: homeID, MaxUnloaded: 100, Unload: how.unload}
				opt.Store = underKeys(t, inner, 1)
				h, p := servePipe(t, opt, newFake())
				p.initialize(mcp.V20251125)
				session := p.session
				h.Close()

				opt.Store = underKeys(t, inner, 2, 1)
				h, p = servePipe(t, opt, newFake())
				p.session, p.version = session, string(mcp.V20251125)
				if how.listens {
					resp := p.do(p.request(http.MethodGet, ""))
					want(t, "GET", resp.StatusCode, 200)
					go func() { _, _ = io.Copy(io.Discard, resp.Body) }()
					time.Sleep(3 * idle)
					_ = resp.Body.Close()
				}
				for range 8 {
					want(t, "in use", p.status(`{"jsonrpc":"2.0","id":1,"method":"echo"}`), 200)
					time.Sleep(idle / 5)
				}
				h.Close()

				opt.Store = underKeys(t, inner, 2)
				_, p = servePipe(t, opt, newFake())
				p.session, p.version = session, string(mcp.V20251125)
				want(t, "without the old key", p.status(`{"jsonrpc":"2.0","id":1,"method":"echo"}`), 200)
			})
		})
	}
}
