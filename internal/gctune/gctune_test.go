package gctune

import (
	"runtime"
	"runtime/debug"
	"testing"
)

func TestPercent(t *testing.T) {
	const mib = 1 << 20
	tests := []struct {
		live, floor uint64
		want        int
	}{
		{0, 32 * mib, 3100},
		{8 * mib, 32 * mib, 300},
		{16 * mib, 32 * mib, 100},
		{500 * mib, 32 * mib, 100},
	}
	for _, test := range tests {
		if got := percent(test.live, test.floor); got != test.want {
			t.Errorf("%d MiB alive: %d %%, want %d %%", test.live/mib, got, test.want)
		}
	}
}

func TestFloorFollowsTheHeap(t *testing.T) {
	t.Setenv("GOGC", "")
	before := debug.SetGCPercent(base)
	defer func() {
		floor.Store(0)
		debug.SetGCPercent(before)
	}()
	Floor(32 << 20)
	if got := debug.SetGCPercent(base); got <= base {
		t.Fatalf("a small heap is collected at %d %%", got)
	}
	for i := range 1000 { // the finalizer runs in a goroutine of its own
		runtime.GC()
		if debug.SetGCPercent(base) > base {
			return
		}
		if i == 999 {
			t.Fatal("not adjusted after a collection")
		}
		runtime.Gosched()
	}
}

func TestOperatorsGOGCWins(t *testing.T) {
	t.Setenv("GOGC", "50")
	before := debug.SetGCPercent(77)
	defer debug.SetGCPercent(before)
	Floor(1 << 30)
	if got := debug.SetGCPercent(77); got != 77 {
		t.Fatalf("set to %d %%", got)
	}
}
