package mrtr

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// However flows come and go, the one that waited longest makes room.
func TestSuspendedBehavesLikeAQueue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(1, 4).Draw(t, "limit")
		s := NewSuspended[int](limit)
		var model []int // oldest first
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			flow := rapid.IntRange(0, 5).Draw(t, "flow")
			at := slices.Index(model, flow)
			if at >= 0 {
				model = slices.Delete(model, at, at+1)
			}
			if rapid.Bool().Draw(t, "remove") {
				s.Remove(flow)
			} else {
				var want int
				full := at < 0 && len(model) == limit
				if full {
					want, model = model[0], model[1:]
				}
				model = append(model, flow)
				if oldest, evicted := s.Add(flow); evicted != full || oldest != want {
					t.Fatalf("evicted %d, %v; want %d, %v", oldest, evicted, want, full)
				}
			}
			if s.Len() != len(model) {
				t.Fatalf("len %d, want %d", s.Len(), len(model))
			}
		}
	})
}
