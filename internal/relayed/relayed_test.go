package relayed

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/bridge/internal/budget"
	"github.com/mcpbridge/bridge/sessions/store"
)

// counted is a store that counts what it is asked, and can be out of reach.
type counted struct {
	store.Store
	asked atomic.Int64
	away  atomic.Bool
}

var errAway = errors.New("away")

func (c *counted) reached() error {
	c.asked.Add(1)
	if c.away.Load() {
		return errAway
	}
	return nil
}

func (c *counted) Get(ctx context.Context, at store.Address) (store.Record, error) {
	if err := c.reached(); err != nil {
		return store.Record{}, err
	}
	return c.Store.Get(ctx, at)
}

func (c *counted) Commit(ctx context.Context, session string, changes ...store.Change) error {
	if err := c.reached(); err != nil {
		return err
	}
	return c.Store.Commit(ctx, session, changes...)
}

func (c *counted) Touch(ctx context.Context, touches ...store.Touch) error {
	if err := c.reached(); err != nil {
		return err
	}
	return c.Store.Touch(ctx, touches...)
}

func replicas(t *testing.T) (shared *counted, one, two *Sessions) {
	shared = &counted{Store: store.NewMemory(100)}
	opt := Options{Capacity: 16, Idle: 40 * time.Minute, Guarded: true, Store: shared, Scope: "/mcp"}
	one, two = New(opt), New(opt)
	t.Cleanup(func() { one.Close(); two.Close() })
	return shared, one, two
}

var ada, eve = Owner{"ada", "ada"}, Owner{"eve", "eve"}

func finds(t *testing.T, what string, s *Sessions, id string, who Owner, want bool) {
	t.Helper()
	if found, err := s.Find(t.Context(), id, who); err != nil || found != want {
		t.Errorf("%s: %s finds it: %v, %v", what, who.Principal, found, err)
	}
}

// A server may give an id again: its record is one, and takes the room of one.
func TestASessionThatIsOpenedAgainTakesItsRoomOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		room := budget.NewRoom(1 << 20)
		s := New(Options{Capacity: 16, Idle: time.Hour, Guarded: true, Store: store.NewMemory(100), Scope: "/mcp", Room: room})
		defer s.Close()
		s.Open(t.Context(), "s", ada)
		one := room.Used()
		for range 10 { // whole seconds are as long in a record as each other
			time.Sleep(time.Second)
			s.Open(t.Context(), "s", ada)
		}
		for range 2 { // requests that come together
			read, err := s.load(t.Context(), "s", ada)
			if err != nil || read == nil {
				t.Fatal(read, err)
			}
		}
		if used := room.Used(); used != one {
			t.Errorf("a record of %d bytes takes %d", one, used)
		}
		s.Forget("s")
		if used := room.Used(); used != 0 {
			t.Errorf("%d bytes are taken of nothing", used)
		}
	})
}

// A call in a session that is known asks the store nothing, and the session lives on there for as long as it is used.
func TestASessionThatIsUsedLivesOnInTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared, one, two := replicas(t)
		one.Open(t.Context(), "s", ada)
		before := shared.asked.Load()
		for range 1000 {
			finds(t, "at once", one, "s", ada, true)
		}
		if asked := shared.asked.Load() - before; asked > 0 {
			t.Errorf("1000 calls asked the store %d times", asked)
		}
		for range 10 { // each one short of what a session may be idle
			time.Sleep(39 * time.Minute)
			finds(t, "in use", one, "s", ada, true)
		}
		finds(t, "elsewhere", two, "s", eve, false)
		finds(t, "elsewhere", two, "s", ada, true)
		time.Sleep(2 * time.Hour)
		finds(t, "left alone", one, "s", ada, false)
		finds(t, "left alone", two, "s", ada, false)
	})
}

// crowdedStore is one that has everything wait for its turn, and notes whose that is.
type crowdedStore struct {
	store.Store
	owners []string
}

func (c *crowdedStore) Crowded() bool { return true }

func (c *crowdedStore) note(ctx context.Context) {
	owner, _ := store.TurnOf(ctx)
	c.owners = append(c.owners, owner)
}

func (c *crowdedStore) Get(ctx context.Context, at store.Address) (store.Record, error) {
	c.note(ctx)
	return c.Store.Get(ctx, at)
}

func (c *crowdedStore) Commit(ctx context.Context, session string, changes ...store.Change) error {
	c.note(ctx)
	return c.Store.Commit(ctx, session, changes...)
}

func TestRelayedSessionsSayWhoseTheyAreInACrowd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		crowd := &crowdedStore{Store: store.NewMemory(100)}
		opt := Options{Capacity: 16, Idle: 40 * time.Minute, Guarded: true, Store: crowd, Scope: "/mcp"}
		one, two := New(opt), New(opt)
		defer one.Close()
		defer two.Close()
		one.Open(t.Context(), "s", ada)
		finds(t, "elsewhere", two, "s", ada, true)
		time.Sleep(2 * lookEvery)
		finds(t, "later", two, "s", ada, true)
		if want := []string{"ada", "ada", "ada"}; !slices.Equal(crowd.owners, want) {
			t.Errorf("it asked for %q, want %q", crowd.owners, want)
		}
	})
}

// What happens to a session at another replica is learnt while it is used.
func TestWhatBecomesOfASessionElsewhereIsLearnt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, one, two := replicas(t)
		one.Open(t.Context(), "ends", ada)
		one.Open(t.Context(), "again", ada)
		two.Forget("ends")
		two.Open(t.Context(), "again", eve) // the server gave the id out again
		time.Sleep(2 * time.Minute)
		finds(t, "ended", one, "ends", ada, false)
		finds(t, "given to another", one, "again", ada, false)
		finds(t, "given to another", one, "again", eve, true)
		one.ForgetAll()
		synctest.Wait()
		finds(t, "after the server's change", one, "again", eve, false)
		finds(t, "after the server's change", two, "again", eve, false)
	})
}

// A store that cannot be asked ends no session, and what it has missed is kept later.
func TestASessionOutlivesAnOutageOfTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared, one, two := replicas(t)
		one.Open(t.Context(), "before", ada)
		shared.away.Store(true)
		one.Open(t.Context(), "meanwhile", ada)
		time.Sleep(2 * time.Minute)
		for _, id := range []string{"before", "meanwhile"} {
			finds(t, id, one, id, ada, true)
			finds(t, id, one, id, eve, false)
			if _, err := two.Find(t.Context(), id, ada); !errors.Is(err, errAway) || !two.Keeps(t.Context(), id) {
				t.Errorf("%s: where it is not known: %v", id, err)
			}
		}
		shared.away.Store(false)
		time.Sleep(2 * time.Minute)
		finds(t, "afterwards", one, "meanwhile", ada, true)
		finds(t, "afterwards", two, "meanwhile", ada, true)
	})
}

// Endpoints share a store, and a session of one is none of another; nor is one of the bridge's own.
func TestASessionIsOfItsServer(t *testing.T) {
	shared, one, _ := replicas(t)
	one.Open(t.Context(), "s", ada)
	other := New(Options{Capacity: 16, Idle: time.Hour, Guarded: true, Store: shared, Scope: "/other"})
	finds(t, "another endpoint", other, "s", ada, false)
	if _, err := shared.Get(t.Context(), store.Address{Session: store.Name("/mcp\ns"), Kind: store.Session}); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("it stands where the bridge's own do: %v", err)
	}
}

// Whoever takes over knows each session at every moment, and what is learnt afterwards.
func TestAnHeirKnowsAllSessions(t *testing.T) {
	opt := Options{Capacity: 1000, Idle: time.Hour, Guarded: true}
	old, next, last := New(opt), New(opt), New(opt)
	for i := range 500 {
		old.Open(t.Context(), fmt.Sprint(i), ada)
	}
	over := make(chan struct{})
	go func() {
		defer close(over)
		old.Bequeath(next)
		next.Bequeath(last)
		last.Bequeath(old) // who has it from there
	}()
	for asked := false; !asked; {
		select {
		case <-over:
			asked = true
		default:
		}
		for i := range 500 {
			if found, _ := old.Find(t.Context(), fmt.Sprint(i), ada); !found {
				t.Fatalf("nobody knows session %d", i)
			}
		}
	}
	old.Open(t.Context(), "late", ada)
	old.Forget("0")
	if old.Len() != 0 || next.Len() != 0 || last.Len() != 500 || old.Holds("1") || !last.Holds("late") || last.Holds("0") {
		t.Errorf("%d, %d and %d are held", old.Len(), next.Len(), last.Len())
	}
	finds(t, "taken over", last, "1", eve, false)
	last.ForgetAll()
	finds(t, "all forgotten", old, "1", ada, false)
}

// What ends while somebody takes over has ended there, too, and what is opened anew under its id is of whoever opens it.
func TestAnHeirTakesOverWhatThereIsByThen(t *testing.T) {
	const known = 300
	opt := Options{Capacity: 1000, Idle: time.Hour, Guarded: true}
	for range 20 {
		old, next := New(opt), New(opt)
		for i := range known {
			old.Open(t.Context(), fmt.Sprint(i), ada)
		}
		over := make(chan struct{})
		go func() {
			defer close(over)
			old.Bequeath(next)
		}()
		for i := range known {
			old.Forget(fmt.Sprint(i))
			if i%2 == 0 {
				old.Open(t.Context(), fmt.Sprint(i), eve)
			}
		}
		<-over
		for i := range known {
			for who, want := range map[Owner]bool{ada: false, eve: i%2 == 0} {
				if found, _ := next.Find(t.Context(), fmt.Sprint(i), who); found != want {
					t.Fatalf("session %d of %s: %v", i, who.Principal, found)
				}
			}
		}
	}
}

// What was only met says nothing of who opened it.
func TestWhatWasOnlyMetIsHeldWhereTheServerJudges(t *testing.T) {
	for guarded, want := range map[bool]bool{true: false, false: true} {
		s := New(Options{Capacity: 16, Idle: time.Hour, Guarded: guarded})
		s.Met("s")
		s.Use(t.Context(), "s")
		if s.Holds("s") != want {
			t.Errorf("guarded %v: held %v", guarded, !want)
		}
	}
}

// Who has an heir forgets nothing of that one's, which learns itself what becomes of the server.
func TestAnHeirForgetsForItself(t *testing.T) {
	for when, bequeath := range map[string]func(old, next *Sessions){
		"afterwards": (*Sessions).Bequeath,
		"meanwhile":  func(old, next *Sessions) { next.put(old.get("s")); old.heir = next }, // its own is not empty yet
	} {
		synctest.Test(t, func(t *testing.T) {
			_, old, next := replicas(t)
			old.Open(t.Context(), "s", ada)
			bequeath(old, next)
			old.ForgetAll()
			synctest.Wait()
			if !next.Holds("s") {
				t.Errorf("%s: it is forgotten", when)
			}
			other := New(next.opt)
			defer other.Close()
			finds(t, when+", in the store", other, "s", ada, true)
		})
	}
}

// slow is a store that takes a second to say what it has found.
type slow struct{ store.Store }

func (s slow) Get(ctx context.Context, at store.Address) (store.Record, error) {
	record, err := s.Store.Get(ctx, at)
	time.Sleep(time.Second)
	return record, err
}

// What the server has lost is removed from the store behind all else: a session that is opened meanwhile under the
// same id stays.
func TestASessionThatIsOpenedAnewOutlivesTheLossOfAll(t *testing.T) {
	for _, after := range []time.Duration{0, 500 * time.Millisecond} { // before its record is looked at, and then
		synctest.Test(t, func(t *testing.T) {
			shared, one, two := replicas(t)
			one.opt.Store = slow{shared}
			one.Open(t.Context(), "s", ada)
			time.Sleep(time.Millisecond)
			one.ForgetAll()
			time.Sleep(after)
			two.Open(t.Context(), "s", eve)
			time.Sleep(time.Minute)
			finds(t, "afterwards", one, "s", eve, true)
		})
	}
}

// A store that cannot be reached is asked no more than once.
func TestTheLossOfAllWaitsForNoStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared, one, _ := replicas(t)
		for i := range 10 {
			one.Open(t.Context(), fmt.Sprint(i), ada)
		}
		shared.away.Store(true)
		before := shared.asked.Load()
		one.ForgetAll()
		synctest.Wait()
		if asked := shared.asked.Load() - before; asked != 1 {
			t.Errorf("it is asked %d times", asked)
		}
	})
}

// Whoever guards sessions takes over none of one who does not, nor the other way round.
func TestWhoGuardsSessionsTakesOverNoneThatNobodyGuarded(t *testing.T) {
	for _, guarded := range []bool{true, false} {
		old, next := New(Options{Capacity: 16, Idle: time.Hour, Guarded: !guarded}), New(Options{Capacity: 16, Idle: time.Hour, Guarded: guarded})
		old.Met("met")
		old.Open(t.Context(), "opened", ada)
		old.Bequeath(next)
		for _, who := range []Owner{ada, eve, {}} {
			finds(t, "met", next, "met", who, false)
			finds(t, "opened", next, "opened", who, false)
		}
		if !old.Holds("opened") || old.Holds("met") != guarded { // a guarded one meets none
			t.Errorf("guarded %v: they do not stay", guarded)
		}
	}
}

// What is met where somebody else has taken over is known there already, with its owner.
func TestWhatIsMetTakesNoPlace(t *testing.T) {
	shared := store.NewMemory(100)
	opt := Options{Capacity: 16, Idle: time.Hour, Store: shared, Scope: "/mcp"}
	old, next := New(opt), New(opt)
	defer old.Close()
	defer next.Close()
	old.Open(t.Context(), "s", ada)
	old.Bequeath(next)
	old.Met("s")
	next.put(&session{id: "s", met: true}) // who looked before it was known
	if one := next.get("s"); one == nil || one.met || one.owner != ada {
		t.Errorf("it is %+v", one)
	}
}

// A stream stays open, or a call lasts, longer than a session may be unused: it is in use meanwhile, here and in the
// store, and its last use is the end.
func TestASessionInWhichARequestIsUnderWayIsInUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, one, two := replicas(t)
		one.Open(t.Context(), "s", ada)
		visit := one.Visit("s")
		time.Sleep(5 * time.Hour)
		one.Open(t.Context(), "other", ada) // which has what is idle expire
		finds(t, "elsewhere", two, "s", ada, true)
		visit.End()
		time.Sleep(39 * time.Minute)
		finds(t, "afterwards", one, "s", ada, true)
		time.Sleep(2 * time.Hour)
		finds(t, "left alone", one, "s", ada, false)
	})
}

// It makes no room for others, nor does one that was used a moment ago.
func TestASessionInUseMakesNoRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Options{Capacity: 2, Idle: time.Hour, Guarded: true})
		s.Open(t.Context(), "stream", ada)
		s.Open(t.Context(), "call", ada)
		visit := s.Visit("stream")
		finds(t, "a call", s, "call", ada, true)
		if s.Room("ada") {
			t.Error("there is room while all are in use")
		}
		time.Sleep(2 * time.Minute)
		s.Open(t.Context(), "late", ada)
		if !s.Holds("stream") || s.Holds("call") || !s.Holds("late") {
			t.Error("the idle one makes no room")
		}
		visit.End()
	})
}

// One that was learnt of from the server's answer is in use until that has come to its end.
func TestASessionThatIsMetIsInUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Options{Capacity: 16, Idle: time.Hour})
		visit := s.Visit("s")
		s.Met("s")
		visit.Found()
		time.Sleep(2 * time.Hour)
		if s.Len() != 1 {
			t.Error("it expired")
		}
		visit.End()
		time.Sleep(2 * time.Hour)
		if s.Len() != 0 {
			t.Error("it stays")
		}
	})
}

// What is in use outlives the key it began under, which is taken away when what is not has expired.
func TestASessionInUseOutlivesTheKeyItBeganUnder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := store.NewMemory(100)
		under := func(keys ...store.Key) *Sessions {
			sealed, err := store.NewSealed(inner, keys)
			if err != nil {
				t.Fatal(err)
			}
			return New(Options{Capacity: 16, Idle: 40 * time.Minute, Guarded: true, Store: sealed, Scope: "/mcp"})
		}
		before, after := store.Key{1}, store.Key{2}
		s := under(before)
		s.Open(t.Context(), "s", ada)
		s.Close()
		s = under(after, before)
		finds(t, "with both keys", s, "s", ada, true)
		s.Close()
		s = under(after)
		defer s.Close()
		finds(t, "without the old key", s, "s", ada, true)
	})
}

// What a server judges itself lives on in the store by its use at any replica, and behind a restart: whoever comes
// before it is known what the server is finds it there.
func TestASessionThatWasMetLivesOnInTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opt := Options{Capacity: 16, Idle: 40 * time.Minute, Store: store.NewMemory(100), Scope: "/mcp"}
		one, two := New(opt), New(opt)
		defer two.Close()
		one.Open(t.Context(), "s", ada)
		one.Close()
		for range 10 { // of which each alone is short enough
			time.Sleep(39 * time.Minute)
			two.Use(t.Context(), "s")
			two.Met("s") // it has answered
			two.Met("unheard of")
		}
		synctest.Wait()
		three := New(opt)
		defer three.Close()
		if !three.Keeps(t.Context(), "s") || three.Keeps(t.Context(), "unheard of") {
			t.Error("a session in use is not in the store, or one that nobody has kept")
		}
		two.Use(t.Context(), "s")
		two.ForgetAll()
		synctest.Wait()
		if three.Keeps(t.Context(), "s") {
			t.Error("a session that its server has lost is in the store")
		}
	})
}
