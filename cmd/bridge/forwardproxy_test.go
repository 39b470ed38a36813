package main

import (
	"encoding/json"
	"encoding/pem"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/mcpbridge/bridge/internal/testport"
)

// forwardProxy is a proxy as companies have it: names resolve nowhere else. Every name
// leads to one server. It keeps which were asked for.
type forwardProxy struct {
	*httptest.Server
	mu    sync.Mutex
	asked map[string]bool
}

func newForwardProxy(t *testing.T, server string) *forwardProxy {
	p := &forwardProxy{asked: map[string]bool{}}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		p.asked[r.Host] = true
		p.mu.Unlock()
		there, err := net.Dial("tcp", server)
		if err != nil || r.Method != http.MethodConnect {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		defer there.Close()
		here, buffered, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer here.Close()
		_, _ = io.WriteString(here, "HTTP/1.1 200 OK\r\n\r\n")
		go func() { _, _ = io.Copy(there, buffered); _ = there.Close() }()
		_, _ = io.Copy(here, there)
	}))
	t.Cleanup(p.Close)
	return p
}

// behindNames is an MCP server and its authorization server, under names of their own.
func behindNames(t *testing.T) *httptest.Server {
	const mcpURL, login = "https://mcp.example.com", "https://login.example.com"
	answers := canned(http.StatusNotFound, noTools)
	documents := map[string]any{
		"mcp.example.com/.well-known/oauth-protected-resource/mcp": map[string]any{"resource": mcpURL + "/mcp", "authorization_servers": []string{login}},
		"login.example.com/.well-known/oauth-authorization-server": map[string]any{"issuer": login, "token_endpoint": login + "/token"},
		"login.example.com/token":                                  map[string]any{"access_token": "ours", "token_type": "Bearer", "expires_in": 3600},
	}
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch document, ok := documents[r.Host+r.URL.Path]; {
		case ok:
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(document)
		case r.Header.Get("Authorization") == "Bearer ours":
			answers.ServeHTTP(w, r)
		default:
			w.WriteHeader(http.StatusUnauthorized)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

// TestADeadProxyIsNamed, and not what opens it.
func TestADeadProxyIsNamed(t *testing.T) {
	cmd := exec.Command(os.Args[0], "check", "https://mcp.example.com/mcp")
	cmd.Env = append(os.Environ(), programVariable+"=1", "HTTPS_PROXY=http://me:hush@"+testport.Closed, "NO_PROXY=")
	out, err := cmd.CombinedOutput()
	if text := string(out); err == nil || !strings.Contains(text, "(through the proxy http://"+testport.Closed+") cannot be reached: the proxy refuses connections") || strings.Contains(text, "hush") {
		t.Errorf("check ends with %v and\n%s", err, text)
	}
}

// In a company's network the server and the sign-in are behind a proxy and a private
// authority.
func TestServerAndSignInAreReachedThroughAForwardProxy(t *testing.T) {
	server := behindNames(t)
	proxy := newForwardProxy(t, server.Listener.Addr().String())
	dir := t.TempDir()
	authority := filepath.Join(dir, "ca.pem")
	if err := os.WriteFile(authority, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], "stdio", "--upstream", "https://mcp.example.com/mcp", "--upstream-tls.ca", authority, "--auth.mode", "agent", "--auth.grant", "client-credentials",
		"--auth.issuer", "https://login.example.com", "--auth.client-id", "machine", "--auth.client-secret", "hush", "--auth.store", "file", "--auth.dir", filepath.Join(dir, "auth"))
	cmd.Env = append(os.Environ(), programVariable+"=1", "HTTPS_PROXY="+proxy.URL, "NO_PROXY=")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	cmd.Stderr = &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	answers := json.NewDecoder(out)
	for _, message := range []string{opening, listTools} {
		_, _ = io.WriteString(in, message+"\n")
		var answer map[string]any
		if err := answers.Decode(&answer); err != nil || answer["result"] == nil {
			t.Errorf("%s was answered %v %v", message, answer, err)
		}
	}
	_ = in.Close()
	_ = cmd.Wait()
	proxy.mu.Lock()
	defer proxy.mu.Unlock()
	if !proxy.asked["mcp.example.com:443"] || !proxy.asked["login.example.com:443"] {
		t.Errorf("the proxy was asked for %v; the log says\n%s", proxy.asked, log.String())
	}
	if strings.Contains(log.String(), "hush") || strings.Contains(log.String(), "ours") {
		t.Errorf("the log tells secrets:\n%s", log.String())
	}
}
