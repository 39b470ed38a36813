package budget

import "testing"

// One tenant does not get all places, and what it gives back can be taken again.
func TestTheLastPlacesAreForOthers(t *testing.T) {
	p := NewPlaces(16)
	var frees []func()
	take := func(tenant string, want int) {
		t.Helper()
		for n := 0; ; n++ {
			free, others := p.Take(tenant)
			if free == nil {
				if n != want || others != (p.Taken() < p.Size()) {
					t.Errorf("%q got %d places; others are left: %v", tenant, n, others)
				}
				return
			}
			frees = append(frees, free)
		}
	}
	take("greedy", 14)
	take("modest", 2)
	take("late", 0)
	for _, free := range frees {
		free()
		free()
	}
	if p.Taken() != 0 || len(p.of) != 0 {
		t.Errorf("%d places of %d parties are left", p.Taken(), len(p.of))
	}
	take("", 16) // nobody knows whose they are
	p = NewPlaces(7)
	take("alone", 7)
}

func TestTheLastEighthIsForWhoHasLittle(t *testing.T) {
	for _, tc := range []struct{ has, places, want int }{{0, 7, 0}, {6, 7, 0}, {0, 8, 0}, {1, 8, 1}, {1249, 10000, 0}, {1250, 10000, 1250}} {
		if got := Reserved(tc.has, tc.places); got != tc.want {
			t.Errorf("of %d places %d are kept from who has %d, want %d", tc.places, got, tc.has, tc.want)
		}
	}
}
