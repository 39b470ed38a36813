package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcpbridge/bridge/internal/peers"
)

// as sends a header with every request.
type as struct {
	http.RoundTripper
	user string
}

func (a as) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("X-User", a.user)
	return a.RoundTripper.RoundTrip(r)
}

// Who asks gets the roots of the configuration that holds now, by the header that
// says who it is for, in a session that is older than the configuration, too.
func TestRootsBelongToSomebodyAndFollowTheConfiguration(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"everybody", "ada", "later"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	server := peers.NewServer(t, peers.ServerOptions{})
	file := func(everybody string) string {
		return fmt.Sprintf("upstream: %s\nlisten: 127.0.0.1:0\nroots:\n  list: [file://%s/%s]\n  header: X-User\n  by: {ada: file://%s/ada}\n", server.URL, dir, everybody, dir)
	}
	p := startWithFile(t, file("everybody"))
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	sees := func(c *peers.Client, folder string) {
		t.Helper()
		if text, isError := callTool(t, c, "workspace"); isError || !strings.Contains(text, "file://"+dir+"/"+folder) || strings.Count(text, "file://") != 1 {
			t.Errorf("the server got %s, want the folder %s", text, folder)
		}
	}
	users := map[string]*peers.Client{}
	for _, user := range []string{"ada", "bob"} {
		users[user] = peers.NewClient(t, "http://"+p.address+"/mcp", peers.ClientOptions{Version: "2024-11-05", HTTP: &http.Client{Transport: as{transport, user}}})
	}
	sees(users["ada"], "ada")
	sees(users["bob"], "everybody")
	p.reload(file("later"), "reloaded")
	sees(users["ada"], "ada")
	sees(users["bob"], "later")
	p.reload(file("nowhere"), "nothing has changed")
	sees(users["bob"], "later")
}
