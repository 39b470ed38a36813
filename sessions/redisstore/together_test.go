package redisstore

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/bridge/internal/redistest"
	"github.com/mcpbridge/bridge/sessions/store"
)

// TestChangesGoTogether: those that come while others are away go with the next ones,
// and nobody waits who is alone.
func TestChangesGoTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const roundTrip = time.Millisecond
		var mu sync.Mutex
		var sizes []int
		together := together{send: func(_ context.Context, g *group) {
			mu.Lock()
			sizes = append(sizes, len(g.changes))
			mu.Unlock()
			time.Sleep(roundTrip)
		}}
		began := time.Now()
		for range 3 {
			_ = together.do(background, &single{})
		}
		if took := time.Since(began); took != 3*roundTrip {
			t.Errorf("one after the other take %v", took)
		}
		sizes = nil
		var all sync.WaitGroup
		for range 16 {
			all.Go(func() {
				for range 4 {
					_ = together.do(background, &single{})
				}
			})
		}
		all.Wait()
		if sum(sizes) != 64 || len(sizes) > 16 {
			t.Errorf("64 changes of 16 at a time went in groups of %v", sizes)
		}
		if took := time.Since(began); took > 3*roundTrip+16*(roundTrip+company) {
			t.Errorf("they took %v", took)
		}
	})
}

// TestASlowServerIsNotWaitedForTwice: what comes while a group is away is away soon, too.
func TestASlowServerIsNotWaitedForTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const roundTrip = 20 * company
		together := together{send: func(context.Context, *group) { time.Sleep(roundTrip) }}
		began := time.Now()
		var all sync.WaitGroup
		for i := range 4 {
			all.Go(func() {
				time.Sleep(time.Duration(i) * company / 10)
				_ = together.do(background, &single{})
			})
		}
		all.Wait()
		if took := time.Since(began); took != roundTrip+company+company/10 {
			t.Errorf("they took %v", took)
		}
	})
}

func sum(list []int) (n int) {
	for _, i := range list {
		n += i
	}
	return n
}

// TestGroupsAreBounded: by number, by bytes, and to those whose time ends together.
func TestGroupsAreBounded(t *testing.T) {
	ends, cancel := context.WithCancel(background)
	defer cancel()
	together := together{}
	begins := func(ctx context.Context, size int) bool {
		_, began := together.join(ctx, &single{value: strings.Repeat("x", size)})
		return began
	}
	for i := range 2*mostTogether + 1 {
		if began := begins(background, 1); began != (i%mostTogether == 0) {
			t.Fatalf("change %d begins a group: %v", i, began)
		}
	}
	if !begins(ends, 1) || begins(ends, mostBytes-1) || !begins(ends, 1) || !begins(background, 1) || !begins(background, mostBytes+1) {
		t.Error("a group has too much, or too little")
	}
}

// mixed is a group of every sort of change, and what is to come of each.
func mixed(t *testing.T, s *Store, server *redistest.Server, name string) (g *group, want []string) {
	t.Helper()
	g = &group{}
	add := func(id string, replaces uint64, outcome string) {
		at := store.Address{Session: store.Name(name + id), Kind: store.Flow, ID: id}
		if err := s.Commit(background, at.Session, store.Change{Kind: store.Session, TTL: time.Minute}); err != nil {
			t.Fatal(err)
		}
		c := &single{at: at, key: s.keyOf(at), value: fmt.Sprintf("%d new", replaces+1), ttl: 60_000}
		if replaces > 0 {
			c.head = strconv.FormatUint(replaces, 10) + " "
		} else {
			c.index, c.member = s.base(at.Session)+indexName, "f"+id
		}
		g.changes, want = append(g.changes, c), append(want, outcome)
	}
	add("a", 0, "1 new")
	add("b", 12, "13 new")
	server.Must("SET", g.changes[1].key, "12 old")
	add("c", 1, "conflict 12 old")
	server.Must("SET", g.changes[2].key, "12 old")
	add("d", 0, "conflict 7 old")
	server.Must("SET", g.changes[3].key, "7 old")
	add("e", 3, "conflict ")
	add("f", 3, "conflict ")
	server.Must("LPUSH", g.changes[5].key, "3 ")
	add("g", 1, "2 new")
	server.Must("SET", g.changes[6].key, "1 old")
	return g, want
}

func checkOutcomes(t *testing.T, s *Store, g *group, want []string) {
	t.Helper()
	s.sendGroup(background, g)
	for i, c := range g.changes {
		got := ""
		if conflict, ok := errors.AsType[*store.ConflictError](c.err); ok && conflict.Address == c.at {
			got = "conflict "
		} else if c.err != nil {
			got = c.err.Error()
		}
		if r, err := s.Get(background, c.at); err == nil {
			got += fmt.Sprintf("%d %s", r.Version, r.Value)
		} else if !errors.Is(err, store.ErrNotFound) {
			t.Error(err)
		}
		if got != want[i] {
			t.Errorf("%s: %q, not %q", c.at, got, want[i])
		}
	}
}

// TestEachOfAGroupHasItsOwnOutcome, also with a server that has forgotten the script.
func TestEachOfAGroupHasItsOwnOutcome(t *testing.T) {
	server := redistest.Start(t)
	s := open(t, "redis://"+server.Addr())
	g, want := mixed(t, s, server, "known")
	checkOutcomes(t, s, g, want)
	g, want = mixed(t, s, server, "forgotten")
	server.Must("SCRIPT", "FLUSH")
	checkOutcomes(t, s, g, want)
	if n := s.perScript.Load(); n != mostTogether {
		t.Errorf("a script has %d records from now on", n)
	}
}

// TestAServerWithSlots: one that has all slots of a cluster serves clients that know of none.
func TestAServerWithSlots(t *testing.T) {
	server := redistest.Start(t, "--cluster-enabled", "yes")
	slots := []string{"CLUSTER", "ADDSLOTS"}
	for slot := range 16384 {
		slots = append(slots, strconv.Itoa(slot))
	}
	server.Must(slots...)
	for tries := 0; !strings.Contains(server.Text("CLUSTER", "INFO"), "cluster_state:ok") && tries < 100_000; tries++ {
	}
	s := open(t, "redis://"+server.Addr())
	for _, name := range []string{"at first", "later"} {
		g, want := mixed(t, s, server, name)
		checkOutcomes(t, s, g, want)
		if n := s.perScript.Load(); n != 1 {
			t.Errorf("a script has %d records", n)
		}
	}
}

// TestManyAtATime: each record has been replaced as often as somebody was told so.
func TestManyAtATime(t *testing.T) {
	server := redistest.Start(t)
	s := open(t, "redis://"+server.Addr())
	var all sync.WaitGroup
	for i := range 64 {
		all.Go(func() {
			session := store.Name(strconv.Itoa(i % 16))
			for n := range uint64(20) {
				c := store.Change{Kind: store.Flow, ID: strconv.Itoa(i), Replaces: n, Value: []byte(strings.Repeat("x", i)), TTL: time.Minute}
				if err := s.Commit(background, session, c); err != nil {
					t.Errorf("change %d of record %d: %v", n, i, err)
				}
			}
			if r, err := s.Get(background, store.Address{Session: session, Kind: store.Flow, ID: strconv.Itoa(i)}); err != nil || r.Version != 20 || len(r.Value) != i {
				t.Errorf("record %d is %v, %v", i, r, err)
			}
		})
	}
	all.Wait()
}
