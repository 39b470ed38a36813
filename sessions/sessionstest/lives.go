package sessionstest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcpbridge/bridge/sessions/store"
)

// soon is a lifetime that tests wait for.
const soon = 40 * time.Millisecond

// eventually waits until what becomes true, for at most ten seconds.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	patience := time.NewTimer(10 * time.Second)
	defer patience.Stop()
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for !ok() {
		select {
		case <-patience.C:
			t.Fatalf("%s: not within ten seconds", what)
		case <-look.C:
		}
	}
}

func gone(s store.Store, at store.Address) func() bool {
	return func() bool {
		_, err := loaded(s, at)
		return errors.Is(err, store.ErrNotFound)
	}
}

func expiry(t *testing.T, s store.Store) {
	name := session()
	lasting := store.Address{Session: name, Kind: store.Session}
	brief := store.Address{Session: name, Kind: store.Flow, ID: "brief"}
	change := put(store.Flow, brief.ID, 0, "x")
	change.TTL = soon
	must(t, s.Commit(background, name, put(store.Session, "", 0, "s"), change))
	eventually(t, "expiry", gone(s, brief))
	wantNone(t, s, brief)
	wantRecord(t, s, lasting, 1, "s")
	wantConflict(t, s.Commit(background, name, put(store.Flow, brief.ID, 1, "late")), brief)
	must(t, s.Commit(background, name, put(store.Flow, brief.ID, 0, "again")))
	wantRecord(t, s, brief, 1, "again")
}

func touching(t *testing.T, s store.Store) {
	touched, lengthened, other := session(), session(), session()
	at := store.Address{Session: touched, Kind: store.Session}
	for _, name := range []string{touched, lengthened, other} {
		change := put(store.Session, "", 0, name)
		change.TTL = 10 * soon
		must(t, s.Commit(background, name, change))
	}
	must(t, s.Touch(background, store.Touch{Session: touched, TTL: long}, store.Touch{Session: lengthened, TTL: long, WithCalls: true}, store.Touch{Session: session(), TTL: long}))
	eventually(t, "expiry of the other", gone(s, store.Address{Session: other, Kind: store.Session}))
	wantRecord(t, s, at, 1, touched)
	wantRecord(t, s, store.Address{Session: lengthened, Kind: store.Session}, 1, lengthened)
	must(t, s.Touch(background))
	must(t, s.Touch(background, store.Touch{Session: touched, TTL: soon}))
	eventually(t, "expiry after a shorter touch", gone(s, at))
}

// calling wants a session's own record to live as long as its calls where that is asked for, and no longer.
func calling(t *testing.T, s store.Store) {
	name := session()
	at := store.Address{Session: name, Kind: store.Session}
	own := func(replaces uint64) store.Change {
		change := put(store.Session, "", replaces, name)
		change.TTL, change.WithCalls = soon, true
		return change
	}
	over := func(id string) store.Change {
		return store.Change{Kind: store.Flow, ID: id, Replaces: 1, Delete: true}
	}
	lasts := func(what string) {
		t.Helper()
		if r, err := loaded(s, at); err != nil || r.TTL < long/2 {
			t.Errorf("%s: it has %v left, %v", what, r.TTL, err)
		}
	}
	must(t, s.Commit(background, name, own(0), put(store.Flow, "a", 0, "a"), put(store.Flow, "b", 0, "b")))
	lasts("written with its calls")
	must(t, s.Commit(background, name, own(1)))
	lasts("written anew")
	must(t, s.Commit(background, name, own(2), over("a")))
	lasts("written as one of its calls ends")
	must(t, s.Touch(background, store.Touch{Session: name, TTL: soon, WithCalls: true}, store.Touch{Session: session(), TTL: soon, WithCalls: true}))
	lasts("touched")
	must(t, s.Commit(background, name, over("b")))
	lasts("left alone when the last call ends")
	must(t, s.Touch(background, store.Touch{Session: name, TTL: soon, WithCalls: true}))
	eventually(t, "expiry without calls", gone(s, at))
}

func ending(t *testing.T, s store.Store) {
	name := session()
	must(t, s.Commit(background, name, put(store.Session, "", 0, "s"), put(store.Flow, "f", 0, "f"), put(store.LastWord, "w", 0, "w")))
	must(t, s.End(background, name))
	if list, err := s.Load(background, name); err != nil || len(list) > 0 {
		t.Errorf("left %v, %v", list, err)
	}
	wantNone(t, s, store.Address{Session: name, Kind: store.Session})
	must(t, s.End(background, name)) // it is idempotent
	wantConflict(t, s.Commit(background, name, put(store.Flow, "f", 1, "of one who slept")), store.Address{Session: name, Kind: store.Flow, ID: "f"})
}

func listing(t *testing.T, s store.Store) {
	want := map[store.Address]uint64{}
	for range 50 {
		name := session()
		must(t, s.Commit(background, name, put(store.Session, "", 0, "s"), put(store.Flow, "a", 0, "secret")))
		must(t, s.Commit(background, name, put(store.Flow, "a", 1, "secret")))
		want[store.Address{Session: name, Kind: store.Session}] = 1
		want[store.Address{Session: name, Kind: store.Flow, ID: "a"}] = 2
	}
	for after, more := "", true; more; {
		page, err := s.List(background, after, 7)
		must(t, err)
		for _, r := range page.Records {
			if r.Value != nil {
				t.Fatalf("%s is listed with its value", r.Address)
			}
			if version, mine := want[r.Address]; mine && version != r.Version {
				t.Fatalf("%s is listed with version %d, want %d", r.Address, r.Version, version)
			}
			delete(want, r.Address)
		}
		after, more = page.Next, page.Next != ""
	}
	if len(want) > 0 {
		t.Errorf("not listed: %v", want)
	}
}

func contextDone(t *testing.T, s store.Store) {
	ctx, cancel := context.WithCancel(background)
	cancel()
	name := session()
	for what, err := range operations(ctx, s, name) {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: got %v", what, err)
		}
	}
}

func closed(t *testing.T, s store.Store) {
	must(t, s.Close())
	for what, err := range operations(background, s, session()) {
		if !errors.Is(err, store.ErrClosed) {
			t.Errorf("%s: got %v", what, err)
		}
	}
}

// operations calls everything once.
func operations(ctx context.Context, s store.Store, name string) map[string]error {
	_, get := s.Get(ctx, store.Address{Session: name, Kind: store.Session})
	_, load := s.Load(ctx, name)
	_, list := s.List(ctx, "", 1)
	return map[string]error{
		"Commit": s.Commit(ctx, name, put(store.Session, "", 0, "s")),
		"Touch":  s.Touch(ctx, store.Touch{Session: name, TTL: long}),
		"End":    s.End(ctx, name),
		"Ping":   s.Ping(ctx),
		"Get":    get, "Load": load, "List": list,
	}
}

func ping(t *testing.T, s store.Store) { must(t, s.Ping(background)) }

// leases: a replica renews its own, everybody sees who is alive, and one that slept
// beyond its lease finds out.
func leases(t *testing.T, s store.Store) {
	id := strings.ToLower(session())
	at := store.Address{Session: store.Replicas, Kind: store.Lease, ID: id}
	lease := func(replaces uint64, ttl time.Duration) error {
		return s.Commit(background, store.Replicas, store.Change{Kind: store.Lease, ID: id, Replaces: replaces, TTL: ttl, Value: []byte("http://10.0.0.1:1")})
	}
	must(t, lease(0, long))
	must(t, lease(1, long))
	wantRecord(t, s, at, 2, "http://10.0.0.1:1")
	must(t, lease(2, soon))
	eventually(t, "lapse", gone(s, at))
	wantConflict(t, lease(3, long), at)
}

func manyAtOnce(t *testing.T, s store.Store) {
	const clients, each = 16, 20
	var all sync.WaitGroup
	for i := range clients {
		name := session()
		all.Go(func() {
			for n := range uint64(each) {
				id := fmt.Sprint(n)
				if err := s.Commit(background, name, put(store.Session, "", n, id), put(store.Flow, id, 0, id)); err != nil {
					t.Errorf("client %d: %v", i, err)
					return
				}
			}
			list, err := s.Load(background, name)
			if err != nil || len(list) != each+1 || !slices.IsSortedFunc(list, func(a, b store.Record) int { return a.Address.Compare(b.Address) }) {
				t.Errorf("client %d: %d records, %v", i, len(list), err)
			}
		})
	}
	all.Wait()
}
