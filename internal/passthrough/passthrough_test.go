package passthrough

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/rs/zerolog"
)

func handler(t *testing.T, upstream string) http.Handler {
	t.Helper()
	u, err := url.Parse(upstream)
	if err != nil {
		t.Fatal(err)
	}
	relay := New(Options{URL: u, Header: http.Header{"Authorization": {"Bearer ours"}}, Log: zerolog.Nop()})
	t.Cleanup(relay.Close)
	return relay
}

func TestRequestsCrossUnchangedButForHeadersOfTheHop(t *testing.T) {
	const body = `{"jsonrpc":"2.0", "id":1,"method":"server/discover","params":{"x":"\ud800"}}`
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got, _ := io.ReadAll(r.Body)
		if string(got) != body {
			t.Errorf("the server got %q", got)
		}
		if r.URL.Path != "/rpc" || r.URL.RawQuery != "tenant=1" {
			t.Errorf("the server got URL %s", r.URL)
		}
		for name, want := range map[string]string{
			"Mcp-Method": "server/discover", "Authorization": "Bearer ours", "Cookie": "", "Origin": "",
			"Forwarded": "", "X-Forwarded-For": "", "Proxy-Authorization": "", "Sec-Fetch-Mode": "",
		} {
			if got := r.Header.Get(name); got != want {
				t.Errorf("header %s = %q, want %q", name, got, want)
			}
		}
		w.Header().Set("X-Kept", "yes")
		w.WriteHeader(http.StatusTeapot)
		_, _ = io.WriteString(w, "answer")
	}))
	defer server.Close()

	req := httptest.NewRequest(http.MethodPost, "/mcp?theirs=1", strings.NewReader(body))
	req.Header = http.Header{
		"Mcp-Method": {"server/discover"}, "Authorization": {"Bearer theirs"}, "Cookie": {"a=b"}, "Origin": {"http://localhost"},
		"Forwarded": {"for=1"}, "X-Forwarded-For": {"1"}, "Proxy-Authorization": {"x"}, "Sec-Fetch-Mode": {"cors"},
	}
	rec := httptest.NewRecorder()
	handler(t, server.URL+"/rpc?tenant=1").ServeHTTP(rec, req)
	if rec.Code != http.StatusTeapot || rec.Body.String() != "answer" || rec.Header().Get("X-Kept") != "yes" {
		t.Errorf("the client got %d %v %q", rec.Code, rec.Header(), rec.Body)
	}
}

func TestDeadServerIsBadGateway(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	rec := httptest.NewRecorder()
	handler(t, server.URL).ServeHTTP(rec, httptest.NewRequest(http.MethodPost, "/mcp", strings.NewReader("{}")))
	if rec.Code != http.StatusBadGateway || strings.Contains(rec.Body.String(), server.URL) {
		t.Errorf("the client got %d %q", rec.Code, rec.Body)
	}
}
