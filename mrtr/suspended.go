package mrtr

import "github.com/hashicorp/golang-lru/v2/simplelru"

// Suspended is one session's LRU of suspended flows. V is the driver's handle
// on a flow. It bounds what a session that never answers can hold: the flow
// that waited longest makes room, and whoever added the new one ends it with an
// error, so nothing is forgotten (ARCHITECTURE: every flow ends exactly once).
//
// It allocates nothing before the first flow, for most sessions never suspend
// one. It is not safe for concurrent use: the session's lock guards it.
type Suspended[V comparable] struct {
	limit int
	flows *simplelru.LRU[V, struct{}]
}

// NewSuspended returns an LRU for at most limit flows; below 1 counts as 1.
func NewSuspended[V comparable](limit int) Suspended[V] {
	return Suspended[V]{limit: max(limit, 1)}
}

// Add suspends flow. When that exceeds the limit it takes out the flow that
// waited longest and returns it with evicted set; the caller must end it.
func (s *Suspended[V]) Add(flow V) (oldest V, evicted bool) {
	if s.flows == nil {
		// The error is for sizes below 1 only. No callback: it would also fire
		// on Remove, which is not an eviction.
		s.flows, _ = simplelru.NewLRU[V, struct{}](s.limit, nil)
	}
	if s.flows.Len() == s.limit && !s.flows.Contains(flow) {
		oldest, _, evicted = s.flows.RemoveOldest()
	}
	s.flows.Add(flow, struct{}{})
	return oldest, evicted
}

// Remove takes a flow out because it resumed or ended. It is idempotent.
func (s *Suspended[V]) Remove(flow V) {
	if s.flows != nil {
		s.flows.Remove(flow)
	}
}

// Len returns the number of suspended flows.
func (s *Suspended[V]) Len() int {
	if s.flows == nil {
		return 0
	}
	return s.flows.Len()
}
