package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/mcpbridge/bridge/mcp"
)

// headersSeen is a modern server that keeps the headers of the last tools/list
// and of the last modern request.
type headersSeen struct {
	URL string
	mu  sync.Mutex
	all []http.Header
}

func newHeadersSeen(t *testing.T) *headersSeen {
	t.Helper()
	s := &headersSeen{}
	answers := canned(http.StatusNotFound, map[string]string{mcp.MethodDiscover: discovered,
		mcp.MethodToolsList: `{"jsonrpc":"2.0","id":ID,"result":{"resultType":"complete","ttlMs":0,"cacheScope":"private","tools":[]}}`})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get(mcp.HeaderMethod) != mcp.MethodDiscover { // of the mounts themselves, at any time
			s.mu.Lock()
			s.all = append(s.all, r.Header.Clone())
			s.mu.Unlock()
		}
		answers.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	s.URL = server.URL
	return s
}

func (s *headersSeen) last() http.Header {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all[len(s.all)-1]
}

// TestEachMountHasItsOwnHeadersAndAuthorization: for clients of both eras. What
// the operator set replaces what the client sent; what proxies say goes nowhere.
func TestEachMountHasItsOwnHeadersAndAuthorization_H1_H12(t *testing.T) {
	server := newHeadersSeen(t)
	file := filepath.Join(t.TempDir(), "b.yaml")
	text := fmt.Sprintf(`listen: 127.0.0.1:0
upstreams:
- {path: /relay, upstream: '%[1]s'}
- {path: /drop, upstream: '%[1]s', authorization: drop}
- {path: /static, upstream: '%[1]s', headers: {Authorization: Bearer ours, X-Team: '7'}}
- {path: /strict, upstream: '%[1]s', modern: refuse, session: required}
`, server.URL)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	p := start(t, "serve", "--config", file)
	for path, want := range map[string][2]string{"/relay": {"Bearer theirs", "evil"}, "/drop": {"", "evil"}, "/static": {"Bearer ours", "7"}} {
		for era, body := range map[string]string{
			"legacy": listTools,
			"modern": `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`,
		} {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+p.address+path, strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			req.Header = http.Header{"Content-Type": {"application/json"}, "Authorization": {"Bearer theirs"}, "X-Team": {"evil"},
				"X-Forwarded-For": {"6.6.6.6"}, "X-Real-Ip": {"6.6.6.6"}, "Forwarded": {"for=6.6.6.6"}, "Cookie": {"a=b"}}
			resp, err := client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			got := server.last()
			if resp.StatusCode != http.StatusOK || strings.Join(got["Authorization"], "|") != want[0] || strings.Join(got["X-Team"], "|") != want[1] {
				t.Errorf("%s, %s client: HTTP %d, the server got Authorization %q, X-Team %q, want %q",
					path, era, resp.StatusCode, got["Authorization"], got["X-Team"], want)
			}
			for _, name := range []string{"X-Forwarded-For", "X-Real-Ip", "Forwarded", "Cookie"} {
				if got[name] != nil {
					t.Errorf("%s, %s client: the server got %s: %q", path, era, name, got[name])
				}
			}
		}
	}
	if status, _ := p.post("/strict", listTools); status != http.StatusBadRequest {
		t.Errorf("/strict answers a request without a session with %d", status)
	}
}
