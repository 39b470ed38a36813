package web

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/rs/zerolog"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestAcceptIsReadLeniently_E5(t *testing.T) {
	for accept, want := range map[string]Accept{
		"application/json":                         AcceptJSON,
		"Text/Event-Stream; q=0.1":                 AcceptSSE,
		"application/json, text/event-stream":      AcceptBoth,
		"*/*":                                      AcceptBoth,
		"application/*;q=0.0, text/*":              AcceptSSE,
		"text/html":                                0,
		"application/json;q=0, text/event-stream;": AcceptSSE,
	} {
		if got := AcceptOf(http.Header{"Accept": {accept}}); got != want {
			t.Errorf("%s: got %b, want %b", accept, got, want)
		}
	}
	if got := AcceptOf(http.Header{}); got != AcceptBoth {
		t.Errorf("without a header: got %b", got)
	}
}

func FuzzHeaders(f *testing.F) {
	f.Add("application/json;q=0.5, */*;q=0", "localhost:1", "http://[::1]:80")
	f.Fuzz(func(_ *testing.T, accept, host, origin string) {
		_ = AcceptOf(http.Header{"Accept": {accept}})
		g := NewGuard(nil, nil, nil, zerolog.Nop())
		r := &http.Request{Host: host, Header: http.Header{"Origin": {origin}}}
		_ = g.Admit(httptest.NewRecorder(), r)
		_ = g.origin(origin, host) // also of a host that was refused
	})
}
