package main

import (
	"strings"
	"testing"

	"github.com/mcpbridge/bridge/authorize"
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
