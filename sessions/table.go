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
	// Idle is how long a session lives after its last use, which is over when Touch says so; 0 means forever.
	Idle time.Duration
	// Recent is how long a session that was used is safe from eviction; 0: not at all.
	Recent time.Duration
	// Busy reports that a session must not end now, since a flow of it is
	// alive or a client is attached. It may be nil.
	Busy func(V) bool
	// Owes reports that the client of a session may come for something yet: it does not expire, but may make room for another
	// one. It may be nil.
	Owes func(V) bool
	// Ended is called exactly once for each session that leaves the table, on
	// the goroutine that took it out, without any lock held. It may be nil.
	Ended func(V, Cause)
}

// Table holds the live sessions of one server in order of use. When it is full a
// newcomer takes the place of the oldest session that was never used, or else of the
// least recently used one, or is refused when all are in use: a flood of new sessions
// harms nobody who has one. Whoever has many sessions makes room for its own, and for
// others before these do; the last eighth of the places is for who has less than an
// eighth (parties.next has the order). Expiry slides
// and costs nothing while sessions are in use: since each shard is ordered, the
// next session to expire is always the oldest one, so Expire never scans.
// All methods are safe for concurrent use.
type Table[V any] struct {
	opt    TableOptions[V]
	seed   maphash.Seed
	start  time.Time
	live   atomic.Int64
	closed atomic.Bool
	of     *parties[V]
	shards [shardCount]*shard[V]
}

type entry[V any] struct {
	id     string
	value  V
	newest atomic.Int64 // a moment

	// Guarded by parties.mu.
	of     *party[V] // nil before it is there, and afterwards
	at     int       // its place there, which is that of this moment
	placed moment
	gone   bool
}

// use notes one at this time.
func (e *entry[V]) use(now time.Duration) { e.newest.Store(int64(usedAt(now))) }

func (e *entry[V]) last() moment { return moment(e.newest.Load()) }

// NewTable returns an empty table.
func NewTable[V any](opt TableOptions[V]) *Table[V] {
	opt.Capacity = max(opt.Capacity, 1)
	t := &Table[V]{opt: opt, seed: maphash.MakeSeed(), start: time.Now(), of: newParties[V](opt.Capacity)}
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
	if t.idle(e, now) && !t.stays(e) {
		t.end(e, Expired)
		var none V
		return none, false
	}
	e.use(now)
	return e.value, true
}

// Touch says that a session with this id was in use until now, if there is one, and ends none. Before it is not busy any more, or does
// not owe anything: between the two it might expire, for its last use may have begun before any time.
func (t *Table[V]) Touch(id string) {
	if e, ok := t.shard(id).get(id); ok {
		e.use(t.now())
	}
}

// Has reports whether there is a session with this id, which is no use of it.
func (t *Table[V]) Has(id string) bool {
	_, ok := t.shard(id).peek(id)
	return ok
}

// Add puts a session of a party in; "" is the party of all of whom nobody knows whose they are.
// When there is no place for it another one is evicted, and one of the same id, which is
// there already, is removed for it. The error is ErrFull or ErrClosed; Ended is not called then.
func (t *Table[V]) Add(party, id string, v V) error {
	if t.closed.Load() {
		return ErrClosed
	}
	e := &entry[V]{id: id, value: v}
	e.newest.Store(int64(openedAt(t.now())))
	if t.live.Add(1) > t.places(party) && !t.evict(party) {
		t.live.Add(-1)
		return ErrFull
	}
	if before := t.shard(id).add(e); before != nil {
		t.left(before, Removed)
	}
	t.of.add(party, e)
	if t.closed.Load() { // Close may have passed this shard already
		t.end(e, Closed)
	}
	return nil
}

// places returns how many there are for a party.
func (t *Table[V]) places(party string) int64 { return int64(t.opt.Capacity - t.of.reserved(party)) }

// Room reports whether Add would take a session of a party in now.
func (t *Table[V]) Room(party string) bool {
	if t.closed.Load() {
		return false
	}
	return t.live.Load() < t.places(party) || t.evictable(party) != nil
}

// Move has a session counted as another party's from now on.
func (t *Table[V]) Move(id, party string) {
	if e, ok := t.shard(id).peek(id); ok {
		t.of.move(e, party)
	}
}

// Remove ends the session with this id at its client's wish, and reports whether there was one.
func (t *Table[V]) Remove(id string) bool { return t.End(id, Removed) }

// End ends the session with this id for a cause, and reports whether there was one.
func (t *Table[V]) End(id string, why Cause) bool {
	e, ok := t.shard(id).peek(id)
	return ok && t.end(e, why)
}

// TakeOut takes a session out that was not used for this long and is not busy, and
// reports whether it did. Ended is not called: the session goes on elsewhere.
func (t *Table[V]) TakeOut(id string, unused time.Duration) bool {
	shard := t.shard(id)
	e, ok := shard.peek(id)
	if !ok || t.now()-e.last().at() < unused || t.busy(e) || !shard.remove(e) {
		return false
	}
	t.of.remove(e)
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
			all = append(all, Use[V]{e.value, t.start.Add(e.last().at())})
		}
	}
	return all
}

// Expire ends every session whose idle time has passed and returns how many.
// Its cost is that of the sessions it ends. Those that stay all the same count as used now.
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
		_, e, ok := shard.oldest(fresh)
		if !ok || !t.idle(e, now) {
			return n
		}
		if t.stays(e) {
			t.refresh(e, now)
			continue
		}
		if t.end(e, Expired) {
			n++
		}
	}
}

// evict takes a session out for one of a party, if there is one that may go.
func (t *Table[V]) evict(party string) bool {
	for {
		e := t.evictable(party)
		if e == nil {
			return false
		}
		if t.end(e, Evicted) {
			return true
		}
	}
}

// evictable finds the session that goes next for one of a party, nil when all are in use.
func (t *Table[V]) evictable(party string) *entry[V] {
	for range busyTries {
		e := t.of.next(party, [2]*entry[V]{t.oldest(true), t.oldest(false)}, t.mayGo)
		if e == nil || !t.busy(e) {
			return e
		}
		t.refresh(e, t.now())
	}
	return nil
}

func (t *Table[V]) mayGo(e *entry[V]) bool {
	last := e.last()
	return !last.used() || t.now()-last.at() >= t.opt.Recent
}

// oldest returns the oldest session of all shards.
func (t *Table[V]) oldest(fresh bool) (oldest *entry[V]) {
	for _, s := range t.shards {
		if _, e, ok := s.oldest(fresh); ok && (oldest == nil || e.last() < oldest.last()) {
			oldest = e
		}
	}
	return oldest
}

// end takes a session out with a cause. Only one caller really removes it, which
// makes the end unique.
func (t *Table[V]) end(e *entry[V], why Cause) bool {
	if !t.shard(e.id).remove(e) {
		t.of.remove(e) // so that nobody who looks for one that may go comes upon it for ever
		return false
	}
	t.left(e, why)
	return true
}

// left does what is to be done after a session was taken out of its shard.
func (t *Table[V]) left(e *entry[V], why Cause) {
	t.of.remove(e)
	t.live.Add(-1)
	if t.opt.Ended != nil {
		t.opt.Ended(e.value, why)
	}
}

func (t *Table[V]) refresh(e *entry[V], now time.Duration) {
	e.use(now)
	t.shard(e.id).get(e.id)
}

func (t *Table[V]) busy(e *entry[V]) bool { return t.opt.Busy != nil && t.opt.Busy(e.value) }

// stays reports whether a session does not expire, however long it was unused.
func (t *Table[V]) stays(e *entry[V]) bool {
	return t.busy(e) || t.opt.Owes != nil && t.opt.Owes(e.value)
}

func (t *Table[V]) idle(e *entry[V], now time.Duration) bool {
	return t.opt.Idle > 0 && now-e.last().at() >= t.opt.Idle
}

func (t *Table[V]) now() time.Duration { return time.Since(t.start) }

func (t *Table[V]) shard(id string) *shard[V] {
	return t.shards[maphash.String(t.seed, id)&(shardCount-1)]
}
