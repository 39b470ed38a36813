package mcp

import "testing"

func TestEveryInputKindHasItsRow(t *testing.T) {
	seen := map[string]bool{"": true}
	for k := range InputKinds {
		if seen[k.Method()] || seen[k.Capability()] {
			t.Errorf("kind %d: %q, %q", k, k.Method(), k.Capability())
		}
		seen[k.Method()], seen[k.Capability()] = true, true
		if got, ok := InputKindOf(k.Method()); got != k || !ok {
			t.Errorf("%s is of kind %d, %v", k.Method(), got, ok)
		}
	}
	if InputKinds > 8 {
		t.Error("an InputKindSet has no room for so many")
	}
}

func TestWhatIsNoInputKindIsNone(t *testing.T) {
	k, ok := InputKindOf("elicitation/createMany")
	if ok || k.Method() != "" || k.Capability() != "" || k.NeedsParams() || k.AsksPerson() {
		t.Errorf("%d, %v", k, ok)
	}
}

func TestSetsOfInputKinds(t *testing.T) {
	s := InputKindSet(0).With(Roots).With(Roots)
	if !s.Has(Roots) || s.Has(Elicitation) || s.Has(Sampling) {
		t.Errorf("%b", s)
	}
}
