package mount

import (
	"testing"

	"github.com/mcpbridge/bridge/upstream/streamable"
)

// TestTheScopeNamesEndpointAndServer, once each: whatever else it were, what an earlier build has kept would be nobody's.
func TestTheScopeNamesEndpointAndServer(t *testing.T) {
	opt := Options{Upstream: streamable.Options{URL: "http://server.example/mcp"}}
	opt.Legacy.StoreScope = "/mcp"
	m, err := New(opt)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if got := m.Scope(); got != "/mcp\nhttp://server.example/mcp" {
		t.Errorf("it is %q", got)
	}
}
