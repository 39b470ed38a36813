package main

import (
	"bytes"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/bridge/internal/testmode"
)

// says runs a command and returns what it wrote.
func says(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	err := run(t.Context(), args, surroundings{in: strings.NewReader(""), out: &out, err: &out, environ: testmode.Environ()})
	return out.String(), err
}

func TestStoredSessionsAreListedAndEnded(t *testing.T) {
	t.Parallel()
	for name, flags := range durable(t) {
		t.Run(name, func(t *testing.T) {
			of := flags(t)
			a := newAsker(t)
			k := forgetful(t, a, of...)
			id, last := k.askAndLeave("call")
			k.answer(id) // whose result waits; another call waits for its answer
			wantDone(t, k.resume(last).message())
			k.askAndLeave("another")
			if name == "file" {
				if _, err := says(t, append([]string{"sessions"}, of...)...); err == nil || !strings.Contains(err.Error(), "another process") || !strings.Contains(err.Error(), "--admin") {
					t.Errorf("while the bridge runs: %v", err)
				}
				k.kill()
			}
			text, err := says(t, append([]string{"sessions"}, of...)...)
			if err != nil || !strings.Contains(text, "1 session, 1 waiting call\n") || !strings.Contains(text, `"ask" waits since`) || !strings.Contains(text, "1 open") || !strings.Contains(text, "2025-11-25") {
				t.Fatalf("%v: %s", err, text)
			}
			for _, secret := range []string{k.session, "Ada", "Name?", "s1", strings.Trim(id, `"`)} {
				if strings.Contains(text, secret) {
					t.Errorf("it shows %q: %s", secret, text)
				}
			}
			session := regexp.MustCompile(`(?m)^[A-Z2-7]{32}`).FindString(text)
			if _, err := says(t, append([]string{"sessions", "end", "NOBODY"}, of...)...); err == nil || !strings.Contains(err.Error(), "no session") {
				t.Errorf("ending what is not there: %v", err)
			}
			if text, err := says(t, append([]string{"sessions", "end", session}, of...)...); err != nil || !strings.Contains(text, "ended "+session) {
				t.Fatalf("%v: %s", err, text)
			}
			if text, err := says(t, append([]string{"sessions"}, of...)...); err != nil || !strings.Contains(text, "0 sessions, 0 waiting calls") {
				t.Errorf("%v: %s", err, text)
			}
			if name == "file" {
				k.again()
			}
			look := time.NewTicker(20 * time.Millisecond)
			defer look.Stop()
			for k.status(http.MethodPost, listTools) != http.StatusNotFound {
				<-look.C // a bridge that runs is told by Redis that the session is gone, in its own time
			}
		})
	}
}

// TestRunningBridgeListsAndEndsWhatItStores: a session in memory, and one that is in the store alone.
func TestRunningBridgeListsAndEndsWhatItStores(t *testing.T) {
	t.Parallel()
	for name, forget := range map[string]bool{"in memory": false, "in the store": true} {
		t.Run(name, func(t *testing.T) {
			k := forgetful(t, newAsker(t), append(durable(t)["file"](t), "--admin.actions", "on")...)
			k.askAndLeave("call")
			if forget {
				k.forgets()
			}
			admin := []string{"--admin", k.flag("--admin.listen"), "--token-file", k.flag("--admin.token-file")}
			text, err := says(t, append([]string{"sessions"}, admin...)...)
			if err != nil || !strings.Contains(text, "1 session, 1 waiting call\n") || !strings.Contains(text, `"ask" waits since`) || strings.Contains(text, k.session) {
				t.Fatalf("%v: %s", err, text)
			}
			session := regexp.MustCompile(`(?m)^[A-Z2-7]{32}`).FindString(text)
			if _, err := says(t, append([]string{"sessions", "end", "NOBODY"}, admin...)...); err == nil || !strings.Contains(err.Error(), "no session") {
				t.Errorf("ending what is not there: %v", err)
			}
			if text, err := says(t, append([]string{"sessions", "end", session}, admin...)...); err != nil || !strings.Contains(text, "ended "+session) {
				t.Fatalf("%v: %s", err, text)
			}
			if status := k.status(http.MethodPost, listTools); status != http.StatusNotFound {
				t.Errorf("the ended session gets %d", status)
			}
			if text, err := says(t, append([]string{"sessions"}, admin...)...); err != nil || !strings.Contains(text, "0 sessions, 0 waiting calls") {
				t.Errorf("%v: %s", err, text)
			}
		})
	}
}

func TestSessionsNeedsAStoreAndMakesNone(t *testing.T) {
	for _, args := range [][]string{{"sessions"}, {"sessions", "--store.url", "file:" + t.TempDir() + "/none.db"}} {
		if text, err := says(t, args...); err == nil || !strings.Contains(err.Error(), "store") {
			t.Errorf("%v: %v, %s", args, err, text)
		}
	}
}
