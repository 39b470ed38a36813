package sessions

import (
	"container/heap"
	"math"
	"sync"
	"time"

	"github.com/mcpbridge/bridge/internal/budget"
)

// parties knows whose sessions a Table holds. It takes no part in their use: the order in a
// party is put right when somebody asks for it, so that each use is paid for once at most.
// Its methods are safe for concurrent use.
type parties[V any] struct {
	places int

	mu    sync.Mutex
	all   map[string]*party[V]
	large map[*party[V]]struct{} // those with an eighth of the places or more: eight at most
}

// party is whose sessions count together, and its sessions in order of use.
type party[V any] struct {
	name     string
	sessions byUse[V]
}

func newParties[V any](places int) *parties[V] {
	return &parties[V]{places: places, all: make(map[string]*party[V]), large: make(map[*party[V]]struct{})}
}

// add puts a session in, unless it has left the table meanwhile.
func (ps *parties[V]) add(name string, e *entry[V]) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if !e.gone {
		ps.addLocked(name, e)
	}
}

func (ps *parties[V]) addLocked(name string, e *entry[V]) {
	p := ps.all[name]
	if p == nil {
		p = &party[V]{name: name}
		ps.all[name] = p
	}
	e.of, e.placed = p, e.last()
	heap.Push(&p.sessions, e)
	ps.countLocked(p)
}

// remove takes a session out for good.
func (ps *parties[V]) remove(e *entry[V]) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	e.gone = true
	ps.removeLocked(e)
}

func (ps *parties[V]) removeLocked(e *entry[V]) {
	p := e.of
	if p == nil {
		return
	}
	heap.Remove(&p.sessions, e.at)
	e.of = nil
	if len(p.sessions) == 0 {
		delete(ps.all, p.name)
	}
	ps.countLocked(p)
}

// move has a session counted as another party's.
func (ps *parties[V]) move(e *entry[V], to string) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if e.of != nil && e.of.name != to {
		ps.removeLocked(e)
		ps.addLocked(to, e)
	}
}

func (ps *parties[V]) countLocked(p *party[V]) {
	if budget.Reserved(len(p.sessions), ps.places) > 0 {
		ps.large[p] = struct{}{}
	} else {
		delete(ps.large, p)
	}
}

// reserved returns how many places are not for one more session of a party; none are where
// nobody knows whose it is.
func (ps *parties[V]) reserved(name string) int {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if p := ps.all[name]; p != nil && name != "" {
		return budget.Reserved(len(p.sessions), ps.places)
	}
	return 0
}

// next returns the session that makes room for one more of a party, nil when none may.
// oldest are the first of those that were never used and of those that were, of anybody's;
// may says whether one was unused for long enough.
//
// Who has many makes room for its own. Others are made room for by who has many, then by
// whoever was idle longest, but not by who has fewer sessions than the newcomer's party,
// unless that has next to nothing.
func (ps *parties[V]) next(name string, oldest [2]*entry[V], may func(*entry[V]) bool) *entry[V] {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	own, has := ps.all[name], 0
	if own != nil {
		has = len(own.sessions)
		if _, large := ps.large[own]; large && may(own.first()) {
			return own.first()
		}
	}
	for i, e := range oldest {
		fits := func(e *entry[V]) bool {
			return e != nil && e.of != nil && may(e) && (has <= budget.Modest(ps.places) || len(e.of.sessions) >= has)
		}
		first := func(e *entry[V]) bool { return fits(e) && e.placed.used() == (i > 0) }
		if e := ps.largestLocked(first); e != nil {
			return e
		}
		if fits(e) {
			return e
		}
		if own != nil && first(own.first()) {
			return own.first()
		}
	}
	return nil
}

// largestLocked returns the oldest one that fits of those who have many.
func (ps *parties[V]) largestLocked(fits func(*entry[V]) bool) (oldest *entry[V]) {
	for p := range ps.large {
		if e := p.first(); fits(e) && (oldest == nil || e.placed < oldest.placed) {
			oldest = e
		}
	}
	return oldest
}

// first returns the session that goes first of a party that has one.
func (p *party[V]) first() *entry[V] {
	for {
		e := p.sessions[0]
		last := e.last()
		if last == e.placed {
			return e
		}
		e.placed = last
		heap.Fix(&p.sessions, 0)
	}
}

// moment is when a session was used last, or opened, in time since Table.start. The smaller
// goes first: those of sessions that were never used are below all others.
type moment int64

func openedAt(at time.Duration) moment { return math.MinInt64 + moment(at) }

func usedAt(at time.Duration) moment { return moment(at) }

func (m moment) used() bool { return m >= 0 }

func (m moment) at() time.Duration {
	if m.used() {
		return time.Duration(m)
	}
	return time.Duration(m - math.MinInt64)
}

// byUse is a heap.Interface of the sessions of a party, by where they were placed.
type byUse[V any] []*entry[V]

// Len implements heap.Interface.
func (b *byUse[V]) Len() int { return len(*b) }

// Less implements heap.Interface.
func (b *byUse[V]) Less(i, j int) bool { return (*b)[i].placed < (*b)[j].placed }

// Swap implements heap.Interface.
func (b *byUse[V]) Swap(i, j int) {
	s := *b
	s[i], s[j] = s[j], s[i]
	s[i].at, s[j].at = i, j
}

// Push implements heap.Interface.
func (b *byUse[V]) Push(x any) {
	e := x.(*entry[V])
	e.at = len(*b)
	*b = append(*b, e)
}

// Pop implements heap.Interface.
func (b *byUse[V]) Pop() any {
	s := *b
	e := s[len(s)-1]
	s[len(s)-1] = nil
	s = s[:len(s)-1]
	if cap(s) >= roomy && len(s) < cap(s)/4 { // slices don't give memory back by themselves
		s = append(make([]*entry[V], 0, 2*len(s)), s...)
	}
	*b = s
	return e
}
