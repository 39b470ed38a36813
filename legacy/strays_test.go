package legacy

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/legacy/session"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/sessions/store"
)

// asked makes a call at a replica whose question is kept.
func (p *peer) asked(b *fakeBackend) *call {
	p.t.Helper()
	answer := p.async(`{"jsonrpc":"2.0","id":"call","method":"hold"}`)
	k := <-b.held
	want(p.t, "a question", k.ask(time.Hour, nil), nil)
	<-answer
	return k
}

// TestTheEndOfASessionIsThatOfItsCallsElsewhere_G13: their process died, and nobody has come for them. What is here
// ends with the conversation.
func TestTheEndOfASessionIsThatOfItsCallsElsewhere_G13(t *testing.T) {
	for name, shared := range map[string]bool{"replicas": true, "one process after the other": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				opt, b := stored(), newFake()
				opt.Replica = homeID
				opt.Store = alone{opt.Store, shared}
				_, p := servePipe(t, opt, b)
				p.initialize(mcp.V20250618)
				p.asked(b)
				opt.Replica = neighbourID
				b = newFake()
				_, q := servePipe(t, opt, b)
				q.session, q.version = p.session, p.version
				want(t, "a request", q.status(`{"jsonrpc":"2.0","id":1,"method":"echo"}`), 200)
				q.asked(b)
				want(t, "DELETE", q.do(q.request(http.MethodDelete, "")).StatusCode, 204)
				want(t, "given up by its record", b.last().givenUp, []string{`{}`})
			})
		})
	}
}

// TestTheEndOfASessionIsThatOfItsCallsInTheStoreAlone_G13: it has never left memory itself.
func TestTheEndOfASessionIsThatOfItsCallsInTheStoreAlone_G13(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opt, b := stored(), newFake()
		opt.Replica, opt.Store = homeID, alone{opt.Store, false}
		_, p := servePipe(t, opt, b)
		p.initialize(mcp.V20250618)
		p.asked(b).leaves(time.Hour)
		want(t, "DELETE", p.delete().StatusCode, 204)
		want(t, "given up by its record", b.last().givenUp, []string{`{}`})
	})
}

// reads counts how often calls are read in a store that several share.
type reads struct {
	store.Store
	calls atomic.Int32
}

func (r *reads) Get(ctx context.Context, at store.Address) (store.Record, error) {
	if at.Kind == store.Flow {
		r.calls.Add(1)
	}
	return r.Store.Get(ctx, at)
}

// TestTheEndOfASessionReadsNoCallsThatEndedInIt: their last words are in the store longer than their streams are here. What has
// left is read.
func TestTheEndOfASessionReadsNoCallsThatEndedInIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opt, b := stored(), newFake()
		r := &reads{Store: alone{opt.Store, true}}
		opt.Replica, opt.Store, opt.Peers, opt.MaxStreams = homeID, r, dead{}, 2
		opt.Unload, opt.MaxUnloaded = time.Hour, 100
		_, p := servePipe(t, opt, b)
		p.initialize(mcp.V20250618)
		p.asked(b).leaves(time.Hour)
		for range 30 {
			p.asked(b).finish(`{}`)
			synctest.Wait()
		}
		list, err := opt.Store.Load(t.Context(), store.Name("/mcp\n"+p.session))
		if err != nil || len(list) < 20 {
			t.Errorf("the store has %d records: %v", len(list), err)
		}
		r.calls.Store(0)
		want(t, "DELETE", p.delete().StatusCode, 204)
		want(t, "given up", len(b.last().givenUp), 1)
		want(t, "reads", r.calls.Load(), 2) // how large it is, and what it says
	})
}

// leaves has a call be in the store alone.
func (c *call) leaves(due time.Duration) {
	c.Reply.(session.Waiting).Shelve(time.Now().Add(due))
	c.Checkpointer().Leave()
}

// TestASessionLastsAsLongAsItsCallsInTheStoreAlone_A33, though nobody asks for anything, and however long sessions stay in memory.
func TestASessionLastsAsLongAsItsCallsInTheStoreAlone_A33(t *testing.T) {
	for name, is := range map[string]struct {
		unload time.Duration
		shared bool
		leaves bool // else its process has died
	}{
		"one process after the other": {0, false, false},
		"replicas":                    {0, true, false},
		"sessions stay longer than they may be idle":         {time.Hour, false, false},
		"it has left memory in a session that stayed longer": {time.Hour, false, true},
		"sessions stay not that long":                        {time.Minute, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				opt, b := stored(), newFake()
				opt.Replica, opt.IdleTimeout, opt.Peers = homeID, 10*time.Minute, dead{}
				opt.Unload, opt.MaxUnloaded = is.unload, 100
				dies := &mortal{Store: opt.Store}
				opt.Store = alone{dies, is.shared}
				h, q := servePipe(t, opt, b)
				q.initialize(mcp.V20250618)
				k := q.asked(b)
				if is.leaves {
					k.leaves(time.Hour)
				} else {
					opt.Replica, opt.Store = neighbourID, alone{dies.Store, is.shared}
					dies.dead.Store(true)
					p := q
					b = newFake()
					h, q = servePipe(t, opt, b)
					q.session, q.version = p.session, p.version
					want(t, "a request", q.status(plainEcho), 200)
				}
				conv := b.last()
				conv.rests.Store(true)
				for range 2 {
					time.Sleep(25 * time.Minute)
					synctest.Wait() // the janitor ticks at this very minute, too
					want(t, "in memory", h.sessions.Len(), 0)
					want(t, "given up", len(conv.givenUp), 0)
				}
				want(t, "a request", q.status(plainEcho), 200)
				if own, calls := q.lasts(dies.Store); own < calls || calls == 0 {
					t.Errorf("the session lasts for %v, and its calls for %v", own, calls)
				}
				time.Sleep(2 * time.Hour)
				synctest.Wait()
				want(t, "when its calls are over", q.status(plainEcho), 404)
			})
		})
	}
}

// leftMany are sessions with calls whose process is gone, and which are in another one now. Their store has yet to become slow.
func leftMany(t *testing.T, sessions, calls int) (q *peer, b *fakeBackend, s *slow) {
	t.Helper()
	opt, b := stored(), newFake()
	s = &slow{Store: store.NewMemory(2 * sessions * (calls + 1))}
	opt.Replica, opt.IdleTimeout = homeID, 10*time.Minute
	dies := &mortal{Store: s.Store}
	opt.Store = alone{dies, false}
	_, p := servePipe(t, opt, b)
	var open []string
	for range sessions {
		p.session = ""
		p.initialize(mcp.V20250618)
		for range calls {
			p.asked(b)
		}
		open = append(open, p.session)
	}
	dies.dead.Store(true)
	opt.Replica, opt.Store = neighbourID, alone{s, false}
	b = newFake()
	_, q = servePipe(t, opt, b)
	q.version = p.version
	for _, q.session = range open {
		want(t, "a request", q.status(`{"jsonrpc":"2.0","id":1,"method":"echo"}`), 200)
	}
	time.Sleep(time.Minute) // what was there at the start has been looked at
	return q, b, s
}

// TestTheEndOfASessionDoesNotWaitForEachOfItsCalls where the store hangs, or is slow: of some of them the server is told.
func TestTheEndOfASessionDoesNotWaitForEachOfItsCalls(t *testing.T) {
	for takes, least := range map[time.Duration]int{time.Millisecond: 30, time.Second: 5, time.Hour: 0} {
		t.Run(takes.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q, b, s := leftMany(t, 1, 30)
				s.takes.Store(int64(takes))
				began := time.Now()
				want(t, "DELETE", q.do(q.request(http.MethodDelete, "")).StatusCode, 204)
				if took := time.Since(began); took > 15*time.Second {
					t.Errorf("it takes %v", took)
				}
				if told := len(b.last().givenUp); told < least {
					t.Errorf("the server is told of %d calls", told)
				}
			})
		})
	}
}

// TestNobodyWaitsForTheRemovalOfSessionsThatExpire, such as whoever listens for the next sign of life: be it more than are removed in turn.
func TestNobodyWaitsForTheRemovalOfSessionsThatExpire(t *testing.T) {
	for _, sessions := range []int{5, 1024 + 40} {
		t.Run(fmt.Sprint(sessions, " sessions"), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q, _, s := leftMany(t, sessions, 0)
				s.ends.Store(int64(time.Hour))
				q.session = ""
				q.initialize(mcp.V20250618)
				listening := q.get("").Body
				time.AfterFunc(30*time.Minute, func() { listening.Close() })
				var longest time.Duration
				for some := make([]byte, 4096); ; {
					began := time.Now()
					if _, err := listening.Read(some); err != nil {
						break
					}
					longest = max(longest, time.Since(began))
				}
				if longest > 16*time.Second {
					t.Errorf("nothing comes for %v", longest)
				}
			})
		})
	}
}

// mates are other replicas that are alive.
type mates struct {
	nobody
	alive atomic.Pointer[[]downstream.ReplicaID]
}

func (m *mates) Others() []downstream.ReplicaID { return *m.alive.Load() }

func (m *mates) are(ids ...downstream.ReplicaID) { m.alive.Store(&ids) }

// left is a call that a process has kept, which may be dead, and another one that has its store. When moved is set the
// call's time is another one.
func left(t *testing.T, dead, shared bool, peers Peers, due time.Duration) (moved *atomic.Bool, back chan time.Duration) {
	opt, b := stored(), newFake()
	home := &shaky{Store: opt.Store}
	last := alone{opt.Store, shared}
	opt.Store, opt.Replica, opt.Peers = home, homeID, peers
	_, p := servePipe(t, opt, b)
	p.initialize(mcp.V20250618)
	p.asked(b)
	home.away.Store(dead)
	opt.Store = last
	began := time.Now()
	back = make(chan time.Duration, 10)
	b = newFake()
	moved = new(atomic.Bool)
	b.due = func([]byte) (time.Time, error) {
		if moved.Load() {
			return time.Now().Add(time.Hour), nil
		}
		return began.Add(due), nil
	}
	b.resumes = func(_ downstream.Caller, _ []byte, out downstream.Reply) error {
		back <- time.Since(began)
		out.Finish(downstream.Result(`"call"`, nil))
		return nil
	}
	opt.Replica = neighbourID
	_, _ = servePipe(t, opt, b)
	return moved, back
}

// wantBack waits until a call comes back that is due by then; 0: it does not.
func wantBack(t *testing.T, back chan time.Duration, due time.Duration) {
	t.Helper()
	time.Sleep(time.Hour)
	synctest.Wait()
	switch {
	case len(back) == 0:
		if due > 0 {
			t.Error("nothing happens to the call")
		}
	default:
		if got := <-back; due == 0 || got < due || got > due+5*time.Second || len(back) > 0 {
			t.Errorf("it comes back after %v, due after %v", got, due)
		}
	}
}

// TestACallWhoseProcessIsGoneComesBackInTime: nobody asks for it. It comes when it is due, or at once if it was.
func TestACallWhoseProcessIsGoneComesBackInTime(t *testing.T) {
	for _, due := range []time.Duration{5 * time.Minute, time.Nanosecond} {
		t.Run("one process after the other, due after "+due.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, back := left(t, true, false, nil, due)
				wantBack(t, back, max(due, time.Second))
			})
		})
	}
	t.Run("replicas", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			others := &mates{}
			others.are(homeID)
			_, back := left(t, true, true, others, 5*time.Minute)
			time.AfterFunc(time.Minute, func() { others.are() })
			wantBack(t, back, 5*time.Minute)
		})
	})
	t.Run("replicas that do not know of each other", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			_, back := left(t, true, true, nil, 5*time.Minute)
			wantBack(t, back, 5*time.Minute+30*time.Second)
		})
	})
}

// slow is a store that takes its time for each call that it reads, as large ones take, and each session that it removes.
type slow struct {
	store.Store
	takes atomic.Int64 // nanoseconds
	ends  atomic.Int64 // how long it takes to remove a session; nanoseconds
}

func (s *slow) End(ctx context.Context, session string) error {
	select {
	case <-time.After(time.Duration(s.ends.Load())):
		return s.Store.End(ctx, session)
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *slow) Get(ctx context.Context, at store.Address) (store.Record, error) {
	if at.Kind == store.Flow {
		select {
		case <-time.After(time.Duration(s.takes.Load())):
		case <-ctx.Done():
			return store.Record{}, ctx.Err()
		}
	}
	return s.Store.Get(ctx, at)
}

func (s *slow) Size(ctx context.Context, at store.Address) (int, error) {
	r, err := s.Store.Get(ctx, at)
	return len(r.Value), err
}

// TestManyCallsOfOneSessionComeBackFromASlowStore, and those of the sessions behind it: each call has its own time,
// and the store is not taken for one that is away.
func TestManyCallsOfOneSessionComeBackFromASlowStore(t *testing.T) {
	const many, others = 60, 10
	synctest.Test(t, func(t *testing.T) {
		opt, b := stored(), newFake()
		home := &shaky{Store: opt.Store}
		after := &slow{Store: alone{opt.Store, true}}
		after.takes.Store(int64(100 * time.Millisecond))
		opt.Store, opt.Replica, opt.Peers = home, homeID, dead{}
		_, p := servePipe(t, opt, b)
		p.initialize(mcp.V20250618)
		for range many {
			p.asked(b)
		}
		for range others {
			p.session = ""
			p.initialize(mcp.V20250618)
			p.asked(b)
		}
		home.away.Store(true)
		began, back := time.Now(), atomic.Int64{}
		b = newFake()
		b.due = func([]byte) (time.Time, error) { return began.Add(5 * time.Minute), nil }
		b.resumes = func(_ downstream.Caller, _ []byte, out downstream.Reply) error {
			back.Add(1)
			out.Finish(downstream.Result(`"call"`, nil))
			return nil
		}
		m := store.NewMonitored(after, func(up bool, why error) { t.Errorf("the store is up: %t, %v", up, why) })
		defer m.Close()
		opt.Store, opt.Replica = m, neighbourID
		_, _ = servePipe(t, opt, b)
		time.Sleep(30 * time.Minute)
		want(t, "calls that came back", back.Load(), int64(many+others))
	})
}

// TestACallWhoseReplicaLivesStaysThere, though it was gone for a while.
func TestACallWhoseReplicaLivesStaysThere(t *testing.T) {
	for name, away := range map[string]time.Duration{"it was never gone": 0, "it came back": time.Minute} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				others := &mates{}
				others.are(homeID)
				_, back := left(t, false, true, others, 5*time.Minute)
				if away > 0 {
					time.AfterFunc(time.Minute, func() { others.are() })
					time.AfterFunc(time.Minute+away, func() { others.are(homeID) })
				}
				wantBack(t, back, 0)
			})
		})
	}
}

// TestACallThatHasGoneOnStaysThere, where nobody knows who lives: its record says that its time is another one.
func TestACallThatHasGoneOnStaysThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		moved, back := left(t, false, true, nil, 5*time.Minute)
		time.AfterFunc(time.Minute, func() { moved.Store(true) })
		wantBack(t, back, 0)
	})
}

// alone is a store that one process has, or several.
type alone struct {
	store.Store
	shared bool
}

func (a alone) Watch(func(string)) bool { return a.shared }

// TestASessionThatHasNothingElsewhereEndsWithoutALook: of one process alone, which began it.
func TestASessionThatHasNothingElsewhereEndsWithoutALook(t *testing.T) {
	opt := stored()
	c := &counting{Store: alone{opt.Store, false}}
	opt.Store = c
	_, p := serve(t, opt, newFake())
	p.initialize(mcp.V20250618)
	want(t, "DELETE", p.do(p.request(http.MethodDelete, "")).StatusCode, 204)
	want(t, "looks", c.loads.Load(), 0)
}

// glanced is a store that can tell what it has without reading it.
type glanced struct {
	*counting
	glances int
}

func (g *glanced) Glance(ctx context.Context, session string) ([]store.Record, error) {
	g.glances++
	return g.Store.Load(ctx, session)
}

// TestASessionComesBackWithoutItsCalls: whoever names one would have the store send all that waits there.
func TestASessionComesBackWithoutItsCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opt, b := stored(), newFake()
		opt.Replica, opt.Unload, opt.MaxUnloaded = homeID, time.Minute, 100
		_, p := servePipe(t, opt, b)
		p.initialize(mcp.V20250618)
		p.asked(b)
		g := &glanced{counting: &counting{Store: opt.Store}}
		opt.Replica, opt.Store = neighbourID, g
		_, q := servePipe(t, opt, newFake())
		q.session, q.version = p.session, p.version
		want(t, "a request", q.status(`{"jsonrpc":"2.0","id":1,"method":"echo"}`), 200)
		if g.loads.Load() != 0 || g.glances != 1 {
			t.Errorf("%d loads, %d glances", g.loads.Load(), g.glances)
		}
	})
}

// rewinding is a store that can go back to a moment before, as Redis does when its machine dies.
type rewinding struct {
	store.Store // for what is not asked for here
	mu          sync.Mutex
	now, older  store.Store // older is as it was at that moment, and until then the same
	parted      bool
}

func newRewinding(engine store.Store) *rewinding {
	return &rewinding{Store: engine, now: engine, older: store.NewMemory(10)}
}

// part has what changes from now on be lost when the store goes back.
func (r *rewinding) part() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.parted = true
}

func (r *rewinding) goBack() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now = r.older
}

// do does something in the store as it is, and in the other one, too, as long as they are the same.
func (r *rewinding) do(f func(store.Store) error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	err := f(r.now)
	if err == nil && !r.parted {
		err = f(r.older)
	}
	return err
}

func (r *rewinding) is() store.Store {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.now
}

func (r *rewinding) Commit(ctx context.Context, session string, changes ...store.Change) error {
	return r.do(func(s store.Store) error { return s.Commit(ctx, session, changes...) })
}

func (r *rewinding) Touch(ctx context.Context, touches ...store.Touch) error {
	return r.do(func(s store.Store) error { return s.Touch(ctx, touches...) })
}

func (r *rewinding) End(ctx context.Context, session string) error {
	return r.do(func(s store.Store) error { return s.End(ctx, session) })
}

func (r *rewinding) Get(ctx context.Context, at store.Address) (store.Record, error) {
	return r.is().Get(ctx, at)
}

func (r *rewinding) Load(ctx context.Context, session string) ([]store.Record, error) {
	return r.is().Load(ctx, session)
}

func (r *rewinding) List(ctx context.Context, after string, limit int) (store.Page, error) {
	return r.is().List(ctx, after, limit)
}

// TestAReplicaWhoseStoreGoesBackGoesOnWithItsCalls: the answer was acknowledged, and the server is at work on it.
func TestAReplicaWhoseStoreGoesBackGoesOnWithItsCalls(t *testing.T) {
	for name, looks := range map[string]bool{"the call ends": false, "the replica looks what others have taken over": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				opt, b := stored(), newFake()
				opt.Replica, opt.Peers = homeID, dead{}
				engine := newRewinding(opt.Store)
				opt.Store = alone{engine, true}
				_, p := servePipe(t, opt, b)
				p.initialize(mcp.V20250618)
				answer := p.async(`{"jsonrpc":"2.0","id":"call","method":"hold"}`)
				k := <-b.held
				want(t, "a question", k.ask(time.Hour, nil), nil)
				engine.part()
				keep := downstream.Checkpoint{Request: k.req.ID, N: 2, Record: []byte(`{"answered":true}`), TTL: time.Hour}
				want(t, "an answer", k.Checkpointer().Save(keep), nil)
				engine.goBack()
				if looks {
					keep.Again = true
					want(t, "a look", k.Checkpointer().Save(keep), nil)
				}
				k.finish(`{"ok":true}`)
				if got, _ := io.ReadAll((<-answer).Body); !strings.Contains(string(got), `"ok":true`) {
					t.Errorf("the client got %q", got)
				}
			})
		})
	}
}

// TestASessionWhoseStoreGoesBackIsSavedStill: what it changes has the number of an older record to replace.
func TestASessionWhoseStoreGoesBackIsSavedStill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opt, b := stored(), newFake()
		engine := newRewinding(opt.Store)
		opt.Store = alone{engine, true}
		_, p := servePipe(t, opt, b)
		p.initialize(mcp.V20250618)
		version := func() uint64 {
			r, err := engine.Get(t.Context(), store.Address{Session: store.Name("/mcp\n" + p.session), Kind: store.Session})
			if err != nil {
				t.Fatal(err)
			}
			return r.Version
		}
		change := func(level string) {
			b.last().setLevel(level)
			b.last().push.Changed()
			synctest.Wait()
		}
		began := version()
		engine.part()
		change("debug")
		change("error")
		late := version()
		engine.goBack()
		change("warning")
		if now := version(); late <= began+1 || now <= began {
			t.Errorf("it began as %d, was %d, and is %d after the store went back", began, late, now)
		}
	})
}

// tellTale is a store that tells of changes when the test does.
type tellTale struct {
	store.Store
	changed func(session string)
}

func (c *tellTale) Watch(changed func(string)) bool {
	c.changed = changed
	return true
}

// TestACallThatEndedIsNoneInAStoreThatWentBack: whoever came for it would ask once more what was answered, and the tool run twice.
func TestACallThatEndedIsNoneInAStoreThatWentBack(t *testing.T) {
	for name, retention := range map[string]time.Duration{"it can be fetched": time.Hour, "it is forgotten": time.Second} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				opt, b := stored(), newFake()
				opt.Replica, opt.Peers, opt.Retention = homeID, dead{}, retention
				engine := newRewinding(opt.Store)
				tells := &tellTale{Store: engine}
				opt.Store = tells
				_, p := servePipe(t, opt, b)
				p.initialize(mcp.V20250618)
				ended, waits := p.asked(b), p.asked(b)
				engine.part()
				ended.finish(`{}`)
				time.Sleep(time.Minute)
				engine.goBack()
				tells.changed("")
				time.Sleep(time.Second)
				synctest.Wait()
				list, err := engine.Load(t.Context(), store.Name("/mcp\n"+p.session))
				if err != nil {
					t.Fatal(err)
				}
				list = slices.DeleteFunc(list, func(r store.Record) bool {
					return r.Kind != store.Flow || bytes.Contains(r.Value, []byte(`"over":true`))
				})
				if len(list) != 1 || list[0].ID != fmt.Sprint(waits.Address().Stream) {
					t.Errorf("%d calls are in the store: %v", len(list), list)
				}
				waits.finish(`{}`)
			})
		})
	}
}

// TestWhatIsHereGoesToAStoreThatWentBack, without anybody who asks for it: this replica may be gone when somebody does.
func TestWhatIsHereGoesToAStoreThatWentBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opt, b := stored(), newFake()
		opt.Replica, opt.Peers = homeID, dead{}
		engine := newRewinding(opt.Store)
		tells := &tellTale{Store: engine}
		opt.Store = tells
		_, p := servePipe(t, opt, b)
		p.initialize(mcp.V20250618)
		k := p.asked(b)
		keep := downstream.Checkpoint{Request: k.req.ID, N: 2, Record: []byte(`{"answered":true}`), TTL: time.Hour}
		b.last().renews = func() { keep.Again = true; want(t, "a look", k.Checkpointer().Save(keep), nil) }
		versions := func() (all []uint64) {
			list, err := engine.Load(t.Context(), store.Name("/mcp\n"+p.session))
			if err != nil {
				t.Fatal(err)
			}
			for i := range list {
				all = append(all, list[i].Version)
			}
			return all
		}
		before := versions()
		engine.part()
		want(t, "an answer", k.Checkpointer().Save(keep), nil)
		b.last().setLevel("debug")
		b.last().push.Changed()
		synctest.Wait()
		engine.goBack()
		tells.changed("")
		time.Sleep(time.Second)
		synctest.Wait()
		if after := versions(); len(after) != 2 || after[0] <= before[0] || after[1] <= before[1] {
			t.Errorf("the records have the numbers %v, and had %v", after, before)
		}
		k.finish(`{}`)
	})
}
