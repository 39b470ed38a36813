package sessions

import (
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// shard is a part of a Table, with its sessions in order of use. It differs from
// the LRU that it holds in what Go's maps don't do: when most sessions are gone
// it gives their memory back.
type shard[V any] struct {
	mu   sync.Mutex
	size int
	lru  *simplelru.LRU[string, *entry[V]]
	most int // how many there were since the LRU was made
}

// roomy is the number of sessions below which an LRU is not worth making anew.
const roomy = 64

func newShard[V any](size int) *shard[V] {
	s := &shard[V]{size: size}
	s.lru = s.empty()
	return s
}

func (s *shard[V]) empty() *simplelru.LRU[string, *entry[V]] {
	lru, _ := simplelru.NewLRU[string, *entry[V]](s.size, nil) // the only error is a size below 1
	return lru
}

// get returns an entry and makes it the newest.
func (s *shard[V]) get(id string) (*entry[V], bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lru.Get(id)
}

func (s *shard[V]) peek(id string) (*entry[V], bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lru.Peek(id)
}

func (s *shard[V]) oldest() (string, *entry[V], bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lru.GetOldest()
}

func (s *shard[V]) ids() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lru.Keys()
}

func (s *shard[V]) entries() []*entry[V] {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lru.Values()
}

func (s *shard[V]) add(id string, e *entry[V]) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lru.Add(id, e)
	s.most = max(s.most, s.lru.Len())
}

// remove reports whether this call took the entry out.
func (s *shard[V]) remove(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	removed := s.lru.Remove(id)
	if s.most >= roomy && s.lru.Len() <= s.most/4 {
		s.shrink()
	}
	return removed
}

func (s *shard[V]) shrink() {
	old := s.lru
	s.lru, s.most = s.empty(), old.Len()
	for _, id := range old.Keys() { // oldest first
		e, _ := old.Peek(id)
		s.lru.Add(id, e)
	}
}
