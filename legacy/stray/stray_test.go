package stray_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/legacy/stray"
	"github.com/mcpbridge/bridge/sessions/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// replica is one that walks.
type replica struct {
	*stray.Search
	others []downstream.ReplicaID
	found  []string
	own    bool // what the replica has left counted in the last walk
	fails  error
}

func walker(s store.Store, others ...downstream.ReplicaID) *replica {
	r := &replica{others: others}
	r.Search = stray.New(stray.Options{Store: s, Claims: "claims", Others: func() []downstream.ReplicaID { return r.others }, Found: func(_ context.Context, session string, own bool) error {
		if r.fails != nil {
			return r.fails
		}
		r.found, r.own = append(r.found, session), own
		return nil
	}})
	return r
}

// walks goes on for a while, and returns which sessions were found by then.
func (r *replica) walks(t *testing.T) []string {
	t.Helper()
	r.found = nil
	if err := r.GoOn(t.Context(), time.Second); err != nil {
		t.Fatal(err)
	}
	return r.found
}

// full is a store with sessions, of which every second has two calls.
func full(t *testing.T, sessions int) (s store.Store, calls []string) {
	t.Helper()
	s = store.NewMemory(10 * sessions)
	for i := range sessions {
		name := "s" + strconv.Itoa(10000+i)
		list := []store.Change{{Kind: store.Session, TTL: time.Hour}}
		if i%2 == 1 {
			calls = append(calls, name)
			list = append(list, store.Change{Kind: store.Flow, ID: "1", TTL: time.Hour}, store.Change{Kind: store.Flow, ID: "2", TTL: time.Hour})
		}
		if err := s.Commit(t.Context(), name, list...); err != nil {
			t.Fatal(err)
		}
	}
	return s, calls
}

func wantFound(t *testing.T, what string, got, want []string) {
	t.Helper()
	if slices.Sort(got); !slices.Equal(got, want) {
		t.Errorf("%s: %d sessions are found, not %d", what, len(got), len(want))
	}
}

func TestAllThatHaveCallsAreFoundOnceAtTheStart(t *testing.T) {
	s, calls := full(t, 1001)
	r := walker(s)
	wantFound(t, "at the start", r.walks(t), calls)
	wantFound(t, "then", r.walks(t), nil)
}

// TestOneReplicaWalksForEachThatIsGone, again where one is gone again.
func TestOneReplicaWalksForEachThatIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, calls := full(t, 10)
		one, two := walker(s, 2, 3), walker(s, 1, 3)
		one.walks(t)
		two.walks(t)
		for range 2 {
			one.others, two.others = []downstream.ReplicaID{2}, []downstream.ReplicaID{1}
			wantFound(t, "who notices it first", one.walks(t), calls)
			wantFound(t, "who notices it next", two.walks(t), nil)
			one.others, two.others = []downstream.ReplicaID{2, 3}, []downstream.ReplicaID{1, 3}
			one.walks(t)
			two.walks(t)
			time.Sleep(4 * time.Second)
		}
		two.others = nil // the first is gone, too
		wantFound(t, "who is left", two.walks(t), calls)
	})
}

// TestAReplicaFindsWhatItHasLeftItself, in the walk that it asks for and in no other: while it has calls they are nobody else's.
func TestAReplicaFindsWhatItHasLeftItself(t *testing.T) {
	s, calls := full(t, 10)
	r := walker(s)
	wantFound(t, "at the start", r.walks(t), calls)
	if r.own {
		t.Error("its own count at the start")
	}
	r.Again()
	wantFound(t, "once more", r.walks(t), calls)
	if !r.own {
		t.Error("its own do not count")
	}
	r.others = []downstream.ReplicaID{2}
	r.walks(t)
	r.others = nil
	wantFound(t, "for one that is gone", r.walks(t), calls)
	if r.own {
		t.Error("its own count when another one is gone")
	}
}

// TestAWalkGoesOnWhereItWas: it takes no longer than it may, and nothing is passed over for an error.
func TestAWalkGoesOnWhereItWas(t *testing.T) {
	s, calls := full(t, 1001)
	r := walker(s)
	r.fails = errors.New("unreachable")
	if err := r.GoOn(t.Context(), time.Second); !errors.Is(err, r.fails) {
		t.Errorf("it goes on after %v", err)
	}
	r.fails = nil
	steps := 0
	for ; len(r.found) < len(calls); steps++ {
		if err := r.GoOn(t.Context(), time.Nanosecond); err != nil || steps > 100 {
			t.Fatalf("after %d steps: %v", steps, err)
		}
	}
	wantFound(t, "in steps", r.found, calls)
	if steps < 5 {
		t.Errorf("%d steps for 1001 sessions", steps)
	}
}
