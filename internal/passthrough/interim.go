package passthrough

import (
	"context"
	"net/http"
)

// final sends requests without what ReverseProxy listens to while they are under way:
// interim responses (1xx), which it would hand on as they are, with any field in their heads,
// and for which it takes off what the bridge has put on the response before.
type final struct{ http.RoundTripper }

// alone finds the context of a request as it was before ReverseProxy listened.
type alone struct{}

// unheard returns the context that a request is to have.
func unheard(ctx context.Context) context.Context { return context.WithValue(ctx, alone{}, ctx) }

// RoundTrip implements http.RoundTripper.
func (f final) RoundTrip(r *http.Request) (*http.Response, error) {
	if ctx, ok := r.Context().Value(alone{}).(context.Context); ok {
		r = r.WithContext(ctx)
	}
	return f.RoundTripper.RoundTrip(r)
}
