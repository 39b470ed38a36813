package legacy

import (
	"bytes"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/sessions/store"
)

// TestASessionThatHasComeBackIsNotRemoved, though it had expired, and its removal has its turn after that of others: the store is slow.
func TestASessionThatHasComeBackIsNotRemoved(t *testing.T) {
	came := func(t *testing.T, q *peer) {
		t.Helper()
		want(t, "it comes back", q.status(`{"jsonrpc":"2.0","id":1,"method":"echo"}`), 200)
	}
	for name, back := range map[string]func(t *testing.T, h *HTTP, b *fakeBackend, q *peer, opt Options){
		"and is used": func(t *testing.T, _ *HTTP, _ *fakeBackend, q *peer, _ Options) { came(t, q) },
		"and rests": func(t *testing.T, h *HTTP, b *fakeBackend, q *peer, _ Options) {
			came(t, q)
			b.last().rests.Store(true)
			time.Sleep(2 * time.Second)
			want(t, "it is here", h.Holds(q.session), false)
		},
		"where another endpoint is": func(t *testing.T, h *HTTP, b *fakeBackend, q *peer, opt Options) {
			busy := *q
			busy.session = ""
			busy.initialize(mcp.V20250618)
			answer := busy.async(hold)
			k := <-b.held
			over := retire(t, h)
			t.Cleanup(func() { k.finish(`{}`); <-answer; <-over })
			_, there := servePipe(t, opt, newFake())
			q.client = there.client
			came(t, q)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				opt, b := stored(), newFake()
				kept := opt.Store
				s := &slow{Store: kept}
				opt.Replica, opt.IdleTimeout = homeID, 10*time.Minute
				dies := &mortal{Store: kept}
				opt.Store = alone{dies, false}
				_, p := servePipe(t, opt, b)
				var open []string
				for range 10 {
					p.session = ""
					p.initialize(mcp.V20250618)
					open = append(open, p.session)
				}
				dies.dead.Store(true)
				opt.Replica, opt.Store, opt.Unload, opt.MaxUnloaded = neighbourID, alone{s, false}, time.Second, 100
				b = newFake()
				h, q := servePipe(t, opt, b)
				q.version = p.version
				for _, q.session = range open {
					want(t, "a request", q.status(`{"jsonrpc":"2.0","id":1,"method":"echo"}`), 200)
				}
				time.Sleep(5 * time.Second)
				came(t, q) // the last one expires after the others
				time.Sleep(9 * time.Minute)
				s.ends.Store(int64(2 * time.Second)) // each removal
				for h.Sessions() > 0 {
					time.Sleep(10 * time.Millisecond)
				}
				synctest.Wait()
				back(t, h, b, q, opt)
				time.Sleep(time.Minute)
				_, err := kept.Get(t.Context(), store.Address{Session: store.Name("/mcp\n" + q.session), Kind: store.Session})
				want(t, "what the store has of it", err, error(nil))
			})
		})
	}
}

// writes is where the log goes.
type writes func(line []byte)

func (w writes) Write(line []byte) (int, error) {
	w(line)
	return len(line), nil
}

// TestASessionThatComesBackBeforeItsEndIsSeenStays: who has found it expired has yet to say so.
func TestASessionThatComesBackBeforeItsEndIsSeenStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opt := stored()
		ends := make(chan bool, 1)
		opt.Replica, opt.IdleTimeout, opt.Store = homeID, 10*time.Minute, alone{opt.Store, false}
		opt.Logger = zerolog.New(writes(func(line []byte) {
			if bytes.Contains(line, []byte("session ended")) {
				ends <- true
				time.Sleep(time.Second)
			}
		}))
		_, p := servePipe(t, opt, newFake())
		p.initialize(mcp.V20250618)
		<-ends
		want(t, "a request", p.status(`{"jsonrpc":"2.0","id":1,"method":"echo"}`), 200)
		time.Sleep(time.Minute)
		_, err := opt.Store.Get(t.Context(), store.Address{Session: store.Name("/mcp\n" + p.session), Kind: store.Session})
		want(t, "what the store has of it", err, error(nil))
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
