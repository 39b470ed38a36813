package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/mcpbridge/bridge/internal/peers/issuer"
)

// fetchJSON reads a document of the bridge, as addressed to a host.
func fetchJSON(t *testing.T, url, host string) (int, map[string]any) {
	t.Helper()
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	req.Host = host
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var document map[string]any
	_ = json.NewDecoder(resp.Body).Decode(&document)
	return resp.StatusCode, document
}

// challenged posts without a token and returns the challenge.
func challenged(t *testing.T, url, host, body string) string {
	t.Helper()
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	req.Host = host
	req.Header.Set("Content-Type", "application/json")
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
	if resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("%s: %s", body, resp.Status)
	}
	return resp.Header.Get("WWW-Authenticate")
}

const modernTools = `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`

// Clients of every era that sign in themselves are led to metadata of the bridge's
// own, which name the address that they know (H-3, H.3).
func TestClientsSignInByTheBridgesMetadata_H3(t *testing.T) {
	i := issuer.New(t)
	p := start(t, "serve", "--listen", "127.0.0.1:0", "--upstream", i.Endpoint())
	base := "http://" + p.address
	own := `resource_metadata="` + base + `/.well-known/oauth-protected-resource/mcp"`
	for era, body := range map[string]string{
		"stateless": listTools, "modern": modernTools,
		"session": `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`,
	} {
		if got := challenged(t, base+"/mcp", "", body); !strings.Contains(got, own) {
			t.Errorf("%s: the challenge is %s", era, got)
		}
	}
	if status, document := fetchJSON(t, base+"/.well-known/oauth-protected-resource/mcp", ""); status != 200 || document["resource"] != base+"/mcp" {
		t.Errorf("metadata: %d %v", status, document)
	}
	if status, document := fetchJSON(t, base+"/.well-known/oauth-authorization-server", ""); status != 200 || document["issuer"] != i.URL {
		t.Errorf("metadata of the authorization server: %d %v", status, document)
	}
	if status, _ := fetchJSON(t, base+"/.well-known/oauth-protected-resource/mcp", "evil.example.com"); status != http.StatusForbidden {
		t.Errorf("a rebound name got %d", status)
	}
}

// Behind a proxy clients know another address, which the bridge is then reached by.
func TestThePublicURLIsTheResource_H3(t *testing.T) {
	i := issuer.New(t)
	p := start(t, "serve", "--listen", "127.0.0.1:0", "--upstream", i.Endpoint(), "--public-url", "https://tools.example.com/team/mcp")
	base := "http://" + p.address
	own := `resource_metadata="https://tools.example.com/.well-known/oauth-protected-resource/team/mcp"`
	if got := challenged(t, base+"/mcp", "tools.example.com", listTools); !strings.Contains(got, own) {
		t.Errorf("the challenge is %s", got)
	}
	status, document := fetchJSON(t, base+"/.well-known/oauth-protected-resource/team/mcp", "tools.example.com")
	if status != 200 || document["resource"] != "https://tools.example.com/team/mcp" {
		t.Errorf("metadata: %d %v", status, document)
	}
}

// Where clients' tokens do not reach the server there is nothing to sign in to.
func TestNoMetadataWhereTokensReachNobody(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	for _, flags := range [][]string{{"--authorization", "drop"}, {"--header", "Authorization: Bearer ours"}, {"--auth.mode", "agent", "--auth.dir", t.TempDir(), "--auth.store", "file"}} {
		p := start(t, append([]string{"serve", "--listen", "127.0.0.1:0", "--upstream", server.URL + "/mcp"}, flags...)...)
		if status, _ := fetchJSON(t, "http://"+p.address+"/.well-known/oauth-protected-resource/mcp", ""); status != http.StatusNotFound {
			t.Errorf("%v: %d", flags, status)
		}
	}
}

// What is handed on to the server for clients without metadata is for the pages that may use the endpoint:
// those of other origins neither reach the server by it nor read what it says.
func TestForeignPagesReachNothingOfTheServer_H3(t *testing.T) {
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost && (r.URL.Path == "/register" || r.URL.Path == "/token") {
			asked.Add(1)
			_, _ = io.WriteString(w, `{}`)
			return
		}
		http.NotFound(w, r)
	}))
	defer server.Close()
	p := start(t, "serve", "--listen", "127.0.0.1:0", "--upstream", server.URL+"/mcp", "--allowed-origins", "https://tools.example.com")
	const own = "https://tools.example.com"
	for _, path := range []string{"/register", "/token"} {
		for _, page := range []struct {
			method, origin, site string
			status               int
			asks                 int32
		}{
			{http.MethodPost, "https://evil.example.com", "cross-site", http.StatusForbidden, 0},
			{http.MethodOptions, "https://evil.example.com", "cross-site", http.StatusForbidden, 0},
			{http.MethodPost, "null", "cross-site", http.StatusForbidden, 0},
			{http.MethodPost, "", "cross-site", http.StatusForbidden, 0},
			{http.MethodPost, own, "cross-site", http.StatusOK, 1},
			{http.MethodOptions, own, "cross-site", http.StatusNoContent, 0},
			{http.MethodPost, "", "", http.StatusOK, 1},
		} {
			before := asked.Load()
			req, _ := http.NewRequestWithContext(t.Context(), page.method, "http://"+p.address+path, strings.NewReader("{}"))
			req.Header.Set("Content-Type", "application/json")
			req.Header.Set("Sec-Fetch-Mode", "cors")
			for name, value := range map[string]string{"Origin": page.origin, "Sec-Fetch-Site": page.site} {
				if value != "" {
					req.Header.Set(name, value)
				}
			}
			resp, err := client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			readable := page.origin
			if page.status == http.StatusForbidden {
				readable = ""
			}
			if got := asked.Load() - before; resp.StatusCode != page.status || got != page.asks || resp.Header.Get("Access-Control-Allow-Origin") != readable {
				t.Errorf("%s %s of %q: %d, the server was asked %d times, %q may read it", page.method, path, page.origin, resp.StatusCode, got, resp.Header.Get("Access-Control-Allow-Origin"))
			}
		}
	}
}
