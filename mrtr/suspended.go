package mrtr

import (
	"math"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// Suspended is one session's LRU of suspended flows. V is the driver's handle
// on a flow. It bounds what a session that never answers can hold: the flow
// that waited longest makes room, and whoever added the new one ends it with an
// error, so nothing is forgotten (ARCHITECTURE: every flow ends exactly once).
//
// It allocates nothing for the first flow, for most sessions suspend one at a
// time. It is not safe for concurrent use: the session's lock guards it.
type Suspended[V comparable] struct {
	limit int32
	one   bool // the only flow is first
	first V
	flows *simplelru.LRU[V, struct{}] // all flows; nil while there is at most one
}

// NewSuspended returns an LRU for at most limit flows; below 1 counts as 1.
func NewSuspended[V comparable](limit int) Suspended[V] {
	return Suspended[V]{limit: int32(min(max(limit, 1), math.MaxInt32))}
}

// Add suspends flow. When that exceeds the limit it takes out the flow that
// waited longest and returns it with evicted set; the caller must end it.
func (s *Suspended[V]) Add(flow V) (oldest V, evicted bool) {
	if s.flows == nil && (!s.one || s.first == flow) {
		s.first, s.one = flow, true
		return oldest, false
	}
	s.grow()
	if s.flows.Len() == int(s.limit) && !s.flows.Contains(flow) {
		oldest, _, evicted = s.flows.RemoveOldest()
	}
	s.flows.Add(flow, struct{}{})
	return oldest, evicted
}

// grow puts the only flow into an LRU.
func (s *Suspended[V]) grow() {
	if s.flows != nil {
		return
	}
	// The error is for sizes below 1 only. No callback: it would also fire
	// on Remove, which is not an eviction.
	s.flows, _ = simplelru.NewLRU[V, struct{}](int(s.limit), nil)
	s.flows.Add(s.first, struct{}{})
	s.drop()
}

func (s *Suspended[V]) drop() {
	var none V
	s.first, s.one = none, false
}

// Remove takes a flow out because it resumed or ended. It is idempotent.
func (s *Suspended[V]) Remove(flow V) {
	switch {
	case s.flows != nil:
		s.flows.Remove(flow)
		if s.flows.Len() == 0 {
			s.flows = nil
		}
	case s.one && s.first == flow:
		s.drop()
	}
}

// Len returns the number of suspended flows.
func (s *Suspended[V]) Len() int {
	switch {
	case s.flows != nil:
		return s.flows.Len()
	case s.one:
		return 1
	}
	return 0
}
