package order

import (
	"slices"
	"sync"
	"testing"
)

type (
	lock_a_First  struct{} //nolint:staticcheck // as test/locks writes them
	lock_b_Second struct{} //nolint:staticcheck // likewise
)

// watch returns what is taken out of order while a test runs.
func watch(t *testing.T) *[]string {
	t.Helper()
	var seen []string
	oldRows, oldBroken := rows, broken
	rows = map[string]int{"a.First": 1, "b.Second": 2}
	broken = func(next, held string) { seen = append(seen, held+" "+next) }
	t.Cleanup(func() { rows, broken = oldRows, oldBroken })
	return &seen
}

// take and leave are the locks' methods, out of the sight of a linter that wants something
// done in between.
func take(l sync.Locker)  { l.Lock() }
func leave(l sync.Locker) { l.Unlock() }

func TestLocksInOrderAreTaken(t *testing.T) {
	seen := watch(t)
	var first Mutex[lock_a_First]
	var second RWMutex[lock_b_Second]
	read := reader{second.RLock, second.RUnlock}
	for range 2 {
		take(&first)
		take(read)
		leave(read)
		take(&second)
		leave(&first)
		leave(&second)
	}
	if len(*seen) > 0 || len(holders) > 0 {
		t.Errorf("out of order: %v; still held: %v", *seen, holders)
	}
}

// reader takes a lock for reading.
type reader struct{ lock, unlock func() }

func (r reader) Lock()   { r.lock() }
func (r reader) Unlock() { r.unlock() }

func TestWhatIsTakenOutOfOrderIsTold(t *testing.T) {
	seen := watch(t)
	var first, another Mutex[lock_a_First]
	var second RWMutex[lock_b_Second]
	read := reader{second.RLock, second.RUnlock}
	take(read)
	take(&first)
	take(&another) // of the same row
	leave(&another)
	if !another.TryLock() { // waits for nobody
		t.Error("a lock that is free was not taken")
	}
	if want := []string{"b.Second a.First", "b.Second a.First", "a.First a.First"}; !slices.Equal(*seen, want) {
		t.Errorf("%q, want %q", *seen, want)
	}
	leave(&another)
	leave(&first)
	leave(read)
}

func TestAnotherGoroutineGivesItBack(t *testing.T) {
	seen := watch(t)
	var first Mutex[lock_a_First]
	var second Mutex[lock_b_Second]
	take(&second)
	done := make(chan struct{})
	go func() { leave(&second); close(done) }()
	<-done
	take(&first)
	leave(&first)
	if len(*seen) > 0 {
		t.Error(*seen)
	}
}
