package fleet

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/rs/zerolog"
)

func TestWhoIsAtNoEndpointIsToldWhereItIs(t *testing.T) {
	const beside = "look at the path of the address in the client's settings"
	for _, tc := range []struct {
		mounts   []string
		path     string
		says     string
		endpoint string // in the log
	}{
		{[]string{"/mcp"}, "/mcp/", "there is no endpoint at /mcp/; the endpoint is /mcp, spelled exactly so", "/mcp"},
		{[]string{"/mcp"}, "/MCP", "there is no endpoint at /MCP; the endpoint is /mcp, spelled exactly so", "/mcp"},
		{[]string{"/mcp"}, "/sse/", "there is no endpoint at /sse/; the endpoint is /sse, spelled exactly so", "/sse"},
		{[]string{"/mcp"}, "/", "there is no endpoint at /; " + beside, ""},
		{[]string{"/a", "/b/mcp", "/B/mcp"}, "/b/mcp/", "the endpoint is /b/mcp, spelled exactly so", "/b/mcp"},
		{[]string{"/a", "/b/mcp", "/B/mcp"}, "/b/MCP", "the endpoint is /B/mcp, spelled exactly so", "/B/mcp"},
		{[]string{"/a", "/b/mcp"}, "/c", "there is no endpoint at /c; " + beside, ""},
		{[]string{"/mcp"}, "/questions/q/ABCDEFGHIJKLMNOPQRSTUVWXYZ", "there is no endpoint at /questions/q/ABCDEFGH…; " + beside, ""},
	} {
		var specs []Spec
		for _, at := range tc.mounts {
			specs = append(specs, over(at, "http://127.0.0.1:1/"+at, zerolog.Nop()))
		}
		var log bytes.Buffer
		f := openLogged(t, nil, zerolog.New(&log), specs...)
		status, body := probe(f, "localhost", tc.path)
		if status != http.StatusNotFound || !strings.HasPrefix(body, `{"jsonrpc":"2.0"`) || !strings.Contains(body, tc.says) {
			t.Errorf("%q at %v: %d %s", tc.path, tc.mounts, status, body)
		}
		line := log.String()
		if !strings.Contains(line, `"level":"info"`) || !strings.Contains(line, "no endpoint") || tc.endpoint != "" && !strings.Contains(line, `"endpoint":"`+tc.endpoint+`"`) {
			t.Errorf("%q at %v: the log says %s", tc.path, tc.mounts, line)
		}
		if strings.Contains(line+body, "XYZ") {
			t.Errorf("%s: a token is told", tc.path)
		}
	}
}

// A page that came by DNS rebinding learns nothing, and clients that look for metadata unasked do not fill the log.
func TestNoEndpointIsNamedToForeignPagesNorLoggedForLooks(t *testing.T) {
	var log bytes.Buffer
	f := openLogged(t, nil, zerolog.New(&log).Level(zerolog.InfoLevel), over("/mcp", "http://127.0.0.1:1", zerolog.Nop()))
	if status, _ := probe(f, "localhost", "/.well-known/oauth-protected-resource/mcp"); status != http.StatusNotFound || log.Len() > 0 {
		t.Errorf("%d %s", status, log.String())
	}
	if status, body := probe(f, "evil.example", "/mcp/"); status != http.StatusForbidden || strings.Contains(body, "mcp") || !strings.Contains(log.String(), `"host":"evil.example"`) {
		t.Errorf("%d %s %s", status, body, log.String())
	}
}

func TestAProbesPathTakesGETOnly(t *testing.T) {
	f := open(t, nil, over("/mcp", "http://127.0.0.1:1", zerolog.Nop()))
	w := httptest.NewRecorder()
	f.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "http://localhost/healthz", nil))
	if w.Code != http.StatusMethodNotAllowed || w.Header().Get("Allow") != "GET, HEAD" {
		t.Errorf("%d %v", w.Code, w.Header())
	}
}

// A mount may be at the root, which is for all paths then.
func TestAMountAtTheRoot(t *testing.T) {
	f := open(t, nil, over("/", "http://127.0.0.1:1", zerolog.Nop()))
	if status, _ := probe(f, "localhost", "/"); status != http.StatusMethodNotAllowed {
		t.Error(status)
	}
}
