package fleet

import (
	"net/http"
	"net/http/httptest"
	"path"
	"strings"
	"testing"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"github.com/mcpbridge/bridge/internal/mount"
	"github.com/mcpbridge/bridge/internal/testmode"
	"github.com/mcpbridge/bridge/legacy/web"
	"github.com/mcpbridge/bridge/upstream/streamable"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// over says how to mount the server at a URL.
func over(at, url string, log zerolog.Logger) Spec {
	return Spec{Path: at, Identity: url, Log: log, Open: func() (*mount.Mount, error) {
		return mount.New(mount.Options{Upstream: streamable.Options{URL: url, StandardTransport: testmode.StandardHTTP()}})
	}}
}

func open(t *testing.T, hosts []string, specs ...Spec) *Fleet {
	t.Helper()
	return openLogged(t, hosts, zerolog.Nop(), specs...)
}

func openLogged(t *testing.T, hosts []string, log zerolog.Logger, specs ...Spec) *Fleet {
	t.Helper()
	f, err := Open(specs, Options{
		SSE: func(endpoint string) (string, string) {
			return path.Join(endpoint, "sse"), path.Join(endpoint, "messages")
		},
		Host: web.HostAllowed(hosts), Log: log,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.Close)
	return f
}

func probe(f *Fleet, host, path string) (status int, body string) {
	r := httptest.NewRequest(http.MethodGet, path, nil)
	r.Host = host
	w := httptest.NewRecorder()
	f.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

// A page that came by DNS rebinding could learn where the server stands.
func TestHealthProbesNameNothingAndAreGuarded(t *testing.T) {
	const secret = "http://127.0.0.1:1/internal"
	for _, tc := range []struct {
		host    string
		allowed []string
		healthz int
	}{
		{"localhost:8080", nil, 200}, {"127.0.0.1:8080", nil, 200}, {"[::1]:8080", nil, 200}, {"[::1]", nil, 200},
		{"10.1.2.3:8080", nil, 200}, {"10.1.2.3", nil, 200},
		{"evil.example", nil, 403}, {"evil.example:8080", nil, 403}, {"evil.example", []string{"mcp.example"}, 403},
		{"mcp.example", []string{"mcp.example"}, 200}, {"evil.example", []string{"*"}, 200}, {"", nil, 200}, {"", []string{"mcp.example"}, 200},
	} {
		f := open(t, tc.allowed, over("/mcp", secret, zerolog.Nop()))
		if status, body := probe(f, tc.host, "/healthz"); status != tc.healthz || strings.Contains(body, "127.0.0.1") {
			t.Errorf("%q with %q: /healthz answers %d %s", tc.host, tc.allowed, status, body)
		}
		want := tc.healthz
		if want == 200 {
			want = 503
		}
		if status, body := probe(f, tc.host, "/readyz"); status != want || strings.Contains(body, "127.0.0.1") || strings.Contains(body, "/mcp") {
			t.Errorf("%q with %q: /readyz answers %d %s", tc.host, tc.allowed, status, body)
		}
	}
}
