package config

import "testing"

func TestListenersCollideOnlyWhereBothCannotBe(t *testing.T) {
	for _, tc := range []struct {
		a, b string
		want bool
	}{
		{"127.0.0.1:9", "127.0.0.1:9", true},
		{":9", "10.0.0.1:9", true},
		{"[::]:9", "localhost:9", true},
		{"Bridge:9", "bridge:9", true},
		{"127.0.0.1:9", "127.0.0.1:10", false},
		{"127.0.0.1:9", "10.0.0.1:9", false},
		{"127.0.0.1:0", "127.0.0.1:0", false}, // any free port
		{"unix:/a", "unix:/b", false},
		{"unix:/a", "127.0.0.1:9", false},
		{"", "", false},
	} {
		if got := collide(tc.a, tc.b); got != tc.want || collide(tc.b, tc.a) != got {
			t.Errorf("%q and %q: %v", tc.a, tc.b, got)
		}
	}
}
