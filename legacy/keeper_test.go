package legacy

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/budget"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/sessions"
	"github.com/mcpbridge/bridge/sessions/store"
)

// another returns a client of the same session at another server with the same store.
func (p *peer) another(opt Options, b *fakeBackend) (*HTTP, *peer) {
	p.t.Helper()
	h, next := serve(p.t, opt, b)
	next.session, next.version, next.header = p.session, p.version, p.header
	return h, next
}

func (p *peer) status(body string) int {
	p.t.Helper()
	status, _ := p.call(body)
	return status
}

func stored() Options { return Options{Store: store.NewMemory(1000), StoreScope: "/mcp"} }

func TestSessionsGoOnInAnotherProcess(t *testing.T) {
	opt, b := stored(), newFake()
	h, p := serve(t, opt, b)
	p.initialize("2025-11-25")
	b.last().setLevel("debug")
	h.Close()

	b = newFake()
	_, p = p.another(opt, b)
	want(t, "a call", p.status(`{"jsonrpc":"2.0","id":1,"method":"echo","params":{"a":1}}`), 200)
	want(t, "the conversation's record", b.last().level, "debug")
	want(t, "once", len(b.convs), 1)
}

func TestSessionsThatWereEndedDoNotComeBack(t *testing.T) {
	opt := stored()
	_, p := serve(t, opt, newFake())
	p.initialize("2025-11-25")
	want(t, "ended", p.do(p.request(http.MethodDelete, "")).StatusCode, 204)
	_, p = p.another(opt, newFake())
	want(t, "afterwards", p.status(`{"jsonrpc":"2.0","id":1,"method":"echo"}`), 404)
}

func TestSessionsOfAnotherEndpointAreNone(t *testing.T) {
	opt := stored()
	_, p := serve(t, opt, newFake())
	p.initialize("2025-11-25")
	opt.StoreScope = "/other"
	_, p = p.another(opt, newFake())
	want(t, "elsewhere", p.status(`{"jsonrpc":"2.0","id":1,"method":"echo"}`), 404)
}

// TestSessionsComeBackToTheirOwnerAlone_H8: whoever opened it, or was it bound to last.
func TestSessionsComeBackToTheirOwnerAlone_H8(t *testing.T) {
	opt := stored()
	h, p := serve(t, opt, newFake())
	p.header.Set("Authorization", "Bearer mine")
	p.initialize("2025-11-25")
	h.Close()
	_, p = p.another(opt, newFake())
	p.header = http.Header{"Authorization": {"Bearer yours"}}
	want(t, "GET by another", p.do(p.request(http.MethodGet, "")).StatusCode, 404)
	want(t, "DELETE by another", p.do(p.request(http.MethodDelete, "")).StatusCode, 404)
	p.header = http.Header{"Authorization": {"Bearer mine"}}
	want(t, "its owner", p.status(`{"jsonrpc":"2.0","id":1,"method":"echo"}`), 200)
}

// TestStandaloneStreamGoesOnAfterEventsOfAnotherProcess: a client that names an event
// of the earlier one listens, and event ids never name two events.
func TestStandaloneStreamGoesOnAfterEventsOfAnotherProcess(t *testing.T) {
	opt, b := stored(), newFake()
	h, p := serve(t, opt, b)
	p.initialize("2025-11-25")
	h.Close()

	b = newFake()
	_, p = p.another(opt, b)
	stream := readEvents(t, p.get("0-17"))
	b.last().push.Push("k", []byte(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`))
	event := stream.next()
	for !strings.Contains(event, "list_changed") {
		event = stream.next() // a priming one
	}
	if strings.HasPrefix(event, "0-") {
		t.Errorf("the event is %q", event)
	}
	want(t, "a call's stream of the earlier process", p.get("3-1").StatusCode, 400)
}

// TestWhatASessionChangesWhileItsStoreIsAwayIsKeptAfterwards, though nothing more happens in it here: its client was told that it holds.
func TestWhatASessionChangesWhileItsStoreIsAwayIsKeptAfterwards(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opt, b := stored(), newFake()
		inner := opt.Store
		s := &shaky{Store: inner}
		opt.Store = s
		_, p := servePipe(t, opt, b)
		p.initialize(mcp.V20251125)
		s.away.Store(true)
		b.last().setLevel("debug")
		b.last().setLevel("alert")
		time.Sleep(time.Minute)
		s.away.Store(false)
		time.Sleep(time.Second)
		session := p.session
		b = newFake()
		opt.Store = inner
		_, p = servePipe(t, opt, b)
		p.session, p.version = session, string(mcp.V20251125)
		want(t, "a call", p.status(`{"jsonrpc":"2.0","id":1,"method":"ping"}`), 200)
		want(t, "the level", b.last().level, "alert")
	})
}

// TestAUseCountsThoughTheProcessEndsRightAfterIt: of a session that had left memory before. From then on it may be idle
// as long as ever.
func TestAUseCountsThoughTheProcessEndsRightAfterIt(t *testing.T) {
	const idle = 40 * time.Minute
	synctest.Test(t, func(t *testing.T) {
		opt := stored()
		opt.Replica, opt.Unload, opt.MaxUnloaded, opt.IdleTimeout = homeID, time.Minute, 100, idle
		h, p := servePipe(t, opt, newFake())
		p.initialize(mcp.V20251125)
		for i := range 3 {
			time.Sleep(idle - 2*time.Minute)
			want(t, "a use "+fmt.Sprint(i), p.status(`{"jsonrpc":"2.0","id":1,"method":"ping"}`), 200)
			time.Sleep(time.Second)
			h.Close()
			session := p.session
			h, p = servePipe(t, opt, newFake())
			p.session, p.version = session, string(mcp.V20251125)
		}
	})
}

// failing is a store that can't be reached.
type failing struct{ store.Store }

func (failing) Load(context.Context, string) ([]store.Record, error) {
	return nil, errors.New("connection refused")
}

func (failing) Get(context.Context, store.Address) (store.Record, error) {
	return store.Record{}, errors.New("connection refused")
}

func (failing) Commit(context.Context, string, ...store.Change) error {
	return errors.New("connection refused")
}

func TestClientKeepsItsSessionWhenTheStoreCannotBeReached(t *testing.T) {
	opt := stored()
	h, p := serve(t, opt, newFake())
	p.initialize("2025-11-25")
	h.Close()
	opt.Store = failing{opt.Store}
	_, q := p.another(opt, newFake())
	for _, method := range []string{http.MethodPost, http.MethodGet, http.MethodDelete} {
		want(t, method, q.do(q.request(method, `{"jsonrpc":"2.0","id":1,"method":"echo"}`)).StatusCode, 503)
	}
	q.session = ""
	q.initialize("2025-11-25")
	want(t, "a session of its own", q.status(`{"jsonrpc":"2.0","id":1,"method":"echo"}`), 200)
}

func TestClientKeepsItsSessionWhenTheUpstreamCannotBeReached(t *testing.T) {
	opt := stored()
	h, p := serve(t, opt, newFake())
	p.initialize("2025-11-25")
	h.Close()
	b := newFake()
	var fails = errors.New("connection refused")
	b.restore = func([]byte) error { return fails }
	_, p = p.another(opt, b)
	want(t, "at first", p.status(`{"jsonrpc":"2.0","id":1,"method":"echo"}`), 503)
	fails = nil
	want(t, "then", p.status(`{"jsonrpc":"2.0","id":1,"method":"echo"}`), 200)
	_, p = p.another(opt, b)
	fails = downstream.ErrGone
	want(t, "a record for nobody", p.status(`{"jsonrpc":"2.0","id":1,"method":"echo"}`), 404)
}

// TestReplicasShareASession: each merges what the others have changed before it saves.
func TestReplicasShareASession(t *testing.T) {
	opt, b := stored(), newFake()
	_, p := serve(t, opt, b)
	p.initialize("2025-11-25")
	before := b.last()
	c := newFake()
	_, q := p.another(opt, c)
	want(t, "the other", q.status(`{"jsonrpc":"2.0","id":1,"method":"echo"}`), 200)
	before.setLevel("debug")
	c.last().push.Changed()
	want(t, "the other's level", c.last().level, "debug")
	want(t, "the first one", p.status(`{"jsonrpc":"2.0","id":1,"method":"echo"}`), 200)
	want(t, "ended", q.do(q.request(http.MethodDelete, "")).StatusCode, 204)
	before.push.Changed() // which finds that there is nothing to change
	want(t, "the first one, then", p.status(`{"jsonrpc":"2.0","id":1,"method":"echo"}`), 404)
}

// `bridge sessions end` removes the record, as a DELETE at another replica does: nobody can tell them
// apart, and calls under way are answered.
func TestCallsOfASessionThatEndsElsewhereHearOfIt_DT19(t *testing.T) {
	opt, b := stored(), newFake()
	_, p := serve(t, opt, b)
	p.initialize("2025-11-25")
	if err := opt.Store.End(t.Context(), store.Name("/mcp\n"+p.session)); err != nil {
		t.Fatal(err)
	}
	b.last().setLevel("debug")
	b.last().push.Changed()
	if cause := b.last().cause(); !errors.Is(cause, downstream.ErrElsewhere) || !downstream.Audible(cause) {
		t.Errorf("its calls end with %v", cause)
	}
}

// counting counts what is asked of a store.
type counting struct {
	store.Store
	loads, commits, touches atomic.Int32
}

func (c *counting) Load(ctx context.Context, session string) ([]store.Record, error) {
	c.loads.Add(1)
	return c.Store.Load(ctx, session)
}

func (c *counting) Commit(ctx context.Context, session string, changes ...store.Change) error {
	c.commits.Add(1)
	return c.Store.Commit(ctx, session, changes...)
}

func (c *counting) Touch(ctx context.Context, touches ...store.Touch) error {
	c.touches.Add(1)
	return c.Store.Touch(ctx, touches...)
}

func TestCallsAskTheStoreNothing(t *testing.T) {
	opt := stored()
	c := &counting{Store: opt.Store}
	opt.Store = c
	_, p := serve(t, opt, newFake())
	p.initialize("2025-11-25")
	for range 10 {
		p.post(`{"jsonrpc":"2.0","id":1,"method":"echo"}`)
	}
	want(t, "reads", c.loads.Load(), 0)
	want(t, "writes", c.commits.Load(), 1)
}

func TestSessionsInUseStayInTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opt := stored()
		c := &counting{Store: opt.Store}
		opt.Store, opt.IdleTimeout = c, time.Hour
		_, p := servePipe(t, opt, newFake())
		p.initialize("2025-11-25")
		idle := &peer{t: t, client: p.client, url: p.url, header: http.Header{}}
		idle.initialize("2025-11-25")
		for range 12 {
			time.Sleep(30 * time.Minute)
			synctest.Wait() // sessions in use are touched at this very minute, too
			want(t, "in use", p.status(`{"jsonrpc":"2.0","id":1,"method":"echo"}`), 200)
		}
		_, inUse := c.Store.Get(t.Context(), store.Address{Session: store.Name("/mcp\n" + p.session), Kind: store.Session})
		_, unused := c.Store.Get(t.Context(), store.Address{Session: store.Name("/mcp\n" + idle.session), Kind: store.Session})
		want(t, "in use", inUse, error(nil))
		want(t, "unused", unused, store.ErrNotFound)
		if c.touches.Load() < 12 || c.touches.Load() > 24 {
			t.Errorf("%d touches in six hours", c.touches.Load())
		}
	})
}

// touched tells when sessions are touched.
type touched struct {
	store.Store
	meanwhile func()
}

func (s *touched) Touch(ctx context.Context, touches ...store.Touch) error {
	s.meanwhile()
	return s.Store.Touch(ctx, touches...)
}

// TestASessionInWhichARequestLooksForItsCallStays: the store takes longer to say what it has of the call than a session that nobody uses
// stays in memory. Brought back beside itself it would take its own call for a dead process'.
func TestASessionInWhichARequestLooksForItsCallStays(t *testing.T) {
	for what, ask := range map[string]func(p *peer, last string) <-chan *http.Response{
		"a cancellation": func(p *peer, _ string) <-chan *http.Response {
			return p.async(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"call"}}`)
		},
		"the way back to a stream": func(p *peer, last string) <-chan *http.Response {
			c := make(chan *http.Response, 1)
			go func() { c <- p.get(last) }()
			return c
		},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				opt, b := stored(), newFake()
				opt.Replica = homeID
				_, p := servePipe(t, opt, b)
				p.initialize(mcp.V20251125)
				session, last := p.session, p.asksBeside(b, "call", "q", 10)
				after := &slow{Store: opt.Store}
				after.takes.Store(int64(3 * time.Second))
				opt.Store = after
				opt, b = next(opt, nil)
				opt.Unload, opt.MaxUnloaded = time.Second, 100
				_, q := servePipe(t, opt, b)
				q.session, q.version = session, string(mcp.V20251125)
				answered := ask(q, last)
				synctest.Wait() // it looks for its call
				conv := b.last()
				conv.rests.Store(true)
				_ = (<-answered).Body.Close()
				want(t, "a request", q.status(`{"jsonrpc":"2.0","id":1,"method":"echo"}`), 200)
				if b.last() != conv {
					t.Error("the session was brought back beside itself")
				}
			})
		})
	}
}

// TestASessionThatIsUsedAsItIsToRestStays: brought back beside itself it would take its own calls for a dead process'.
func TestASessionThatIsUsedAsItIsToRestStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opt, b := stored(), newFake()
		var touches atomic.Int32
		at := &touched{Store: opt.Store, meanwhile: func() { // the store takes its time, and a call begins
			touches.Add(1)
			b.last().rests.Store(false)
			time.Sleep(3 * time.Second)
		}}
		opt.Replica, opt.Unload, opt.MaxUnloaded, opt.Store = homeID, time.Second, 100, at
		_, p := servePipe(t, opt, b)
		p.initialize("2025-11-25")
		conv := b.last()
		conv.rests.Store(true)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		want(t, "a request", p.status(`{"jsonrpc":"2.0","id":1,"method":"echo"}`), 200)
		if touches.Load() == 0 || b.last() != conv {
			t.Errorf("touched %d times; the session was brought back: %v", touches.Load(), b.last() != conv)
		}
	})
}

// TestASessionThatRestsIsClosedInTheEnd: not while a call that had found it before is in it, and in time, though it never is as in its record
// again, such as when that call has had a model asked.
func TestASessionThatRestsIsClosedInTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opt, b := stored(), newFake()
		opt.Replica, opt.Unload, opt.MaxUnloaded, opt.IdleTimeout = homeID, time.Second, 100, 10*time.Minute
		opt.Memory = budget.New(1 << 20)
		h, p := servePipe(t, opt, b)
		p.initialize("2025-11-25")
		before := p.live(h)
		conv := b.last()
		conv.rests.Store(true)
		for h.Sessions() > 0 {
			time.Sleep(time.Millisecond)
		}
		closed := func() error {
			conv.mu.Lock()
			defer conv.mu.Unlock()
			return conv.closed
		}
		conv.rests.Store(false)
		time.Sleep(5 * time.Minute)
		want(t, "as it has something left", closed(), error(nil))
		before.Begin(1, false)
		time.Sleep(time.Hour)
		want(t, "with a call", closed(), error(nil))
		before.Done(1, false)
		time.Sleep(9 * time.Minute)
		want(t, "soon after that", closed(), error(nil))
		time.Sleep(2 * time.Minute)
		want(t, "in the end", closed(), error(sessions.Rested))
		want(t, "bytes that are charged", opt.Memory.Used(), 0)
	})
}

// TestASessionThatRestsIsClosedOnceNothingIsLeft: a call that had found it before has ended.
func TestASessionThatRestsIsClosedOnceNothingIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opt, b := stored(), newFake()
		opt.Replica, opt.Unload, opt.MaxUnloaded, opt.IdleTimeout = homeID, time.Second, 100, 10*time.Minute
		opt.Memory = budget.New(1 << 20)
		h, p := servePipe(t, opt, b)
		p.initialize("2025-11-25")
		b.last().rests.Store(true)
		for h.Sessions() > 0 {
			time.Sleep(time.Millisecond)
		}
		time.Sleep(time.Second)
		want(t, "bytes that are charged", opt.Memory.Used(), 0)
	})
}
