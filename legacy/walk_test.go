package legacy

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/sessions/store"
)

// slowCalls is a store that takes its time for each call.
type slowCalls struct {
	store.Store
	takes *atomic.Int64
}

func (s slowCalls) Get(ctx context.Context, at store.Address) (store.Record, error) {
	if at.Kind == store.Flow {
		time.Sleep(time.Duration(s.takes.Load()))
	}
	return s.Store.Get(ctx, at)
}

func (s slowCalls) Size(ctx context.Context, at store.Address) (int, error) {
	r, err := s.Store.Get(ctx, at)
	return len(r.Value), err
}

// TestASessionThatComesBackAsItExpiresStays, or does not come back: it is not removed from the store under its client.
func TestASessionThatComesBackAsItExpiresStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opt, b := stored(), newFake()
		kept := opt.Store
		var takes atomic.Int64
		opt.Replica, opt.IdleTimeout = homeID, 10*time.Minute
		opt.Store = alone{kept, false}
		_, p := servePipe(t, opt, b)
		p.initialize(mcp.V20250618)
		p.asked(b)
		opt.Replica, opt.Store = neighbourID, alone{slowCalls{kept, &takes}, false}
		b = newFake()
		_, q := servePipe(t, opt, b)
		q.session, q.version = p.session, p.version
		want(t, "a request", q.status(`{"jsonrpc":"2.0","id":1,"method":"echo"}`), 200)
		takes.Store(int64(500 * time.Millisecond))
		time.Sleep(10*time.Minute + 100*time.Millisecond) // idle; the janitor may be yet to come
		status := q.status(`{"jsonrpc":"2.0","id":1,"method":"echo"}`)
		synctest.Wait()
		takes.Store(0)
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

// askedBeside begins a call that asks, with a record of this size.
func askedBeside(p *peer, b *fakeBackend, call, question string, size int) {
	p.t.Helper()
	answer := p.async(`{"jsonrpc":"2.0","id":"` + call + `","method":"hold"}`)
	k := <-b.held
	q := downstream.Question(jsonrpc.ID(`"`+question+`"`), "elicitation/create", []byte(`{}`))
	want(p.t, "a question", k.Checkpointer().Save(downstream.Checkpoint{
		Request: k.req.ID, N: 1, Record: []byte(`{"x":"` + strings.Repeat("x", size) + `"}`), Open: []jsonrpc.ID{q.ID}, Message: &q, TTL: time.Hour,
	}), nil)
	<-answer
}

// TestWhatIsDueDoesNotWaitForTheWalk: one session may have many calls that nobody has noted.
func TestWhatIsDueDoesNotWaitForTheWalk(t *testing.T) {
	const many = 60
	synctest.Test(t, func(t *testing.T) {
		opt, b := stored(), newFake()
		kept := opt.Store
		var takes atomic.Int64
		opt.Replica, opt.Store = homeID, alone{kept, false}
		_, p := servePipe(t, opt, b)
		p.initialize(mcp.V20250618)
		for i := range many {
			askedBeside(p, b, fmt.Sprint("c", i), fmt.Sprint("q", i), 500)
		}
		large := store.Name("/mcp\n" + p.session)
		for { // one that the walk comes to before that
			q := *p
			q.session = ""
			q.initialize(mcp.V20250618)
			if store.Name("/mcp\n"+q.session) < large {
				askedBeside(&q, b, "small", "q", 10)
				break
			}
		}
		began := time.Now()
		takes.Store(int64(2500 * time.Millisecond))
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
		opt.Replica, opt.Store = neighbourID, alone{slowCalls{kept, &takes}, false}
		_, _ = servePipe(t, opt, b)
		time.Sleep(20 * time.Minute)
		if early.Load() != 1 {
			t.Errorf("a call that was due after 30 s has not come back after 20 minutes")
		}
	})
}
