package roundtrip

import (
	"net/http"

	"github.com/mcpbridge/bridge/internal/http1"
)

// redirected returns the request to make where a response leads to another place: only within the
// origin and with the same method (E-42), since credentials never leave it. nil: it leads nowhere like that, or the
// body cannot be sent again.
func redirected(r *http.Request, resp *http.Response) *http.Request {
	if resp.StatusCode != http.StatusTemporaryRedirect && resp.StatusCode != http.StatusPermanentRedirect {
		return nil
	}
	location := resp.Header.Get("Location")
	next, err := r.URL.Parse(location)
	if err != nil || location == "" || !http1.SameOrigin(next, r.URL) {
		return nil
	}
	again, ok := rewound(r)
	if !ok {
		return nil
	}
	next.User = nil
	own := *again
	own.URL = next
	return &own
}
