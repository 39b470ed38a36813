package modernonly

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestOnlyModernRequestsPass(t *testing.T) {
	h := RejectLegacy(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		_, _ = w.Write(body)
	}))
	for name, c := range map[string]struct {
		body   string
		status int
	}{
		"initialize":    {`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}`, 400},
		"no _meta":      {`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, 400},
		"modern":        {`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`, 200},
		"notification":  {`{"jsonrpc":"2.0","method":"notifications/cancelled"}`, 200},
		"not even JSON": {`{`, 200}, // left to the server behind
	} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/", strings.NewReader(c.body)))
		if w.Code != c.status {
			t.Errorf("%s: status %d, want %d", name, w.Code, c.status)
		}
		if c.status == 200 && w.Body.String() != c.body {
			t.Errorf("%s: the body changed to %s", name, w.Body)
		}
		if c.status == 400 && !strings.Contains(w.Body.String(), "-32022") {
			t.Errorf("%s: refused with %s", name, w.Body)
		}
	}
}
