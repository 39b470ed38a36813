// Package roster has a set that shrinks: it gives memory back when most of its members have
// gone. Go's maps never do: after a rush of connections or sessions a plain one
// stays as large as it ever was.
package roster

import "maps"

// Set is such a set. The zero Set is empty. Its owner's lock guards it.
type Set[K comparable] struct {
	set  map[K]struct{}
	most int // how many it held since the map was made
}

// roomy is the number of members below which a map is not worth making anew.
const roomy = 1024

// Add is idempotent.
func (s *Set[K]) Add(member K) {
	if s.set == nil {
		s.set = make(map[K]struct{})
	}
	s.set[member] = struct{}{}
	s.most = max(s.most, len(s.set))
}

// Remove is idempotent. Its cost is constant over many removals.
func (s *Set[K]) Remove(member K) {
	delete(s.set, member)
	if s.most < roomy || len(s.set) > s.most/4 {
		return
	}
	smaller := make(map[K]struct{}, len(s.set))
	maps.Copy(smaller, s.set)
	s.set, s.most = smaller, len(smaller)
}

// Len returns the number of members.
func (s *Set[K]) Len() int { return len(s.set) }

// All returns the members of this moment.
func (s *Set[K]) All() []K {
	members := make([]K, 0, len(s.set))
	for member := range s.set {
		members = append(members, member)
	}
	return members
}
