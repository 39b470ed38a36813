package budget

import (
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

const long = 1000 - overhead // of which eight take 8000 bytes

// One tenant does not get all of a store, and what is removed, or has expired, makes room.
func TestTheLastEighthOfAStoreIsForOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewRoom(8000)
		var all []Kept
		take := func(tenant string, want int) {
			t.Helper()
			for n := 0; ; n++ {
				k := r.Empty()
				if err := k.Set(tenant, long, time.Hour); err != nil {
					if n != want || !errors.Is(err, ErrNoRoom) {
						t.Errorf("%q got %d records in, not %d: %v", tenant, n, want, err)
					}
					return
				}
				all = append(all, k)
			}
		}
		take("greedy", 7)
		take("modest", 1)
		take("late", 0)
		if err := all[0].Set("greedy", long, time.Minute); err != nil {
			t.Errorf("a record that is changed: %v", err)
		}
		if err := all[0].Set("greedy", long+1, time.Minute); !errors.Is(err, ErrNoRoom) {
			t.Errorf("one that grows: %v", err)
		}
		all[0].Charge("greedy", long+1, time.Minute) // an answer
		all[0].Release()
		all[0].Release()
		take("late", 1)
		all[1].Renew(3 * time.Hour)
		time.Sleep(2 * time.Hour)
		if used := r.Used(); used != 1000 {
			t.Errorf("%d bytes are kept of what has expired but for one record", used)
		}
		for i := range all {
			all[i].Release()
		}
		if used := r.Used(); used != 0 || len(r.tenants) != 0 {
			t.Errorf("%d bytes of %d tenants are left", used, len(r.tenants))
		}
		take("", 8) // nobody knows whose they are
	})
}

// What was left behind is found again, once.
func TestWhatIsLeftInAStoreIsFoundAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewRoom(8000)
		k := r.Empty()
		if err := k.Set("a", long, time.Hour); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Minute)
		k = r.Find("a", long, 50*time.Minute-time.Second)
		if used := r.Used(); used != 1000 {
			t.Errorf("%d bytes are kept", used)
		}
		k.Release()
		if used := r.Used(); used != 0 {
			t.Errorf("%d bytes are kept after their record was removed", used)
		}
		k = r.Find("a", long, time.Hour) // another process kept it
		if used := r.Used(); used != 1000 {
			t.Errorf("%d bytes are kept with what another process did", used)
		}
		twice := r.Find("a", long, time.Hour)
		k.Release()
		twice.Release()
		if used := r.Used(); used != 0 {
			t.Errorf("%d bytes are kept of nothing", used)
		}
	})
}

// What has expired counts for a slot at most: answers that are kept for seconds would take a minute of room each otherwise.
func TestWhatExpiredIsGivenBackSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewRoom(8000)
		k := r.Empty()
		if err := k.Set("a", long, 2*time.Second); err != nil {
			t.Fatal(err)
		}
		time.Sleep((2 + slotSeconds) * time.Second)
		if used := r.Used(); used != 0 {
			t.Errorf("%d bytes are kept", used)
		}
	})
}

func TestAStoreWithoutBounds(t *testing.T) {
	var r *Room
	k, found := r.Empty(), r.Find("a", 1<<40, time.Hour)
	if err := k.Set("a", 1<<40, time.Hour); err != nil {
		t.Error(err)
	}
	k.Charge("a", 1, time.Hour)
	k.Renew(time.Hour)
	k.Release()
	found.Release()
}

// Whoever saves a record and whoever says that it is in use need not know of each other.
func TestARecordIsRenewedWhileItChanges(t *testing.T) {
	r := NewRoom(1 << 20)
	k := r.Empty()
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for i := range 100 {
				_ = k.Set("a", i, time.Hour)
				k.Renew(time.Hour)
				k.Charge("a", i, time.Minute)
			}
		})
	}
	all.Wait()
	k.Release()
	if used := r.Used(); used != 0 {
		t.Errorf("%d bytes are left", used)
	}
}

// TestARoomGrowsWithTheDisk: it was measured while that was full.
func TestARoomGrowsWithTheDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, size, asked := NewRoom(1000), int64(0), 0
		r.Grow(func() int64 { asked++; return size })
		keep := func() error {
			k := r.Empty()
			return k.Set("", 4000, time.Hour)
		}
		for range 100 {
			if keep() == nil {
				t.Fatal("there is room on a full disk")
			}
		}
		if size = 5000; keep() == nil || asked != 1 {
			t.Errorf("it is measured %d times in a second", asked)
		}
		time.Sleep(time.Second)
		if err := keep(); err != nil {
			t.Error(err)
		}
		size = 0
		time.Sleep(time.Second)
		if keep() == nil || r.size != 5000 {
			t.Errorf("it has %d bytes", r.size)
		}
	})
}

// TestNobodyWaitsForADiskThatIsMeasured: it may hang. Who finds no place meanwhile is told so.
func TestNobodyWaitsForADiskThatIsMeasured(t *testing.T) {
	r := NewRoom(1000)
	r.Grow(func() int64 {
		if !r.mu.TryLock() {
			t.Fatal("the room is locked meanwhile")
		}
		r.mu.Unlock()
		other := r.Empty()
		if err := other.Set("", 4000, time.Hour); !errors.Is(err, ErrNoRoom) {
			t.Errorf("another one: %v", err)
		}
		return 5000
	})
	k := r.Empty()
	if err := k.Set("", 4000, time.Hour); err != nil {
		t.Error(err)
	}
}
