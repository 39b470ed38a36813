package roster

import (
	"slices"
	"testing"
)

func TestSetShrinksAndForgetsNobody(t *testing.T) {
	var s Set[int]
	s.Remove(-1)
	const all = 4 * roomy
	for i := range all {
		s.Add(i)
	}
	s.Add(0)
	for i := range all - 10 {
		s.Remove(i)
		s.Remove(i)
		if left := all - i - 1; s.Len() != left {
			t.Fatalf("%d members, want %d", s.Len(), left)
		}
	}
	left := s.All()
	if len(left) != 10 || s.most >= roomy {
		t.Errorf("%d members, in a map for %d", len(left), s.most)
	}
	for i := all - 10; i < all; i++ {
		if !slices.Contains(left, i) {
			t.Error("a member is lost")
		}
	}
}
