package mount

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/mcpbridge/bridge/internal/passthrough"
	"github.com/mcpbridge/bridge/internal/relayed"
	"github.com/mcpbridge/bridge/mcp"
)

// Sessions of the server are remembered by ids that are short: ten thousand of any length would
// be more than all memory.
func TestASessionOfTheServerWithALongIDIsNotOpened(t *testing.T) {
	for session, fine := range map[string]bool{strings.Repeat("s", 1<<10): true, strings.Repeat("s", 1<<10+1): false, "a b": false, "": true} {
		r := remembering()
		req, err := http.NewRequestWithContext(context.WithValue(t.Context(), openingKey{}, relayed.Owner{Tenant: "tenant"}), http.MethodPost, "http://localhost", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		err = r.sessions.answered(&http.Response{Request: req, Header: http.Header{mcp.HeaderSessionID: {session}}})
		if unusable, ok := errors.AsType[*passthrough.Unusable](err); ok == fine || !fine && !strings.Contains(unusable.Reason, "1 KiB") {
			t.Errorf("%d bytes: %v", len(session), err)
		}
		if r.holds(session) != (fine && session != "") {
			t.Errorf("%d bytes: remembered %v", len(session), r.holds(session))
		}
	}
}
