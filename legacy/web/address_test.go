package web

import (
	"net/http"
	"testing"
)

func TestAddress(t *testing.T) {
	for remote, want := range map[string]string{
		"192.0.2.7:1234":            "192.0.2.7",
		"[::ffff:192.0.2.7]:1234":   "192.0.2.7",
		"[2001:db8:1:2:3:4:5:6]:80": "2001:db8:1:2::/64",
		"[fe80::1%eth0]:80":         "fe80::/64",
		"@":                         "",
		"":                          "",
	} {
		if got := Address(&http.Request{RemoteAddr: remote}); got != want {
			t.Errorf("%q: %q, not %q", remote, got, want)
		}
	}
}
