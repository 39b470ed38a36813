package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/mcpbridge/bridge/internal/peers/issuer"
)

// newJudge is a modern server that judges one of its tools, and gives all else to anybody. It returns its URL.
func newJudge(t *testing.T, genuine string) string {
	t.Helper()
	done := `{"jsonrpc":"2.0","id":ID,"result":{"resultType":"complete","content":[]}}`
	answers := canned(http.StatusNotFound, map[string]string{"server/discover": discovered, "tools/call": done,
		"tools/list": `{"jsonrpc":"2.0","id":ID,"result":{"resultType":"complete","tools":[{"name":"secret","inputSchema":{"type":"object"}},{"name":"open","inputSchema":{"type":"object"}}]}}`})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if bytes.Contains(body, []byte(`"name":"secret"`)) && !strings.HasSuffix(r.Header.Get("Authorization"), genuine) {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		answers.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func callOf(tool string) string {
	return `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"` + tool + `","arguments":{}}}`
}

// What a server had refused was forgotten with the mount that had seen it.
func TestAReloadForgetsNoRefusals_H6(t *testing.T) {
	alice := strings.TrimPrefix(tokenOf("alice", "1"), "Bearer ")
	forged := alice[:strings.LastIndex(alice, ".")+1] + "forged"
	upstream := newJudge(t, alice[strings.LastIndex(alice, "."):])
	conf := func(flow string) string {
		return fmt.Sprintf("listen: 127.0.0.1:0\nupstream: '%s'\ntimeouts: {flow: %s}\n", upstream, flow)
	}
	r := startWithFile(t, conf("30m"))
	url := "http://" + r.address + "/mcp"
	for _, when := range []string{"before", "after the reload"} {
		status, header, text := postAs(t, url, alice, "", opening)
		session := header.Get("Mcp-Session-Id")
		if status != http.StatusOK || session == "" {
			t.Fatalf("%s: no session: %d %s", when, status, text)
		}
		if when == "before" {
			if status, _, _ := postAs(t, url, forged, session, callOf("secret")); status != http.StatusUnauthorized {
				t.Errorf("%s: the forged token gets %d for what is guarded", when, status)
			}
		}
		if status, _, _ := postAs(t, url, forged, session, callOf("open")); status != http.StatusOK {
			t.Errorf("%s: the forged token gets %d for what everybody gets", when, status)
		}
		for token, want := range map[string]int{forged: http.StatusNotFound, alice: http.StatusOK} {
			if status, _, _ := postAs(t, url, token, session, `{"jsonrpc":"2.0","id":8,"method":"ping"}`); status != want {
				t.Errorf("%s: ping answers %d, want %d", when, status, want)
			}
		}
		r.reload(conf("31m"), "was reloaded")
	}
}

// Keys of an issuer were forgotten with the mount that had asked for them.
func TestAReloadForgetsNoKeys(t *testing.T) {
	const public = "https://tools.example.com/mcp"
	s, upstream := issuer.NewSigner(t), newJudge(t, "")
	conf := func(flow string) string {
		return fmt.Sprintf("listen: 127.0.0.1:0\nupstream: '%s'\npublic-url: %s\nauth: {mode: terminate, clients: {issuer: '%s'}}\ntimeouts: {flow: %s}\n", upstream, public, s.URL, flow)
	}
	r := startWithFile(t, conf("30m"))
	url := "http://" + r.address + "/mcp"
	for _, flow := range []string{"31m", "32m"} {
		if status, _, text := postAs(t, url, s.Sign(s.Claims("ada", public)), "", opening); status != http.StatusOK {
			t.Errorf("before flow %s: %d %s", flow, status, text)
		}
		s.Set(func() { s.Broken = http.StatusServiceUnavailable })
		r.reload(conf(flow), "was reloaded")
	}
	if status, _, text := postAs(t, url, s.Sign(s.Claims("ada", public)), "", opening); status != http.StatusOK {
		t.Errorf("after two reloads: %d %s", status, text)
	}
}
