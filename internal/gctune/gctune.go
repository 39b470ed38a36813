// Package gctune sets how often the garbage collector runs while the heap is
// small. A bridge keeps little alive, so at Go's default it would collect after
// every few megabytes of requests: some hundred times a second under load.
// Measured gain: 6 % of the instructions of a small call, 3 % of a 64 KiB one.
//
// While sessions or waiting calls accumulate it lets the collector run as often
// as usual: what lives long would otherwise be scattered among the garbage of a
// whole cycle, and hold its pages. Measured: 1.5 instead of 4.5 KiB per session.
//
// The memory up to there may lie in huge pages. It is nearly all that the processor
// touches, and walked through from one collection to the next: 8,000 ordinary pages
// are more than a processor has the places of at hand. Measured gain: 6 to 7 % of the
// CPU of a call. They are asked for when the heap first grows that far: what has
// accumulated until then has ordinary pages, which hold it with less waste.
//
// It owns the collector's percentage and the pages of the heap's first bytes, nothing else.
package gctune

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync/atomic"
)

// base is Go's own percentage: the heap may double before a collection.
const base = 100

// least is the heap below which Go does not collect at its default.
const least = 4 << 20

// floor is what Floor was last asked for; 0 ends the adjusting.
var floor atomic.Uint64

// Floor lets the heap grow to at least bytes before it is collected, as long as
// nothing accumulates, and leaves larger heaps to Go's default, so that what is
// held costs no extra memory. With huge these bytes lie in huge pages, where the
// system has them. The operator's own GOGC takes precedence: then Floor does nothing.
func Floor(bytes uint64, huge bool) {
	if os.Getenv("GOGC") != "" || floor.Swap(bytes) != 0 {
		return
	}
	var pages *stretch
	if huge && bytes > 0 {
		pages = reserve(bytes)
		runtime.GC() // else what was reserved counts as alive
	}
	adjust(cycle{level: least, pages: pages})
}

// cycle is what is known at the end of a collection.
type cycle struct {
	live, allocated uint64   // bytes alive, and allocated since the start
	roots           uint64   // bytes of stacks and globals, which the percentage counts too
	level           uint64   // what the heap may grow to, at least
	peak            uint64   // bytes, the most that was alive of late
	pages           *stretch // to lie in huge pages once the level is the most; nil: as it is
}

// adjust sets the percentage that makes the next goal the level, and again after
// each collection: the finalizer of an object that nobody refers to runs then.
func adjust(last cycle) {
	most := floor.Load()
	if most == 0 {
		return
	}
	now := read()
	now.level, now.peak, now.pages = level(last, now, most), last.peakWith(now.live), last.pages
	if now.level == most && now.pages != nil {
		now.pages.advise()
		now.pages = nil
	}
	debug.SetGCPercent(percent(now))
	runtime.SetFinalizer(new(*int), func(**int) { adjust(now) })
}

// level returns how far the heap may grow in the next cycle. It rises quickly to
// the most as long as what is allocated dies, and falls as quickly when more
// than a tenth of it stays, beyond what was alive of late: a store's journal keeps
// what it has until it is full, and then nothing, again and again.
func level(last, now cycle, most uint64) uint64 {
	allocated := now.allocated - last.allocated
	if allocated < last.level/4 {
		return min(last.level, max(most, least)) // somebody asked for this collection, or two minutes had passed: it says nothing
	}
	if now.live > last.peak+allocated/10 {
		return max(last.level/4, least)
	}
	return min(2*last.level, max(most, least))
}

// peakWith returns the peak after a next cycle: an eighth of what was is forgotten.
func (c *cycle) peakWith(live uint64) uint64 { return max(live, c.peak-c.peak/8) }

// percent returns the growth that takes the heap to the level, at least base. Go
// scales its own least heap by the same percentage, which bounds it for small ones.
func percent(c cycle) int {
	if c.level < 2*c.live {
		return base
	}
	most := c.level * 100 / least
	return max(base, int(min(most, (c.level-c.live)*100/max(c.live+c.roots, 1))))
}

// read returns what the latest collection found, and what was allocated.
func read() cycle {
	samples := []metrics.Sample{
		{Name: "/gc/heap/live:bytes"}, {Name: "/gc/heap/allocs:bytes"},
		{Name: "/gc/scan/stack:bytes"}, {Name: "/gc/scan/globals:bytes"},
	}
	metrics.Read(samples)
	var values [4]uint64
	for i, s := range samples {
		if s.Value.Kind() != metrics.KindUint64 {
			return cycle{}
		}
		values[i] = s.Value.Uint64()
	}
	return cycle{live: values[0], allocated: values[1], roots: values[2] + values[3]}
}
