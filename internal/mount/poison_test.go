package mount

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

func modernDiscover(t *testing.T, url, meta string) string {
	t.Helper()
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(`{"jsonrpc":"2.0","id":7,"method":"server/discover","params":{"_meta":{`+meta+`}}}`))
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	req.Header.Set("MCP-Protocol-Version", "2026-07-28")
	req.Header.Set("Mcp-Method", "server/discover")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	return resp.Status + " " + string(body)
}

// A modern client whose server/discover is malformed is refused that, and nobody else anything.
func TestWhatAModernClientIsRefusedSaysNothingOfTheServer_A11(t *testing.T) {
	for name, meta := range map[string]string{
		"no client info":   `"io.modelcontextprotocol/protocolVersion":"2026-07-28"`,
		"odd capabilities": `"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"x","version":"1"},"io.modelcontextprotocol/clientCapabilities":7`,
		"odd info":         `"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":"x","io.modelcontextprotocol/clientCapabilities":{}`,
		"odd roots":        `"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"x","version":"1"},"io.modelcontextprotocol/clientCapabilities":{"roots":1}`,
		"odd token":        `"progressToken":{},"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"x","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}`,
		"odd level":        `"io.modelcontextprotocol/logLevel":5,"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"x","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}`,
	} {
		t.Run(name, func(t *testing.T) {
			_, url := serve(t, process(t, sdkModern, 0))
			victim := session(t, url)
			refused := modernDiscover(t, url, meta)
			if status, body := post(t, url, victim, call("x")); strings.Contains(body, "does not speak") {
				t.Errorf("after %s somebody else gets %d %s", refused, status, body)
			}
		})
	}
}
