package main

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/mcpbridge/bridge/authorize"
	"github.com/mcpbridge/bridge/mcp"
)

func TestListedLoginsSayWhatIsWrongWithThem(t *testing.T) {
	var b strings.Builder
	if err := printLogins(&b, "/logins", []authorize.Entry{
		{File: "/logins/a.login", Problem: "a.login is damaged"},
		{Server: "https://mcp.example.com/mcp", File: "/logins/b.login", Loose: true},
		{Server: "https://other.example.com/mcp?key=hush", File: "/logins/c.login"},
	}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"a login that cannot be read\n  store    /logins/a.login\n  problem  a.login is damaged; the next request to its server has you sign in again\n",
		"/logins/b.login (others on this machine may read it: chmod 600",
		"/logins/c.login (readable by you alone)",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, &b)
		}
	}
	if strings.Contains(b.String(), "hush") {
		t.Errorf("a query is shown:\n%s", &b)
	}
}

// TestLoginToAServerThatAsksForNone: its operator has nothing to look at.
func TestLoginToAServerThatAsksForNone(t *testing.T) {
	server := answering(t, http.StatusNotFound, map[string]string{mcp.MethodDiscover: discovered})
	if out := prints(t, nil, "login", "--auth.dir", t.TempDir(), "--auth.store", "file", server.URL+"/mcp"); !strings.Contains(out, "asks for no sign-in: it answers without one, so there is nothing to do") {
		t.Errorf("login says\n%s", out)
	}
	if err := fails(t, nil, "login", "--auth.dir", t.TempDir(), "--auth.store", "file", refusing(t).URL+"/mcp"); strings.Contains(err.Error(), "no sign-in") {
		t.Errorf("of a server that wants one login says %v", err)
	}
}

func TestWhatWasPastedWronglyIsAskedForAgain(t *testing.T) {
	var told strings.Builder
	l := &signingIn{env: surroundings{in: strings.NewReader("\nhttp://127.0.0.1:1/callback?code=x"), out: &told}}
	read := l.reading()
	if line, err := read(nil); err != nil || line != "\n" {
		t.Fatalf("read %q, %v", line, err)
	}
	wrong := errors.New("that is no address")
	if line, err := read(wrong); err != nil || line != "http://127.0.0.1:1/callback?code=x" {
		t.Fatalf("read %q, %v", line, err)
	}
	if _, err := read(wrong); !errors.Is(err, wrong) {
		t.Errorf("at the end: %v", err)
	}
	if !strings.Contains(told.String(), "that is no address.\nPaste it here") {
		t.Errorf("told %q", &told)
	}
}
