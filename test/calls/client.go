package calls

import (
	"context"
	"fmt"
	"net/http"
	"strings"
)

// NewRequest makes a request of a client of 2025-11-25. The session, the event after which a
// stream is to go on, and the body may be empty.
func NewRequest(ctx context.Context, method, url, session, last, body string) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/json, text/event-stream")
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	if session != "" {
		req.Header.Set("Mcp-Session-Id", session)
		req.Header.Set("Mcp-Protocol-Version", "2025-11-25")
	}
	if last != "" {
		req.Header.Set("Last-Event-Id", last)
	}
	return req, nil
}

// Initialized is the second message of a client's session.
const Initialized = `{"jsonrpc":"2.0","method":"notifications/initialized"}`

// Initialize is the first one.
func Initialize(client string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25",`+
		`"capabilities":{"elicitation":{}},"clientInfo":{"name":%q,"version":"1"}}}`, client)
}

// Call asks for one.
func Call(id, params string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":%s}`, id, params)
}

// Cancel gives a call up.
func Cancel(id string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%s}}`, id)
}
