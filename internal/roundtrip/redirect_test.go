package roundtrip

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestE42RedirectsWithinTheOriginAreFollowed: servers that are mounted in a framework have the
// path with a slash at its end, and redirect the one without.
func TestE42RedirectsWithinTheOriginAreFollowed(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		t.Error("credentials left the origin")
	}))
	defer elsewhere.Close()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		to := func(status int, location string) {
			w.Header().Set("Location", location)
			w.WriteHeader(status)
		}
		switch r.URL.Path {
		case "/temporary":
			to(307, "/here/")
		case "/permanent":
			to(308, "here/")
		case "/absolute":
			to(307, "http://"+r.Host+"/here/")
		case "/named":
			to(307, "http://user:secret@"+r.Host+"/here/")
		case "/loop":
			to(307, "/loop")
		case "/elsewhere":
			to(307, elsewhere.URL+"/")
		case "/other":
			to(303, "/here/")
		case "/nowhere":
			to(307, "")
		default:
			user, _, _ := r.BasicAuth()
			_, _ = io.WriteString(w, r.Method+" "+r.Header.Get("Authorization")+user+" "+string(body))
		}
	}))
	defer server.Close()
	tr := New(Options{})
	defer tr.CloseIdleConnections()
	for path, want := range map[string]struct {
		status int
		body   string
	}{
		"/here/":     {200, "POST Bearer t text"},
		"/temporary": {200, "POST Bearer t text"},
		"/permanent": {200, "POST Bearer t text"},
		"/absolute":  {200, "POST Bearer t text"},
		"/named":     {200, "POST Bearer t text"},
		"/loop":      {307, ""},
		"/elsewhere": {307, ""},
		"/other":     {303, ""},
		"/nowhere":   {307, ""},
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+path, strings.NewReader("text"))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer t")
		resp, err := tr.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if resp.StatusCode != want.status || string(body) != want.body {
			t.Errorf("%s: %d %q, want %d %q", path, resp.StatusCode, body, want.status, want.body)
		}
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+"/temporary", io.MultiReader(strings.NewReader("text")))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := tr.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusTemporaryRedirect {
		t.Errorf("a body that is there once only was sent again, or not at all: %d", resp.StatusCode)
	}
}
