package sessions

import (
	"errors"
	"hash/maphash"
	"sync/atomic"
	"time"
)

// shardCount spreads the table over several locks, so that calls of different
// sessions don't meet on one. It is a power of two.
const shardCount = 16

// busyTries bounds how many busy sessions an eviction passes over before the
// newcomer is refused. Those passed over count as used, so the next one looks on.
const busyTries = 64

// Why a Table takes no session in.
var (
	ErrFull   = errors.New("too many sessions, and all are in use")
	ErrClosed = errors.New("no sessions are opened any more")
)

// TableOptions bounds a Table.
type TableOptions[V any] struct {
	// Capacity is the largest number of live sessions; at least 1.
	Capacity int
	// Idle is how long a session lives after its last use; 0 means forever.
	Idle time.Duration
	// Recent is how long a session that was used is safe from eviction; 0: not at all.
	Recent time.Duration
	// Busy reports that a session must not end now, since a flow of it is
	// alive or a client is attached. It may be nil.
	Busy func(V) bool
	// Ended is called exactly once for each session that leaves the table, on
	// the goroutine that took it out, without any lock held. It may be nil.
	Ended func(V, Cause)
}

// Table holds the live sessions of one server in order of use. When it is full a
// newcomer takes the place of the oldest session that was never used, or else of the
// least recently used one, or is refused when all are in use: a flood of new sessions
// harms nobody who has one. Expiry slides
// and costs nothing while sessions are in use: since each shard is ordered, the
// next session to expire is always the oldest one, so Expire never scans.
// All methods are safe for concurrent use.
type Table[V any] struct {
	opt    TableOptions[V]
	seed   maphash.Seed
	start  time.Time
	live   atomic.Int64
	closed atomic.Bool
	shards [shardCount]*shard[V]
}

type entry[V any] struct {
	value V
	used  atomic.Int64 // time since Table.start of the last use
}

// NewTable returns an empty table.
func NewTable[V any](opt TableOptions[V]) *Table[V] {
	opt.Capacity = max(opt.Capacity, 1)
	t := &Table[V]{opt: opt, seed: maphash.MakeSeed(), start: time.Now()}
	for i := range t.shards {
		// A shard never fills up by itself: the table's own count evicts first.
		t.shards[i] = newShard[V](opt.Capacity + 1)
	}
	return t
}

// Get returns the session with this id and counts as a use of it.
func (t *Table[V]) Get(id string) (V, bool) {
	shard := t.shard(id)
	e, ok := shard.get(id)
	if !ok {
		var none V
		return none, false
	}
	now := t.now()
	if t.idle(e, now) && !t.busy(e) {
		t.end(shard, id, e, Expired)
		var none V
		return none, false
	}
	e.used.Store(now)
	return e.value, true
}

// Add puts a session in under a fresh id. When the table is full another one is
// evicted. The error is ErrFull or ErrClosed; Ended is not called then.
func (t *Table[V]) Add(id string, v V) error { return t.AddTo(0, id, v) }

// AddTo is Add to a table of which this many places are kept for others.
func (t *Table[V]) AddTo(kept int, id string, v V) error {
	if t.closed.Load() {
		return ErrClosed
	}
	e := &entry[V]{value: v}
	e.used.Store(t.now())
	shard := t.shard(id)
	if t.live.Add(1) > int64(t.opt.Capacity-kept) && !t.evict() {
		t.live.Add(-1)
		return ErrFull
	}
	shard.add(id, e)
	if t.closed.Load() { // Close may have passed this shard already
		t.end(shard, id, e, Closed)
	}
	return nil
}

// Room reports whether Add would take a session in now.
func (t *Table[V]) Room() bool {
	if t.closed.Load() {
		return false
	}
	if t.live.Load() < int64(t.opt.Capacity) {
		return true
	}
	shard, _, _ := t.evictable()
	return shard != nil
}

// Remove ends the session with this id and reports whether there was one.
func (t *Table[V]) Remove(id string) bool {
	shard := t.shard(id)
	e, ok := shard.peek(id)
	return ok && t.end(shard, id, e, Removed)
}

// TakeOut takes a session out that was not used for this long and is not busy, and
// reports whether it did. Ended is not called: the session goes on elsewhere.
func (t *Table[V]) TakeOut(id string, unused time.Duration) bool {
	shard := t.shard(id)
	e, ok := shard.peek(id)
	if !ok || t.now()-e.used.Load() < int64(unused) || t.busy(e) || !shard.remove(id) {
		return false
	}
	t.live.Add(-1)
	return true
}

// Len returns the number of live sessions.
func (t *Table[V]) Len() int { return int(t.live.Load()) }

// Use is a session and when it was used last.
type Use[V any] struct {
	Value V
	At    time.Time
}

// All returns every live session, without counting as a use of it.
func (t *Table[V]) All() []Use[V] {
	all := make([]Use[V], 0, t.Len())
	for _, shard := range t.shards {
		for _, e := range shard.entries() {
			all = append(all, Use[V]{e.value, t.start.Add(time.Duration(e.used.Load()))})
		}
	}
	return all
}

// Expire ends every session whose idle time has passed and returns how many.
// Its cost is that of the sessions it ends. Busy ones count as used now.
func (t *Table[V]) Expire() (n int) {
	if t.opt.Idle <= 0 {
		return 0
	}
	for _, shard := range t.shards {
		n += t.expire(shard, true) + t.expire(shard, false)
	}
	return n
}

func (t *Table[V]) expire(shard *shard[V], fresh bool) (n int) {
	now := t.now()
	for {
		id, e, ok := shard.oldest(fresh)
		if !ok || !t.idle(e, now) {
			return n
		}
		if t.busy(e) {
			t.refresh(shard, id, e, now)
			continue
		}
		if t.end(shard, id, e, Expired) {
			n++
		}
	}
}

// Close ends all sessions and refuses new ones. It is idempotent.
func (t *Table[V]) Close() {
	t.closed.Store(true)
	for _, shard := range t.shards {
		for _, id := range shard.ids() {
			if e, ok := shard.peek(id); ok {
				t.end(shard, id, e, Closed)
			}
		}
	}
}

// evict takes a session out, if there is one that may go.
func (t *Table[V]) evict() bool {
	for {
		shard, id, e := t.evictable()
		if shard == nil {
			return false
		}
		if t.end(shard, id, e, Evicted) {
			return true
		}
	}
}

// evictable finds the session that goes next, nil when all are in use.
func (t *Table[V]) evictable() (*shard[V], string, *entry[V]) {
	for range busyTries {
		shard, id, e := t.oldest(true)
		if shard == nil {
			shard, id, e = t.oldest(false)
			if shard == nil || t.opt.Recent > 0 && t.now()-e.used.Load() < int64(t.opt.Recent) {
				return nil, "", nil
			}
		}
		if !t.busy(e) {
			return shard, id, e
		}
		t.refresh(shard, id, e, t.now())
	}
	return nil, "", nil
}

// oldest returns the oldest session of all shards.
func (t *Table[V]) oldest(fresh bool) (shard *shard[V], id string, e *entry[V]) {
	for _, s := range t.shards {
		if name, found, ok := s.oldest(fresh); ok && (e == nil || found.used.Load() < e.used.Load()) {
			shard, id, e = s, name, found
		}
	}
	return shard, id, e
}

// end takes a session out with a cause. Only one caller really removes it, which
// makes the end unique.
func (t *Table[V]) end(shard *shard[V], id string, e *entry[V], why Cause) bool {
	if !shard.remove(id) {
		return false
	}
	t.live.Add(-1)
	if t.opt.Ended != nil {
		t.opt.Ended(e.value, why)
	}
	return true
}

func (t *Table[V]) refresh(shard *shard[V], id string, e *entry[V], now int64) {
	e.used.Store(now)
	shard.get(id)
}

func (t *Table[V]) busy(e *entry[V]) bool { return t.opt.Busy != nil && t.opt.Busy(e.value) }

func (t *Table[V]) idle(e *entry[V], now int64) bool {
	return t.opt.Idle > 0 && now-e.used.Load() >= int64(t.opt.Idle)
}

func (t *Table[V]) now() int64 { return int64(time.Since(t.start)) }

func (t *Table[V]) shard(id string) *shard[V] {
	return t.shards[maphash.String(t.seed, id)&(shardCount-1)]
}
