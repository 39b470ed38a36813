package streamable

import (
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/upstream"
)

// TestMessagesThatAreNobodysDoNotFillTheLog, where that tells of them: a server can send any number.
func TestMessagesThatAreNobodysDoNotFillTheLog(t *testing.T) {
	for name, msg := range map[string]jsonrpc.Message{
		"requests": {ID: "1", Method: mcp.MethodPing}, "notifications": {Method: mcp.NotificationToolsListChanged, Params: []byte(`{"_meta":{"` + mcp.MetaSubscriptionID + `":"9"}}`)},
	} {
		var log strings.Builder
		c, err := New(Options{URL: "http://127.0.0.1:1/mcp", Log: zerolog.New(&log)})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		req := &request{call: &upstream.Call{Method: mcp.MethodListen}, id: "2"}
		for range 10 * strayBurst {
			if c.interim(&msg, req, sink{listen: true}) {
				t.Fatalf("%s are somebody's", name)
			}
		}
		if n := strings.Count(log.String(), "\n"); n != strayBurst {
			t.Errorf("%s: %d lines in the log, want %d", name, n, strayBurst)
		}
	}
}
