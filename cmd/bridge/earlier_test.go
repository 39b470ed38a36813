package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/mcpbridge/bridge/internal/peers"
	"github.com/mcpbridge/bridge/observe/view"
)

// After a reload sessions and calls under the settings before it were in no page, figure or list, and nobody could end them.
func TestWhatGoesOnUnderEarlierSettingsIsSeenAndCanBeEnded(t *testing.T) {
	server := peers.NewServer(t, peers.ServerOptions{})
	head := "listen: 127.0.0.1:0\nadmin: {listen: '127.0.0.1:0', actions: on}\nupstreams:\n"
	entry := "  - {path: %s, upstream: '" + server.URL + "', headers: {X-Team: '%d'}}\n"
	r := startWithFile(t, head+fmt.Sprintf(entry, "/mcp", 1)+fmt.Sprintf(entry, "/gone", 1))
	url, token := adminOf(r.process)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	ended := make(chan error, 4)
	hang := func(path string) {
		c, err := peers.Dial(ctx, "http://"+r.address+path, peers.ClientOptions{HTTP: client})
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			_, err := c.Call(ctx, "hang", nil)
			ended <- err
			_ = c.Close()
		}()
	}
	state := func(calls int) (s view.State) {
		for {
			_, text := seen(t, url+"api/v1/state", token)
			if err := json.Unmarshal([]byte(text), &s); err != nil {
				t.Fatal(err)
			}
			if len(s.Calls) == calls || ctx.Err() != nil {
				return s
			}
			s = view.State{}
		}
	}
	hang("/mcp")
	hang("/gone")
	state(2)
	r.reload(head+fmt.Sprintf(entry, "/mcp", 2), "was reloaded")
	hang("/mcp")
	s := state(3)

	var mounts []string
	for _, m := range s.Mounts {
		mounts = append(mounts, fmt.Sprint(m.Path, " ", m.Sessions, " ", m.Earlier, " ", m.Removed))
	}
	if got, want := strings.Join(mounts, ", "), "/mcp 2 1 false, /gone 1 1 true"; got != want {
		t.Errorf("mounts are %s, want %s", got, want)
	}
	earlier := map[string]bool{}
	for _, one := range s.Sessions {
		earlier[one.ID] = one.Earlier
	}
	_, figures := seen(t, url+"metrics", token)
	for _, line := range []string{`mcpbridge_sessions{mount="/mcp",transport="streamable-http",version="2025-11-25"} 2`, `mcpbridge_sessions{mount="/gone",transport="streamable-http",version="2025-11-25"} 1`} {
		if !strings.Contains(figures, line) {
			t.Errorf("no %s in the metrics", line)
		}
	}
	if _, page := seen(t, url, token); !strings.Contains(page, "1 of them under the settings of before a reload") || !strings.Contains(page, "a reload took the endpoint out") {
		t.Errorf("the overview says nothing of earlier settings: %s", page)
	}
	for _, c := range s.Calls {
		deedOf := "do=end-call&mount=" + c.Mount + "&session=" + c.Session + "&id=" + c.ID
		if c.Mount == "/gone" {
			deedOf = "do=end-session&mount=" + c.Mount + "&id=" + c.Session
		}
		if _, page := seen(t, url+"session?mount="+c.Mount+"&id="+c.Session, token); strings.Contains(page, "under the settings of before a reload") != earlier[c.Session] {
			t.Errorf("the page of %s does not say whether it is under earlier settings: %t", c.Session, earlier[c.Session])
		}
		if status := deed(t, url, token, deedOf); status != http.StatusSeeOther {
			t.Errorf("%s: %d", deedOf, status)
		}
		if err := <-ended; err == nil {
			t.Errorf("%s: the call goes on", deedOf)
		}
	}
}
