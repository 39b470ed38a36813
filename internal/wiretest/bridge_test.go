package wiretest

import (
	"net/http"
	"testing"
)

// startBridge starts a bridge in front of upstream and returns the URL for
// legacy clients; it stops with the test.
func startBridge(t *testing.T, upstream string, observe func(http.Handler) http.Handler) string {
	t.Helper()
	t.Skip("no bridge yet")
	return ""
}
