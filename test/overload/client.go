package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"sync"
)

// client is a legacy client over Streamable HTTP.
type client struct {
	url     string
	who     http.Header // what tells it apart from others
	http    *http.Client
	session string
	tally   *tally
}

// tally counts answers by what they were.
type tally struct {
	mu      sync.Mutex
	answers map[string]int
}

func newTally() *tally { return &tally{answers: map[string]int{}} }

func (t *tally) note(what string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.answers[what]++
}

// sum returns how many answers there were.
func (t *tally) sum() (n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, more := range t.answers {
		n += more
	}
	return n
}

func newClient(url string, who http.Header, t *tally) *client {
	return &client{url: url, who: who, tally: t, http: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 4}}}
}

// open begins a session, whose client says so much of itself.
func (c *client) open(ctx context.Context, declared int) string {
	c.session = ""
	resp, err := c.send(ctx, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25",`+
		`"capabilities":{"elicitation":{}},"clientInfo":{"name":"`+strings.Repeat("n", declared+1)+`","version":"1"}}}`)
	if err != nil {
		return "lost"
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
	c.session = resp.Header.Get("Mcp-Session-Id")
	return http.StatusText(resp.StatusCode)
}

// begin opens a session, if there is none.
func (c *client) begin(ctx context.Context) {
	if c.session == "" {
		c.tally.note(c.open(ctx, 1))
	}
}

// call makes a tools/call and reads its answer, and tells what became of it.
func (c *client) call(ctx context.Context, tool string, size, padding int) string {
	resp, err := c.send(ctx, toolCall(tool, size, padding))
	if err != nil {
		return "lost"
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	switch {
	case err != nil:
		return "cut off"
	case resp.StatusCode != http.StatusOK:
		return http.StatusText(resp.StatusCode)
	case !strings.Contains(string(body), `"text":"xx`):
		return "error"
	}
	return "OK"
}

func toolCall(tool string, size, padding int) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"%s","arguments":{"size":%d,"padding":"%s"}}}`,
		tool, size, strings.Repeat("p", padding))
}

func (c *client) send(ctx context.Context, body string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	maps.Copy(req.Header, c.who)
	if c.session != "" {
		req.Header.Set("Mcp-Session-Id", c.session)
	}
	return c.http.Do(req)
}
