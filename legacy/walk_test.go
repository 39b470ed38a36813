package legacy

import (
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/sessions/store"
)

// TestASessionThatComesBackAsItExpiresStays, or does not come back: it is not removed from the store under its client.
func TestASessionThatComesBackAsItExpiresStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opt, b := stored(), newFake()
		kept := opt.Store
		after := &slow{Store: kept}
		opt.Replica, opt.IdleTimeout = homeID, 10*time.Minute
		opt.Store = alone{kept, false}
		_, p := servePipe(t, opt, b)
		p.initialize(mcp.V20250618)
		p.asked(b)
		opt.Replica, opt.Store = neighbourID, alone{after, false}
		b = newFake()
		_, q := servePipe(t, opt, b)
		q.session, q.version = p.session, p.version
		want(t, "a request", q.status(`{"jsonrpc":"2.0","id":1,"method":"echo"}`), 200)
		after.takes.Store(int64(500 * time.Millisecond))
		time.Sleep(10*time.Minute + 100*time.Millisecond) // idle; the janitor may be yet to come
		status := q.status(`{"jsonrpc":"2.0","id":1,"method":"echo"}`)
		synctest.Wait()
		after.takes.Store(0)
		if status == 404 { // it came too late
			return
		}
		want(t, "the request that finds it expired", status, 200)
		k := q.asked(b) // a call of the session, which is kept
		time.Sleep(30 * time.Second)
		list, err := kept.Load(t.Context(), store.Name("/mcp\n"+p.session))
		hasSession := false
		for _, r := range list {
			hasSession = hasSession || r.Kind == store.Session
		}
		if !hasSession {
			t.Errorf("the session was served, has a call that waits, and is not in the store: %d records, %v", len(list), err)
		}
		if err := k.Checkpointer().Save(downstream.Checkpoint{Request: k.req.ID, N: 2, Record: []byte(`{}`), TTL: time.Hour}); err != nil {
			t.Errorf("an answer of the live call is not kept: %v", err)
		}
	})
}

// TestWhatIsDueDoesNotWaitForTheWalk: one session may have many calls that nobody has noted.
func TestWhatIsDueDoesNotWaitForTheWalk(t *testing.T) {
	const many = 60
	synctest.Test(t, func(t *testing.T) {
		opt, b := stored(), newFake()
		kept := opt.Store
		after := &slow{Store: kept}
		opt.Replica, opt.Store = homeID, alone{kept, false}
		_, p := servePipe(t, opt, b)
		p.initialize(mcp.V20250618)
		for i := range many {
			p.asksBeside(b, fmt.Sprint("c", i), fmt.Sprint("q", i), 500)
		}
		large := store.Name("/mcp\n" + p.session)
		for { // one that the walk comes to before that
			q := *p
			q.session = ""
			q.initialize(mcp.V20250618)
			if store.Name("/mcp\n"+q.session) < large {
				q.asksBeside(b, "small", "q", 10)
				break
			}
		}
		began := time.Now()
		after.takes.Store(int64(2500 * time.Millisecond))
		var early atomic.Int64
		b = newFake()
		b.due = func(flow []byte) (time.Time, error) {
			if len(flow) < 100 {
				return began.Add(30 * time.Second), nil
			}
			return began.Add(40 * time.Minute), nil
		}
		b.resumes = func(_ downstream.Caller, flow []byte, out downstream.Reply) error {
			if len(flow) < 100 {
				early.Add(1)
			}
			out.Finish(downstream.Result(`"call"`, nil))
			return nil
		}
		opt.Replica, opt.Store = neighbourID, alone{after, false}
		_, _ = servePipe(t, opt, b)
		time.Sleep(20 * time.Minute)
		if early.Load() != 1 {
			t.Errorf("a call that was due after 30 s has not come back after 20 minutes")
		}
	})
}
