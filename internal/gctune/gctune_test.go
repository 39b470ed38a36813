package gctune

import (
	"runtime"
	"runtime/debug"
	"testing"
)

func TestPercent(t *testing.T) {
	const mib = 1 << 20
	tests := []struct {
		live, roots, level uint64
		want               int
	}{
		{0, 0, 32 * mib, 800}, // of the 4 MiB that Go begins with
		{1 * mib, 1 * mib, 32 * mib, 800},
		{2 * mib, 8 * mib, 32 * mib, 300}, // the goal counts roots, the heap does not hold them
		{8 * mib, 0, 32 * mib, 300},
		{16 * mib, 0, 32 * mib, 100},
		{500 * mib, 0, 32 * mib, 100},
	}
	for _, test := range tests {
		if got := percent(cycle{live: test.live, roots: test.roots, level: test.level}); got != test.want {
			t.Errorf("%d MiB alive: %d %%, want %d %%", test.live/mib, got, test.want)
		}
	}
}

func TestLevelRisesWhileAllocationsDieAndFallsWhenTheyStay(t *testing.T) {
	const mib = 1 << 20
	tests := map[string]struct {
		last, now cycle
		want      uint64
	}{
		"nothing stays":      {cycle{live: 5 * mib, peak: 5 * mib, level: 4 * mib}, cycle{live: 5 * mib, allocated: 40 * mib}, 8 * mib},
		"up to the most":     {cycle{live: 5 * mib, peak: 5 * mib, level: 32 * mib}, cycle{live: 4 * mib, allocated: 40 * mib}, 32 * mib},
		"a tenth stays":      {cycle{live: 5 * mib, peak: 5 * mib, level: 8 * mib}, cycle{live: 9 * mib, allocated: 40 * mib}, 16 * mib},
		"more stays":         {cycle{live: 5 * mib, peak: 5 * mib, level: 32 * mib}, cycle{live: 10 * mib, allocated: 40 * mib}, 8 * mib},
		"down to the least":  {cycle{live: 5 * mib, peak: 5 * mib, level: 8 * mib}, cycle{live: 30 * mib, allocated: 40 * mib}, 4 * mib},
		"an idle collection": {cycle{live: 5 * mib, peak: 5 * mib, allocated: 39 * mib, level: 8 * mib}, cycle{live: 5 * mib, allocated: 40 * mib}, 8 * mib},
		"a lower floor":      {cycle{live: 5 * mib, peak: 5 * mib, allocated: 40 * mib, level: 64 * mib}, cycle{live: 5 * mib, allocated: 40 * mib}, 32 * mib},
		"as much as of late": {cycle{live: 5 * mib, peak: 10 * mib, level: 32 * mib}, cycle{live: 10 * mib, allocated: 20 * mib}, 32 * mib},
	}
	for name, test := range tests {
		if got := level(test.last, test.now, 32*mib); got != test.want {
			t.Errorf("%s: %d MiB, want %d MiB", name, got/mib, test.want/mib)
		}
	}
}

func TestWhatWasAliveOfLateIsForgotten(t *testing.T) {
	last := cycle{peak: 100}
	for range 50 {
		last.peak = last.peakWith(10)
	}
	if last.peak > 10 {
		t.Errorf("the peak is %d after 50 cycles of 10", last.peak)
	}
	if got := last.peakWith(200); got != 200 {
		t.Errorf("the peak is %d, want what is alive: 200", got)
	}
}

func TestFloorFollowsTheHeap(t *testing.T) {
	t.Setenv("GOGC", "")
	before := debug.SetGCPercent(base)
	defer func() {
		floor.Store(0)
		debug.SetGCPercent(before)
	}()
	Floor(32<<20, false)
	for i := range 1000 { // the finalizer runs in a goroutine of its own
		collect()
		if debug.SetGCPercent(base) > 2*base {
			return
		}
		if i == 999 {
			t.Fatal("not adjusted after collections")
		}
		runtime.Gosched()
	}
}

func TestOperatorsGOGCWins(t *testing.T) {
	t.Setenv("GOGC", "50")
	before := debug.SetGCPercent(77)
	defer debug.SetGCPercent(before)
	Floor(1<<30, false)
	if got := debug.SetGCPercent(77); got != 77 {
		t.Fatalf("set to %d %%", got)
	}
}

var garbage []byte

// collect allocates as much as makes a collection count, of which nothing stays, and collects.
func collect() {
	for range 32 {
		garbage = make([]byte, 1<<20)
	}
	garbage = nil
	runtime.GC()
}
