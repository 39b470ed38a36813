package config

import "testing"

// TestOnlyStoresOfANetworkAreShared: what begins like one is none.
func TestOnlyStoresOfANetworkAreShared(t *testing.T) {
	for url, want := range map[string]struct {
		kind, rest string
		shared     bool
	}{
		"memory:": {"memory", "", false}, "file:/a:b": {"file", "/a:b", false}, "redis://h/2": {"redis", "//h/2", true},
		"rediss://h": {"redis", "//h", true}, "redis+sentinel://h/n": {"redis", "//h/n", true}, "redis+cluster://h,i": {"redis", "//h,i", true},
		"redisx://h": {"", "//h", false}, "": {"", "", false},
	} {
		s := Store{URL: url}
		if kind, rest := s.Kind(); kind != want.kind || rest != want.rest || s.Shared() != want.shared {
			t.Errorf("%q: %q, %q, shared %v", url, kind, rest, s.Shared())
		}
	}
}
