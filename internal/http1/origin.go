package http1

import (
	"cmp"
	"net/url"
	"strings"
)

// MaxRedirects bounds the redirects followed for one request (E-42).
const MaxRedirects = 3

// SameOrigin reports whether two URLs lead to the same scheme, host and port, however these are written
// (RFC 9110, 4.3.1): credentials for one go to the other.
func SameOrigin(a, b *url.URL) bool {
	return a.Scheme == b.Scheme && strings.EqualFold(a.Hostname(), b.Hostname()) && portOf(a) == portOf(b)
}

func portOf(u *url.URL) string {
	return cmp.Or(u.Port(), map[string]string{"http": "80", "https": "443"}[u.Scheme])
}
