package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/mcpbridge/bridge/internal/peers/issuer"
)

// ledger is a legacy server over HTTP with one tool, which goes by the session's id alone.
type ledger struct {
	*httptest.Server
	tool string

	mu       sync.Mutex
	open     map[string]bool
	strayed  []string // sessions of others that it was asked for
	sessions int
}

func newLedger(t *testing.T, tool string) *ledger {
	t.Helper()
	l := &ledger{tool: tool, open: map[string]bool{}}
	l.Server = httptest.NewServer(http.HandlerFunc(l.serve))
	t.Cleanup(l.Close)
	return l
}

func (l *ledger) serve(w http.ResponseWriter, r *http.Request) {
	var msg struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
	}
	body, _ := io.ReadAll(r.Body)
	_ = json.Unmarshal(body, &msg)
	session := r.Header.Get("Mcp-Session-Id")
	l.mu.Lock()
	defer l.mu.Unlock()
	result := `{"tools":[{"name":"` + l.tool + `","inputSchema":{"type":"object"}}]}`
	switch {
	case msg.Method == "initialize":
		l.sessions++
		session = fmt.Sprint(l.tool, "-", l.sessions)
		l.open[session] = true
		w.Header().Set("Mcp-Session-Id", session)
		result = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"ledger","version":"1"}}`
	case msg.Method == "server/discover":
		w.WriteHeader(http.StatusBadRequest)
		return
	case session != "" && !l.open[session]:
		l.strayed = append(l.strayed, session)
		w.WriteHeader(http.StatusNotFound)
		return
	case r.Method == http.MethodDelete:
		delete(l.open, session)
		return
	case r.Method == http.MethodGet:
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	case msg.ID == nil:
		w.WriteHeader(http.StatusAccepted)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, msg.ID, result)
}

func (l *ledger) sawOthers(t *testing.T) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.strayed) > 0 {
		t.Errorf("the server of %q was asked for the sessions %q of another", l.tool, l.strayed)
	}
}

// Sessions that are relayed to a legacy server ended with a reload, and their next request went, with token and
// arguments, to the server that had taken the place. They go on where they were, and where their server is the same,
// under the new settings.
func TestRelayedSessionsGoOnAfterAReload_A16(t *testing.T) {
	for store, restarts := range map[string]bool{"": false, "store: {url: 'file:" + filepath.Join(t.TempDir(), "s.db") + "'}\n": true} {
		one, two := newLedger(t, "one"), newLedger(t, "two")
		head := "listen: 127.0.0.1:0\n" + store
		before := head + "upstreams:\n  - {path: /changed, upstream: '" + one.URL + "'}\n  - {path: /gone, upstream: '" + one.URL + "'}\n  - {path: /same, upstream: '" + one.URL + "', authorization: drop}\n"
		r := startWithFile(t, before)
		changed, gone, same := r.session("/changed"), r.session("/gone"), r.session("/same")
		if restarts { // and nothing is known of them but by the store
			r.stop()
			if err := r.wait(); err != nil {
				t.Fatal(err)
			}
			r = startWithFile(t, before)
		}
		after := "upstreams:\n  - {path: /changed, upstream: '" + two.URL + "'}\n  - {path: /same, upstream: '" + one.URL + "', authorization: drop, headers: {X-Team: '7'}}\n"
		r.reload(head+after, "was reloaded")
		r.expect("the last session under the old settings has ended") // of /same, which is the new one's
		r.serves("a newcomer", "/changed", r.session("/changed"), "two")
		r.serves("a session of a server that was replaced", "/changed", changed, "one")
		r.serves("a session of a mount that is gone", "/gone", gone, "one")
		r.serves("a session of the same server", "/same", same, "one")
		r.answers("a session that never was", http.MethodPost, "/same", "never", http.StatusNotFound)
		two.sawOthers(t)
		r.answers("the end of a session", http.MethodDelete, "/changed", changed, http.StatusOK)
		r.answers("the end of another", http.MethodDelete, "/gone", gone, http.StatusOK)
		if !restarts { // else some may be in the store, for all that is known
			r.expect("the last session under the old settings has ended")
		}
		r.stop()
		if err := r.wait(); err != nil {
			t.Fatal(err)
		}
	}
}

// A session that was opened before a restart, of which nobody knows whose it is, stays where the server judges that.
// Credentials that are configured end those of clients as other settings do.
func TestASessionThatWasOnlyMetGoesToNobodyWhoGuardsSessions_H8(t *testing.T) {
	server := newLedger(t, "one")
	before := "listen: 127.0.0.1:0\nupstreams:\n  - {path: /mcp, upstream: '" + server.URL + "'"
	r := startWithFile(t, before+"}\n")
	_, header, _ := postAs(t, "http://"+r.address+"/mcp", "ada", "", opening)
	session := header.Get("Mcp-Session-Id")
	r.stop()
	if err := r.wait(); err != nil {
		t.Fatal(err)
	}
	r = startWithFile(t, before+"}\n")
	_ = r.session("/mcp") // by then it has seen what the server is
	for _, when := range []string{"after a restart", "after a reload"} {
		if status, _, text := postAs(t, "http://"+r.address+"/mcp", "ada", session, listTools); status != http.StatusOK {
			t.Errorf("%s its owner gets %d %s", when, status, text)
		}
		if when == "after a restart" {
			r.reload(before+", headers: {Authorization: Bearer static}}\n", "was reloaded")
		}
	}
	r.stop()
	if err := r.wait(); err != nil {
		t.Fatal(err)
	}
}

// Where callers are known in another way from now on, a session that is in the store alone stays with the settings
// under which it was opened, as those in memory do.
func TestARelayedSessionInTheStoreStaysWithItsCallers(t *testing.T) {
	server := newLedger(t, "one")
	before := "listen: 127.0.0.1:0\nstore: {url: 'file:" + filepath.Join(t.TempDir(), "s.db") + "'}\nupstreams:\n  - {path: /mcp, upstream: '" + server.URL + "'"
	r := startWithFile(t, before+"}\n")
	session := r.session("/mcp")
	r.stop()
	if err := r.wait(); err != nil {
		t.Fatal(err)
	}
	r = startWithFile(t, before+"}\n")
	_ = r.session("/mcp") // which keeps its mount
	r.reload(before+", authorization: drop}\n", "was reloaded")
	expect := func(what, session string, want int) {
		t.Helper()
		if status, _, text := postAs(t, "http://"+r.address+"/mcp", "another", session, listTools); status != want {
			t.Errorf("%s: %d %s", what, status, text)
		}
	}
	expect("where the server judges", session, http.StatusOK)
	expect("where the bridge does", r.session("/mcp"), http.StatusNotFound)
	r.stop()
	if err := r.wait(); err != nil {
		t.Fatal(err)
	}
}

// Where clients' tokens end at the bridge it alone can tell whose a session is that is relayed, also when it was
// started anew.
func TestARelayedSessionIsOfTheSubjectThatOpenedIt_H8(t *testing.T) {
	s := issuer.NewSigner(t)
	server := newLedger(t, "one")
	const public = "https://tools.example.com/mcp"
	path := filepath.Join(t.TempDir(), "s.db")
	for name, store := range map[string]string{"memory": "memory:", "file": "file:" + path} {
		run := func() *process {
			return start(t, "serve", "--listen", "127.0.0.1:0", "--upstream", server.URL+"/mcp", "--public-url", public, "--auth.mode", "terminate",
				"--auth.clients.issuer", s.URL, "--headers", "Authorization: Bearer static", "--store.url", store)
		}
		token := func(subject string) string { return s.Sign(s.Claims(subject, public)) }
		p := run()
		_, header, _ := postAs(t, "http://"+p.address+"/mcp", token("ada"), "", opening)
		session := header.Get("Mcp-Session-Id")
		expect := func(when, subject string, want int) {
			t.Helper()
			if status, _, text := postAs(t, "http://"+p.address+"/mcp", token(subject), session, listTools); status != want {
				t.Errorf("%s, %s: %s gets %d %s", name, when, subject, status, text)
			}
		}
		expect("at first", "grace", http.StatusNotFound)
		expect("with another token", "ada", http.StatusOK)
		p.stop()
		if err := p.wait(); err != nil {
			t.Fatal(err)
		}
		if name == "file" {
			if text, err := says(t, "sessions", "--store.url", store); err != nil || !strings.Contains(text, "relayed") || strings.Contains(text, session) {
				t.Errorf("it is listed as %s, %v", text, err)
			}
		}
		p = run()
		expect("after a restart", "grace", http.StatusNotFound)
		expect("after a restart", "ada", map[string]int{"memory": http.StatusNotFound, "file": http.StatusOK}[name])
		p.stop()
		if err := p.wait(); err != nil {
			t.Fatal(err)
		}
	}
}
