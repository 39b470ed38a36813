package sessions

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

type ends struct {
	mu   sync.Mutex
	list []string
}

func (e *ends) add(v string, c Cause) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.list = append(e.list, v+": "+c.Error())
}

func TestTableTellsEachEndOnceWithItsCause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var e ends
		tab := NewTable(TableOptions[string]{Capacity: 2, Idle: time.Hour, Ended: e.add})
		tab.Add("", "a", "a")
		time.Sleep(time.Second)
		tab.Add("", "b", "b")
		time.Sleep(time.Second)
		tab.Get("a")
		time.Sleep(time.Second)
		tab.Add("", "c", "c") // b is the least recently used
		want(t, "removed", tab.Remove("a"), true)
		want(t, "removed twice", tab.Remove("a"), false)
		time.Sleep(2 * time.Hour)
		want(t, "expired", tab.Expire(), 1)
		tab.Add("", "d", "d")
		tab.Close()
		tab.Close()
		want(t, "closed", tab.Add("", "e", "e"), ErrClosed)
		want(t, "ends", e.list, []string{
			"b: session evicted: too many sessions", "a: session ended", "c: session expired", "d: bridge is shutting down",
		})
		want(t, "live", tab.Len(), 0)
	})
}

func TestExpiryIsExactWithoutASweep_A33(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var e ends
		tab := NewTable(TableOptions[string]{Capacity: 9, Idle: time.Minute, Ended: e.add})
		tab.Add("", "a", "a")
		time.Sleep(59 * time.Second)
		_, ok := tab.Get("a")
		want(t, "slides", ok, true)
		time.Sleep(59 * time.Second)
		_, ok = tab.Get("a")
		want(t, "slides", ok, true)
		time.Sleep(time.Minute)
		_, ok = tab.Get("a")
		want(t, "expired", ok, false)
		want(t, "ends", e.list, []string{"a: session expired"})
	})
}

func TestBusySessionsDoNotExpireAndAreEvictedLast_A33(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var e ends
		tab := NewTable(TableOptions[string]{
			Capacity: 3, Idle: time.Minute, Ended: e.add, Busy: func(v string) bool { return v == "busy" },
		})
		tab.Add("", "1", "busy")
		time.Sleep(time.Second)
		tab.Add("", "2", "b")
		time.Sleep(time.Second)
		tab.Add("", "3", "c")
		tab.Add("", "4", "d")
		want(t, "evicted", e.list, []string{"b: session evicted: too many sessions"})
		time.Sleep(time.Hour)
		want(t, "expired", tab.Expire(), 2)
		want(t, "left", tab.Len(), 1)
		_, ok := tab.Get("1")
		want(t, "the busy one", ok, true)
	})
}

func TestFullTableOfBusySessionsRefusesNewOnes(t *testing.T) {
	tab := NewTable(TableOptions[int]{Capacity: 400, Busy: func(int) bool { return true }})
	for i := range 400 {
		_ = tab.Add("", fmt.Sprint(i), i)
	}
	want(t, "room", tab.Room(""), false)
	for i := range 50 {
		want(t, "one more", tab.Add("", fmt.Sprint(400+i), i), ErrFull)
	}
	want(t, "live", tab.Len(), 400)
}

func TestFloodOfNewSessionsEndsNoneThatIsInUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var e ends
		tab := NewTable(TableOptions[string]{Capacity: 20, Recent: time.Minute, Ended: e.add})
		for i := range 10 {
			_ = tab.Add("", fmt.Sprint("used", i), "used")
			tab.Get(fmt.Sprint("used", i))
		}
		time.Sleep(time.Hour) // however long ago that was
		for i := range 1000 {
			time.Sleep(time.Millisecond)
			want(t, "newcomer", tab.Add("", fmt.Sprint(i), "new"), error(nil))
		}
		want(t, "evicted", len(e.list), 990)
		for _, end := range e.list {
			want(t, "end", end, "new: session evicted: too many sessions")
		}
		for i := range 10 {
			_, ok := tab.Get(fmt.Sprint(990 + i))
			want(t, "the newest stay", ok, true)
		}
		e.list = nil
		for i := range 10 { // which now are in use, unlike the first ones
			want(t, "newcomer", tab.Add("", fmt.Sprint("late", i), "late"), error(nil))
			tab.Get(fmt.Sprint("late", i))
		}
		want(t, "evicted", e.list, slices.Repeat([]string{"used: session evicted: too many sessions"}, 10))
		want(t, "room", tab.Room(""), false)
		want(t, "one more", tab.Add("", "more", "more"), ErrFull)
		time.Sleep(time.Minute)
		want(t, "room", tab.Room(""), true)
		want(t, "a minute later", tab.Add("", "more", "more"), error(nil))
	})
}

func TestCapacityHoldsUnderConcurrency(t *testing.T) {
	var ended atomic.Int64
	tab := NewTable(TableOptions[int]{Capacity: 100, Idle: time.Hour, Ended: func(int, Cause) { ended.Add(1) }})
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 500 {
				id := fmt.Sprintf("%d-%d", g, i)
				tab.Add("", id, i)
				tab.Get(id)
				if i%3 == 0 {
					tab.Remove(id)
				}
				if i%50 == 0 {
					tab.Expire()
				}
			}
		})
	}
	wg.Wait()
	if tab.Len() > 100 {
		t.Errorf("%d sessions live", tab.Len())
	}
	tab.Close()
	want(t, "every session ended once", ended.Load(), 4000)
	want(t, "live", tab.Len(), 0)
}

// Whoever is added again under its id is there once, whether it was used or not, and makes room once.
func TestASessionThatIsAddedAgainIsThereOnce(t *testing.T) {
	for _, used := range []bool{false, true} {
		var e ends
		table := NewTable(TableOptions[string]{Capacity: 3, Ended: e.add})
		for i := range 3 {
			want(t, "added", table.Add("p", "same", fmt.Sprint("same", i)), error(nil))
			if used {
				table.Get("same")
			}
		}
		want(t, "live", table.Len(), 1)
		want(t, "ends", e.list, []string{"same0: session ended", "same1: session ended"})
		v, _ := table.Get("same")
		want(t, "the last one stands", v, "same2")
		e.list = nil
		for i := range 4 {
			want(t, "others", table.Add("p", fmt.Sprint(i), fmt.Sprint(i)), error(nil))
		}
		want(t, "live", table.Len(), 3)
		want(t, "evicted", len(e.list), 2)
		table.Close()
		want(t, "ends", len(e.list), 5)
		want(t, "live", table.Len(), 0)
	}
}

// Who looks for a session that makes room comes upon one that has left its shard, as it does for a moment where
// another goroutine ends it, only once.
func TestWhoHasLeftMakesRoomForNobody(t *testing.T) {
	table := NewTable(TableOptions[int]{Capacity: 16})
	for i := range 16 { // of one who has many
		_ = table.Add("", fmt.Sprint(i), i)
	}
	gone, _ := table.shard("0").peek("0")
	table.shard("0").remove(gone)
	want(t, "one more", table.Add("", "new", 16), error(nil))
	_, there := table.Get("1")
	want(t, "the next one is there", there, false)
}

func TestSessionIDsAreUnguessable_A26(t *testing.T) {
	seen := map[string]bool{}
	for range 1000 {
		id := NewID()
		if len(id) != 26 || seen[id] {
			t.Fatalf("id %q", id)
		}
		seen[id] = true
	}
}

func TestTableShrinksWithoutForgettingOrder(t *testing.T) {
	const n = 16 * roomy * 8
	tab := NewTable(TableOptions[int]{Capacity: n})
	for i := range n {
		tab.Add("", fmt.Sprint(i), i)
	}
	for i := range n - 100 {
		if !tab.Remove(fmt.Sprint(i)) {
			t.Fatalf("session %d is lost", i)
		}
	}
	want(t, "left", tab.Len(), 100)
	for _, s := range tab.shards {
		if s.most >= 4*roomy {
			t.Errorf("a shard is still one for %d sessions", s.most)
		}
		ids := s.ids()
		for i := 1; i < len(ids); i++ {
			before, _ := s.peek(ids[i-1])
			after, _ := s.peek(ids[i])
			if before.value >= after.value {
				t.Fatalf("the order of use changed: %v", ids)
			}
		}
	}
	for i := n - 100; i < n; i++ {
		if got, ok := tab.Get(fmt.Sprint(i)); !ok || got != i {
			t.Fatalf("session %d is %d, %t", i, got, ok)
		}
	}
}

func TestSomePlacesAreKeptForOthers(t *testing.T) {
	table := NewTable(TableOptions[int]{Capacity: 8, Recent: time.Hour})
	for i := range 8 {
		want := error(nil)
		if i == 7 {
			want = ErrFull
		}
		id := string(rune('a' + i))
		if err := table.Add("many", id, i); !errors.Is(err, want) {
			t.Errorf("session %d: %v, want %v", i, err, want)
		}
		table.Get(id) // it is in use
	}
	want(t, "room", table.Room("many"), false)
	if err := table.Add("other", "other", 0); err != nil || table.Len() != 8 {
		t.Errorf("%v; %d sessions", err, table.Len())
	}
}

// TestIdleTimeBeginsWhenAUseIsOver_A33, and so does the order in which sessions make room.
func TestIdleTimeBeginsWhenAUseIsOver_A33(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var e ends
		busy := map[string]bool{"long": true}
		tab := NewTable(TableOptions[string]{Capacity: 2, Idle: time.Minute, Ended: e.add, Busy: func(v string) bool { return busy[v] }})
		tab.Add("", "long", "long")
		tab.Get("long")
		time.Sleep(30 * time.Second)
		tab.Add("", "short", "short")
		tab.Get("short")
		time.Sleep(45 * time.Second)
		tab.Touch("long")
		busy["long"] = false
		tab.Touch("nobody")
		tab.Add("", "new", "new")
		want(t, "who made room", e.list, []string{"short: session evicted: too many sessions"})
		time.Sleep(59 * time.Second)
		want(t, "expired", tab.Expire(), 0)
		time.Sleep(time.Second)
		want(t, "expired", tab.Expire(), 2)
	})
}

// TestWhatIsOwedKeepsASessionFromExpiring, but not from making room.
func TestWhatIsOwedKeepsASessionFromExpiring(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var e ends
		owes := true
		tab := NewTable(TableOptions[string]{Capacity: 1, Idle: time.Minute, Ended: e.add, Owes: func(string) bool { return owes }})
		tab.Add("", "a", "a")
		time.Sleep(time.Hour)
		want(t, "expired", tab.Expire(), 0)
		time.Sleep(time.Hour)
		_, ok := tab.Get("a")
		want(t, "found", ok, true)
		tab.Add("", "b", "b")
		want(t, "who made room", e.list, []string{"a: session evicted: too many sessions"})
		owes = false
		time.Sleep(time.Minute)
		want(t, "expired", tab.Expire(), 1)
	})
}
