package http1

import "net/http"

// DefaultTransport returns a transport of one's own that is what http.DefaultTransport is, and
// reads heads of responses of at most MaxHead bytes, over HTTP/2, too.
func DefaultTransport() *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.MaxResponseHeaderBytes = MaxHead
	return t
}
