package budget

import (
	"math"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"
	"weak"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

// own is what GOMEMLIMIT says.
var own = debug.SetMemoryLimit(-1)

// Available returns how much memory the process may use when nobody says so, in bytes:
// what GOMEMLIMIT says, or else three quarters of what its control group allows, or else
// half of the machine's. It is 0 where none of that can be found out.
func Available() int64 {
	if own != math.MaxInt64 {
		return own
	}
	if group, err := memlimit.FromCgroup(); err == nil && group > 0 && group < math.MaxInt64 {
		return int64(group / 4 * 3)
	}
	if machine, err := memlimit.FromSystem(); err == nil {
		return int64(machine / 2)
	}
	return 0
}

// Of returns the budget of a process that may use so much memory, and has the collector
// keep to it; nil for 0. Half of it is for peers: the collector needs room to work in,
// and the last quarter is for what it does not see in time.
func Of(memory int64) *Budget {
	if memory <= 0 {
		return nil
	}
	if own == math.MaxInt64 {
		debug.SetMemoryLimit(memory - memory/4)
	}
	b := New(memory / 2)
	b.Watch()
	return b
}

// Watch has what the collector finds alive count, as far as it is more than what is
// charged. It is for the one budget of a process.
func (b *Budget) Watch() {
	b.watched.Store(true)
	watch(weak.Make(b), 0)
}

// Bounds of how often lookAgain collects: no more than once in so long, and in so many
// times what the last collection took. In the middle of a flood one takes seconds, since it
// waits for processors like everybody: that says nothing about what it costs, and those who
// come after the flood would be refused for all that time.
const (
	lookPause   = time.Second
	lookPart    = 10
	longestLook = 3 * time.Second
)

// untilNextLook returns for how long nobody looks after a collection that took so long.
func untilNextLook(took time.Duration) time.Duration {
	return min(max(lookPause, lookPart*took), longestLook)
}

// lookAgain is for before something is refused. What nobody is charged for may have been
// let go since the last collection, and who is refused gives no reason for the next one: for
// two minutes all would be refused for nothing. It has the collector look now, unless it
// did a moment ago or there is little to win, and reports whether less is alive than counted.
func (b *Budget) lookAgain() bool {
	counted, began := b.uncharged.Load(), time.Now()
	if !b.watched.Load() || counted < b.limit/reserve || began.UnixNano() < b.look.Load() || !b.looking.CompareAndSwap(false, true) {
		return false
	}
	defer b.looking.Store(false)
	runtime.GC()
	now := time.Now()
	b.look.Store(now.Add(untilNextLook(now.Sub(began))).UnixNano())
	found := max(alive()-b.used.Load(), 0)
	if found >= counted {
		return false
	}
	b.uncharged.Store(found)
	return true
}

// watch looks now, and again after each collection: the finalizer of an object that
// nobody refers to runs then. A single look may be wrong, since things come and go
// between the collection and the finalizer: of two the lesser counts.
func watch(of weak.Pointer[Budget], before int64) {
	b := of.Value()
	if b == nil {
		return
	}
	found := max(alive()-b.used.Load(), 0)
	b.uncharged.Store(min(found, before))
	runtime.SetFinalizer(new(*int), func(**int) { watch(of, found) })
}

// alive returns the bytes that the last collection found in use, stacks included.
func alive() int64 {
	samples := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/memory/classes/heap/stacks:bytes"}}
	metrics.Read(samples)
	var sum uint64
	for _, s := range samples {
		if s.Value.Kind() == metrics.KindUint64 {
			sum += s.Value.Uint64()
		}
	}
	return int64(min(sum, math.MaxInt64)) //nolint:gosec // bounded by min
}
