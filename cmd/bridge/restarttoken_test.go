package main

import (
	"encoding/base64"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// expiring is a server that knows its tokens until they expire, and tells nobody else what it is.
type expiring struct {
	*httptest.Server
	mu    sync.Mutex
	known map[string]bool
}

func newExpiring(t *testing.T, tokens ...string) *expiring {
	t.Helper()
	e := &expiring{known: map[string]bool{}}
	for _, token := range tokens {
		e.known[token] = true
	}
	inner := canned(http.StatusOK, cannedAnswers["modern"])
	e.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		e.mu.Lock()
		known := e.known[r.Header.Get("Authorization")]
		e.mu.Unlock()
		if !known {
			w.Header().Set("WWW-Authenticate", `Bearer error="invalid_token"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		inner.ServeHTTP(w, r)
	}))
	t.Cleanup(e.Close)
	return e
}

func (e *expiring) expire(token string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.known, token)
}

// tokenOf is a token of a subject, the newest of so many.
func tokenOf(subject, number string) string {
	encode := func(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }
	return "Bearer " + encode(`{"alg":"RS256"}`) + "." + encode(`{"iss":"https://as","sub":"`+subject+`","jti":"`+number+`"}`) + "." + encode("signed")
}

// TestASessionOutlivesItsTokenInTheStore: whoever brings a session back after its token has expired hears what the
// server says of the token that they bring, as where it is in memory: 401 with its challenge, or the call's result.
func TestASessionOutlivesItsTokenInTheStore_H3(t *testing.T) {
	for name, store := range stores(t) {
		for kind, tokens := range map[string][2]string{"JWT": {tokenOf("ada", "1"), tokenOf("ada", "2")}, "opaque": {"Bearer old", "Bearer new"}} {
			t.Run(name+", "+kind, func(t *testing.T) {
				server := newExpiring(t, tokens[0], tokens[1])
				k := launch(t, append([]string{"--upstream", server.URL}, store(t)...)...)
				said := func(method, body, token string) (int, string) {
					resp := k.request(method, body, "Authorization", token)
					_, _ = io.Copy(io.Discard, resp.Body)
					return resp.StatusCode, resp.Header.Get("WWW-Authenticate")
				}
				k.session = k.request(http.MethodPost, initialize, "Authorization", tokens[0]).Header.Get("Mcp-Session-Id")
				server.expire(tokens[0])
				k.again()
				for _, body := range []string{listTools, `{"jsonrpc":"2.0","id":1,"method":"ping"}`, `{"jsonrpc":"2.0","id":"q1","result":{}}`} {
					if status, challenge := said(http.MethodPost, body, tokens[0]); status != http.StatusUnauthorized || !strings.Contains(challenge, "invalid_token") {
						t.Errorf("the expired token: %s answers %d %q", body, status, challenge)
					}
				}
				if status, challenge := said(http.MethodGet, "", tokens[0]); status != http.StatusUnauthorized || challenge == "" {
					t.Errorf("the expired token: GET answers %d %q", status, challenge)
				}
				if status, _ := said(http.MethodPost, listTools, tokens[1]); status != http.StatusOK {
					t.Errorf("the renewed token: a call answers %d", status)
				}
				want := http.StatusNotFound // nobody knows whose it is
				if kind == "JWT" {
					want = http.StatusNoContent
				}
				if status, _ := said(http.MethodDelete, "", tokens[1]); status != want {
					t.Errorf("the renewed token: DELETE answers %d, want %d", status, want)
				}
			})
		}
	}
}
