package sessions

import (
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// shard is a part of a Table, with its sessions in order of use. It differs from
// the LRUs that it holds in what Go's maps don't do: when most sessions are gone
// it gives their memory back.
type shard[V any] struct {
	size int

	mu    sync.Mutex
	fresh *lru[V] // sessions that were never used since they were opened
	used  *lru[V]
	most  int // how many there were since the LRUs were made
}

type lru[V any] = simplelru.LRU[string, *entry[V]]

// roomy is the number of sessions below which LRUs are not worth making anew.
const roomy = 64

func newShard[V any](size int) *shard[V] {
	s := &shard[V]{size: size}
	s.fresh, s.used = s.empty(), s.empty()
	return s
}

func (s *shard[V]) empty() *lru[V] {
	empty, _ := simplelru.NewLRU[string, *entry[V]](s.size, nil) // the only error is a size below 1
	return empty
}

// get returns an entry and makes it the one that was used last.
func (s *shard[V]) get(id string) (*entry[V], bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e, ok := s.used.Get(id); ok {
		return e, true
	}
	e, ok := s.fresh.Peek(id)
	if ok {
		s.fresh.Remove(id)
		s.used.Add(e.id, e) // its own: id may be a part of a whole request
	}
	return e, ok
}

func (s *shard[V]) peek(id string) (*entry[V], bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e, ok := s.used.Peek(id); ok {
		return e, true
	}
	return s.fresh.Peek(id)
}

// oldest returns the session that was opened, or used, before all others: of the
// fresh ones, or of those that were used.
func (s *shard[V]) oldest(fresh bool) (string, *entry[V], bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if fresh {
		return s.fresh.GetOldest()
	}
	return s.used.GetOldest()
}

func (s *shard[V]) ids() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append(s.fresh.Keys(), s.used.Keys()...)
}

func (s *shard[V]) entries() []*entry[V] {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append(s.fresh.Values(), s.used.Values()...)
}

func (s *shard[V]) lenLocked() int { return s.fresh.Len() + s.used.Len() }

// add puts an entry in, and returns the one whose place it takes, nil when there is none.
func (s *shard[V]) add(e *entry[V]) (before *entry[V]) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, in := range [...]*lru[V]{s.fresh, s.used} {
		if same, ok := in.Peek(e.id); ok {
			before = same
			in.Remove(e.id)
		}
	}
	s.fresh.Add(e.id, e)
	s.most = max(s.most, s.lenLocked())
	return before
}

// remove reports whether this call took the entry out. Another one may have its id by now.
func (s *shard[V]) remove(e *entry[V]) (removed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, in := range [...]*lru[V]{s.fresh, s.used} {
		if same, _ := in.Peek(e.id); same == e {
			removed = in.Remove(e.id)
		}
	}
	if s.most >= roomy && s.lenLocked() <= s.most/4 {
		s.shrinkLocked()
	}
	return removed
}

func (s *shard[V]) shrinkLocked() {
	s.most = s.lenLocked()
	s.fresh, s.used = s.copyOf(s.fresh), s.copyOf(s.used)
}

func (s *shard[V]) copyOf(old *lru[V]) *lru[V] {
	smaller := s.empty()
	for _, id := range old.Keys() { // oldest first
		e, _ := old.Peek(id)
		smaller.Add(id, e)
	}
	return smaller
}
