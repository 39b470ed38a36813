package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/gorilla/websocket"

	"github.com/mcpbridge/bridge/internal/peers/issuer"
)

// noTools are the answers of a server without any.
var noTools = map[string]string{
	"server/discover": discovered,
	"tools/list":      `{"jsonrpc":"2.0","id":ID,"result":{"resultType":"complete","tools":[],"ttlMs":0,"cacheScope":"private"}}`,
}

// guardedServer is a modern server that takes some tokens only, and keeps those that it saw.
type guardedServer struct {
	*httptest.Server
	mu   sync.Mutex
	seen []string
}

func newGuardedServer(t *testing.T, takes func(authorization string) bool, login string) *guardedServer {
	g := &guardedServer{}
	answers := canned(http.StatusNotFound, noTools)
	g.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			_, _ = io.WriteString(w, `{"resource":"`+g.URL+`/mcp","authorization_servers":["`+login+`"]}`)
			return
		}
		authorization := r.Header.Get("Authorization")
		g.mu.Lock()
		g.seen = append(g.seen, authorization)
		g.mu.Unlock()
		if !takes(authorization) {
			w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="`+g.URL+`/.well-known/oauth-protected-resource/mcp"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		answers.ServeHTTP(w, r)
	}))
	t.Cleanup(g.Close)
	return g
}

// saw reports whether a request came with a header that holds text.
func (g *guardedServer) saw(text string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return strings.Contains(strings.Join(g.seen, "\n"), text)
}

// postAs sends a message with a token and returns status, session, challenge and body.
func postAs(t *testing.T, url, token, session, body string) (int, http.Header, string) {
	t.Helper()
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	if session != "" {
		req.Header.Set("Mcp-Session-Id", session)
	}
	if strings.Contains(body, "2026-07-28") {
		req.Header.Set("MCP-Protocol-Version", "2026-07-28")
		req.Header.Set("Mcp-Method", "tools/list")
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, resp.Header, string(text)
}

const opening = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`

// A bridge at which clients' tokens end gets a token of each one's own for the server,
// for clients of both eras and over every transport that carries headers.
func TestClientsTokensEndAtTheBridgeAndAreExchanged(t *testing.T) {
	s := issuer.NewSigner(t)
	server := newGuardedServer(t, func(a string) bool { return strings.HasPrefix(a, "Bearer for-") }, s.URL)
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("hush\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	const public = "https://tools.example.com/mcp"
	p := start(t, "serve", "--listen", "127.0.0.1:0", "--upstream", server.URL+"/mcp", "--public-url", public, "--auth.mode", "terminate",
		"--auth.clients.issuer", s.URL, "--auth.clients.scopes", "tools:call", "--auth.grant", "exchange", "--auth.client-id", "gateway", "--auth.client-secret-file", secret)
	url := "http://" + p.address + "/mcp"
	ada, grace := s.Sign(s.Claims("ada", public)), s.Sign(s.Claims("grace", public))

	for _, body := range []string{opening, listTools, modernTools} {
		if status, header, _ := postAs(t, url, "", "", body); status != 401 || !strings.Contains(header.Get("WWW-Authenticate"), `resource_metadata="https://tools.example.com/.well-known/oauth-protected-resource/mcp"`) {
			t.Errorf("without a token: %d %v", status, header)
		}
		if status, _, text := postAs(t, url, ada, "", body); status != 200 || !strings.Contains(text, `"result"`) {
			t.Errorf("with one: %d %s", status, text)
		}
	}
	weak := s.Claims("ada", public)
	weak["scope"] = "tools:read"
	if status, header, _ := postAs(t, url, s.Sign(weak), "", listTools); status != 403 || !strings.Contains(header.Get("WWW-Authenticate"), "insufficient_scope") {
		t.Errorf("without the scope: %d %v", status, header)
	}

	// A session is the subject's, whatever token stands for it (H-6).
	_, header, _ := postAs(t, url, ada, "", opening)
	session := header.Get("Mcp-Session-Id")
	if status, _, text := postAs(t, url, s.Sign(s.Claims("ada", public)), session, listTools); status != 200 {
		t.Errorf("the next token of the subject: %d %s", status, text)
	}
	if status, _, _ := postAs(t, url, grace, session, listTools); status != 404 {
		t.Errorf("another subject's token opened the session: %d", status)
	}
	if status, _, _ := postAs(t, url, "", session, listTools); status != 401 {
		t.Errorf("the session's id alone: %d", status)
	}
	if _, _, text := postAs(t, url, s.Sign(s.Claims("mallory", public)), "", listTools); !strings.Contains(text, "not for mallory") {
		t.Errorf("who gets no token is told %s", text)
	}

	if server.saw(ada) || server.saw(grace) || !server.saw("for-ada") {
		t.Error("a client's own token reached the server")
	}
	s.Set(func() {
		if len(s.Exchanges) == 0 {
			t.Error("nothing was exchanged")
		} else if last := s.Exchanges[0]; last.Get("resource") != server.URL+"/mcp" {
			t.Errorf("the exchange was for %v", last)
		}
	})
	otherTransports(t, p.address, ada)
}

// otherTransports opens a WebSocket and an event stream of 2024-11-05, without and with a token.
func otherTransports(t *testing.T, address, token string) {
	t.Helper()
	for _, bearer := range []string{"", token} {
		header := http.Header{}
		if bearer != "" {
			header.Set("Authorization", "Bearer "+bearer)
		}
		conn, resp, err := websocket.DefaultDialer.Dial("ws://"+address+"/mcp", header)
		if (err == nil) != (bearer != "") || resp == nil || bearer == "" && resp.StatusCode != 401 {
			t.Errorf("a WebSocket with %q: %v %v", bearer, err, resp)
		}
		if err == nil {
			_ = conn.WriteMessage(websocket.TextMessage, []byte(opening))
			if _, text, err := conn.ReadMessage(); err != nil || !strings.Contains(string(text), `"result"`) {
				t.Errorf("a WebSocket got %s %v", text, err)
			}
			_ = conn.Close()
		}
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+"/sse", nil)
		req.Header = header
		stream, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		stream.Body.Close()
		if want := map[bool]int{true: 200, false: 401}[bearer != ""]; stream.StatusCode != want {
			t.Errorf("HTTP+SSE with %q: %s", bearer, stream.Status)
		}
	}
}

// With a header of the bridge's own, and what its refusal comes to.
func TestClientsTokensEndBeforeAStaticHeader(t *testing.T) {
	s := issuer.NewSigner(t)
	for _, good := range []bool{true, false} {
		server := newGuardedServer(t, func(a string) bool { return good && a == "Bearer ours" }, s.URL)
		p := start(t, "serve", "--listen", "127.0.0.1:0", "--upstream", server.URL+"/mcp", "--header", "Authorization: Bearer ours", "--auth.mode", "terminate",
			"--auth.clients.issuer", s.URL, "--auth.clients.audience", "urn:tools")
		for _, body := range []string{listTools, modernTools} {
			status, header, text := postAs(t, "http://"+p.address+"/mcp", s.Sign(s.Claims("ada", "urn:tools")), "", body)
			if good && (status != 200 || !strings.Contains(text, `"result"`)) {
				t.Errorf("got %d %s", status, text)
			}
			if !good && (status == 401 || header.Get("WWW-Authenticate") != "" || !strings.Contains(text, "refuses the credentials that the bridge has for it")) {
				t.Errorf("refused credentials of the bridge's own came to %d %v %s", status, header, text)
			}
		}
		if server.saw("ey") {
			t.Error("a client's own token reached the server")
		}
	}
}

// A server that names an authorization server of its own gets neither the tokens that clients
// brought nor the secret of the bridge: by default they go to who gave the clients their tokens.
func TestClientsTokensAreNotExchangedWhereAHostileServerSays(t *testing.T) {
	s, evil := issuer.NewSigner(t), issuer.NewSigner(t)
	server := newGuardedServer(t, func(string) bool { return false }, evil.URL)
	const public = "https://tools.example.com/mcp"
	p := start(t, "serve", "--listen", "127.0.0.1:0", "--upstream", server.URL+"/mcp", "--public-url", public, "--auth.mode", "terminate",
		"--auth.clients.issuer", s.URL, "--auth.grant", "exchange", "--auth.client-id", "gateway", "--auth.client-secret", "hush")
	token := s.Sign(s.Claims("ada", public))
	for _, body := range []string{listTools, modernTools} {
		if _, _, text := postAs(t, "http://"+p.address+"/mcp", token, "", body); !strings.Contains(text, s.URL) || !strings.Contains(text, evil.URL) || !strings.Contains(text, "auth.issuer") {
			t.Errorf("told %s", text)
		}
	}
	if server.saw("ey") {
		t.Error("a client's own token reached the server")
	}
	evil.Set(func() {
		if len(evil.Exchanges) > 0 {
			t.Errorf("the server's own authorization server got %v", evil.Exchanges[0])
		}
	})
}

// With an account of the bridge's own.
func TestClientsTokensEndBeforeAnAccountOfTheBridge(t *testing.T) {
	s, i := issuer.NewSigner(t), issuer.New(t)
	i.MCP = canned(http.StatusNotFound, noTools)
	p := start(t, "serve", "--listen", "127.0.0.1:0", "--upstream", i.Endpoint(), "--public-url", "https://tools.example.com", "--auth.mode", "terminate", "--auth.clients.issuer", s.URL,
		"--auth.grant", "client-credentials", "--auth.issuer", i.URL, "--auth.client-id", "machine", "--auth.client-secret", "hush", "--auth.store", "file", "--auth.dir", t.TempDir())
	for _, body := range []string{opening, listTools, modernTools} {
		status, _, text := postAs(t, "http://"+p.address+"/mcp", s.Sign(s.Claims("ada", "https://tools.example.com/mcp")), "", body)
		if status != 200 || !strings.Contains(text, `"result"`) {
			t.Errorf("got %d %s", status, text)
		}
	}
}
