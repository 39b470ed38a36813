package wiretest

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/mcpbridge/bridge/internal/mount"
	"github.com/mcpbridge/bridge/internal/testmode"
	"github.com/mcpbridge/bridge/upstream/streamable"
)

// startBridge starts a bridge in front of upstream and returns the URL for
// legacy clients; it stops with the test.
func startBridge(t *testing.T, url string, observe func(http.Handler) http.Handler) string {
	t.Helper()
	m, err := mount.New(mount.Options{Upstream: streamable.Options{URL: url, StandardTransport: testmode.StandardHTTP()}})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(observe(m))
	t.Cleanup(func() {
		m.Close()
		server.Close()
	})
	return server.URL
}
