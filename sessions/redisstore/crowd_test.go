package redisstore

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/bridge/sessions/store"
)

// mob is one principal's changes, each just not large, on the connection of a store whose server does not read.
type mob struct {
	t       *testing.T
	server  *slowServer
	store   *Store
	writing sync.WaitGroup
	size    int64  // of each in the crowd
	goOn    func() // has the server read again
}

func newMob(t *testing.T, changes int) *mob {
	t.Helper()
	f := newSlowServer(t)
	m := &mob{t: t, server: f, store: open(t, "redis://"+f.Addr().String()), size: 12<<10 + eachCosts, goOn: sync.OnceFunc(func() { close(f.goOn) })}
	t.Cleanup(m.goOn)
	m.commit("greedy", "held")
	<-f.stalled
	for i := range changes {
		m.commit("greedy", fmt.Sprint("greedy", i))
	}
	m.await("all of them", func(underway, waiting int64) bool { return underway/m.size+waiting == int64(changes+1) })
	return m
}

func (m *mob) commit(owner, session string) {
	m.writing.Go(func() {
		ctx := store.WithTurn(m.t.Context(), store.Turn{Owner: owner})
		c := store.Change{Kind: store.Flow, ID: "1", TTL: time.Hour, Value: make([]byte, m.size-eachCosts)}
		if err := m.store.Commit(ctx, session, c); err != nil {
			m.t.Errorf("%s: %v", session, err)
		}
	})
}

// await waits until that is so of the bytes that are under way and of how many wait for their turn.
func (m *mob) await(what string, so func(underway, waiting int64) bool) {
	m.t.Helper()
	for range 10_000_000 {
		if crowd := m.store.crowd.bytes.Load(); so(crowd%waits, crowd/waits) {
			return
		}
		runtime.Gosched()
	}
	m.t.Fatalf("%s: not yet, with %d under way and in line", what, m.store.crowd.bytes.Load())
}

// underway returns the bytes that are under way, without what is only on its way into the line: that counts for a moment.
func (m *mob) underway() int64 {
	least := int64(math.MaxInt64)
	for range 1000 {
		least = min(least, m.store.crowd.bytes.Load()%waits)
		runtime.Gosched()
	}
	return least
}

// place returns before how many of the mob's changes a session's came to the server.
func (m *mob) place(session string) int {
	m.server.mu.Lock()
	defer m.server.mu.Unlock()
	return slices.IndexFunc(m.server.keys, func(key string) bool { return strings.Contains(key, "{"+session+"}") })
}

// One principal's changes, each just not large, filled the connection of all for as long as a slow link took for them.
func TestWhatIsSmallWaitsForAWindowAtMost(t *testing.T) {
	const changes = 200
	m := newMob(t, changes)
	most := int64(2*window)/m.size + 2
	m.await("little under way", func(underway, _ int64) bool { return underway/m.size <= most })
	if !m.store.Crowded() {
		t.Error("nobody is to say whose it is")
	}
	before := m.underway()
	m.commit("modest", "modest")
	m.await("the other's change", func(underway, waiting int64) bool { return underway > before && underway/m.size+waiting == changes+2 })
	var reading sync.WaitGroup
	read := func(what string, operation func(ctx context.Context) error) {
		reading.Go(func() {
			ctx := store.WithTurn(t.Context(), store.Turn{Owner: what})
			if err := operation(ctx); err != nil && !errors.Is(err, store.ErrNotFound) {
				t.Errorf("%s: %v", what, err)
			}
		})
	}
	at := store.Address{Session: "modest", Kind: store.Flow, ID: "1"}
	read("a record", func(ctx context.Context) error { _, err := m.store.Get(ctx, at); return err })
	read("a session", func(ctx context.Context) error {
		_, err := m.store.Get(ctx, store.Address{Session: "modest", Kind: store.Session})
		return err
	})
	read("a look", func(ctx context.Context) error { _, err := m.store.Glance(ctx, "modest"); return err })
	m.await("what others read", func(underway, _ int64) bool { return underway >= before+m.size+3*readCosts })
	m.goOn()
	m.writing.Wait()
	reading.Wait()
	if place := m.place("modest"); place < 0 || int64(place) > most {
		t.Errorf("before another's change went %d of the mob's", place)
	}
	if left := m.store.crowd.bytes.Load(); left != 0 || m.store.Crowded() {
		t.Errorf("%d bytes are under way for good", left)
	}
}

// The end of a session waits for no turn, and what does comes behind it: nobody is to find that.
func TestASmallRecordInLineDoesNotOutliveItsSession(t *testing.T) {
	m := newMob(t, 100)
	committed, ended := make(chan error), make(chan error)
	ctx := store.WithTurn(t.Context(), store.Turn{Owner: "greedy"})
	go func() {
		committed <- m.store.Commit(ctx, "s", store.Change{Kind: store.Flow, ID: "1", TTL: time.Hour, Value: []byte("x")})
	}()
	m.await("a change in line", func(underway, waiting int64) bool { return underway/m.size+waiting == 102 })
	go func() { ended <- m.store.End(t.Context(), "s") }()
	over := func() bool {
		m.store.underway.mu.Lock()
		defer m.store.underway.mu.Unlock()
		return m.store.underway.of["s"] == nil
	}
	m.await("the end", func(int64, int64) bool { return over() })
	m.goOn()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	err := <-committed
	if _, conflict := errors.AsType[*store.ConflictError](err); !conflict {
		t.Errorf("it is kept: %v", err)
	}
	m.writing.Wait()
	m.server.mu.Lock()
	defer m.server.mu.Unlock()
	for i, key := range m.server.keys {
		if strings.Contains(key, "{s}") && m.server.scripts[i] != endScript.sha {
			t.Error("it was written")
		}
	}
}

// Clients that gave up reads one after the other had the connection full of replies that nobody counted.
func TestAReadThatIsGivenUpCountsUntilItsReplyIsThere(t *testing.T) {
	f := newSlowServer(t)
	m := &mob{t: t, server: f, store: open(t, "redis://"+f.Addr().String()), goOn: sync.OnceFunc(func() { close(f.goOn) })}
	t.Cleanup(m.goOn)
	m.size = eachCosts + 1
	m.commit("held", "held")
	<-f.stalled
	before := m.underway()
	ctx, leave := context.WithCancel(t.Context())
	read := make(chan error, 1)
	go func() {
		_, err := m.store.Get(ctx, store.Address{Session: "s", Kind: store.Flow, ID: "1"})
		read <- err
	}()
	m.await("the read", func(underway, _ int64) bool { return underway == before+readCosts })
	leave()
	if err := <-read; !errors.Is(err, context.Canceled) { // as a process that ends must not be held up
		t.Errorf("the read: %v", err)
	}
	if now := m.underway(); now != before+readCosts {
		t.Errorf("%d bytes are under way, want %d", now, before+readCosts)
	}
	m.goOn()
	m.await("the reply", func(underway, _ int64) bool { return underway <= before })
	m.writing.Wait()
}

// Who waits in the crowd gives up with its context, is no outage, and has time from its turn on.
func TestWhoWaitsInTheCrowdHasItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd()
		patience, lose := context.WithCancel(t.Context())
		own, cancel := context.WithTimeout(patience, 5*time.Second)
		defer cancel()
		turn := func(bounds context.Context) context.Context {
			return store.WithTurn(own, store.Turn{Owner: "greedy", Patience: bounds})
		}
		hang := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
		var all sync.WaitGroup
		all.Go(func() {
			_ = c.inTurn(t.Context(), "s", window, func(context.Context) error { time.Sleep(10 * time.Second); return nil })
		})
		synctest.Wait()
		outcome := func(ctx context.Context, operation func(context.Context) error, after time.Duration, want error) {
			began := time.Now()
			all.Go(func() {
				err := c.inTurn(ctx, "s", 1, operation)
				if took := time.Since(began); took.Truncate(time.Second) != after || !errors.Is(err, want) {
					t.Errorf("after %v, not %v: %v", took, after, err)
				}
			})
			synctest.Wait()
		}
		outcome(turn(nil), hang, 5*time.Second, store.ErrSlow)
		outcome(turn(patience), hang, 10*time.Second+largeTimeout, store.ErrSlow)
		outcome(turn(patience), func(ctx context.Context) error { return ctx.Err() }, 10*time.Second, nil)
		outcome(t.Context(), func(ctx context.Context) error { return ctx.Err() }, 10*time.Second, nil)
		all.Wait()
		all.Go(func() {
			_ = c.inTurn(t.Context(), "s", window, func(context.Context) error { time.Sleep(time.Hour); return nil })
		})
		synctest.Wait()
		outcome(turn(patience), hang, turnPatience, store.ErrSlow)
		time.Sleep(turnPatience)
		outcome(turn(patience), hang, 0, context.Canceled)
		lose() // the process is about to end
		all.Wait()
		if left := c.bytes.Load(); left != 0 {
			t.Errorf("%d bytes are under way for good", left)
		}
	})
}

// What begins a large record took four times of what it counted for, for everybody else to wait behind.
func TestNoMoreIsReadThanCounts(t *testing.T) {
	f := newSlowServer(t)
	s := open(t, "redis://"+f.Addr().String())
	var asked atomic.Int64
	f.asked = func(bytes int) {
		asked.Add(1)
		if underway := s.crowd.bytes.Load(); int64(bytes) > underway+1 { // a byte more says that it goes on
			t.Errorf("%d bytes are asked for while %d are under way", bytes, underway)
		}
	}
	for _, size := range []int{100, readCosts - 2, readCosts + 1, store.Large - 2, store.Large - 1, 3 * store.Large} {
		for _, kind := range []store.Kind{store.Session, store.Flow} {
			value := strings.Repeat("v", size)
			f.record.Store("1 " + value)
			got, err := s.Get(t.Context(), store.Address{Session: fmt.Sprint(size), Kind: kind, ID: "1"})
			if err != nil || string(got.Value) != value || got.Version != 1 {
				t.Errorf("%c of %d bytes: %d bytes of version %d: %v", kind, size, len(got.Value), got.Version, err)
			}
		}
	}
	if asked.Load() == 0 {
		t.Error("nothing was asked for")
	}
}

// A read that had its turn late has a time of its own, which ended with it: its outcome was taken for that end.
func TestAReadThatHadItsTurnLateIsAnswered(t *testing.T) {
	for name, patience := range map[string]bool{"with patience": true, "without": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &Store{crowd: newCrowd()}
				go func() {
					_ = s.crowd.inTurn(t.Context(), "greedy", window, func(context.Context) error { time.Sleep(4500 * time.Millisecond); return nil })
				}()
				synctest.Wait()
				own, cancel := context.WithTimeout(t.Context(), 5*time.Second)
				defer cancel()
				turn := store.Turn{Owner: "modest"}
				if patience {
					turn.Patience = t.Context()
				}
				got, err := read(store.WithTurn(own, turn), s, "modest", readCosts, func(context.Context) (string, error) {
					time.Sleep(100 * time.Millisecond)
					return "there", nil
				})
				if err != nil || got != "there" {
					t.Errorf("%q, %v", got, err)
				}
				synctest.Wait()
				if left := s.crowd.bytes.Load(); left != 0 {
					t.Errorf("%d bytes are under way for good", left)
				}
			})
		})
	}
}
