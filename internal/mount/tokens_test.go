package mount

import (
	"encoding/json"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpbridge/bridge/internal/peers"
)

// entrances are the ways in, and who comes that way.
var entrances = func() map[string]peers.ClientOptions {
	all := map[string]peers.ClientOptions{}
	for way := range ways {
		all["legacy over "+way] = peers.ClientOptions{Version: "2025-06-18"}
		if way != "HTTP+SSE" {
			all["modern over "+way] = agreeableModern()
		}
	}
	return all
}()

// TestProgressOnASharedProcess: of each pair of ways in, one call under way at the same time, the first
// of either way, under the same token.
func TestProgressOnASharedProcessReachesItsOwnCallWhicheverWayThatCame_E46(t *testing.T) {
	for a := range entrances {
		for b := range entrances {
			if a <= b {
				t.Run(a+" and "+b, func(t *testing.T) { hearsItsOwn(t, a, b) })
			}
		}
	}
}

func hearsItsOwn(t *testing.T, names ...string) {
	m, base := mounted(t, process(t, good, 0))
	clients := map[string]*peers.Client{}
	done := make(chan error, len(names))
	for k, name := range names {
		who := string(rune('a'+k)) + " " + name
		c, err := peers.Connect(patience(t), ways[name[len("legacy over "):]](t, m, base), entrances[name])
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		clients[who] = c
		go func() {
			_, err := c.CallTool(patience(t), &sdk.CallToolParams{Name: "together", Arguments: map[string]any{"who": who}, Meta: sdk.Meta{"progressToken": 1}})
			done <- err
		}()
	}
	for range names {
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	for who, c := range clients {
		for _, n := range c.WaitFor(t, patience(t), "notifications/progress", steps) {
			var p struct {
				Message       string
				ProgressToken json.RawMessage
			}
			if err := json.Unmarshal(n.Params, &p); err != nil || p.Message != who || string(p.ProgressToken) != "1" {
				t.Fatalf("%s got %s", who, n.Params)
			}
		}
	}
}
