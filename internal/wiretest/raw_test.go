package wiretest

import (
	"io"
	"net/http"
	"strings"
)

// raw is a client that writes its own HTTP, for what the SDK's client does not
// do, such as staying on a stream after a cancellation.
type raw struct {
	w       *wire
	http    *http.Client
	version string
	session string
}

// raw opens a session; the transcript starts after its handshake.
func (w *wire) raw(version, capabilities string) *raw {
	w.t.Helper()
	transport := &http.Transport{}
	w.t.Cleanup(transport.CloseIdleConnections)
	c := &raw{w: w, http: &http.Client{Transport: transport}, version: version}
	c.drain(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"` + version +
		`","capabilities":` + capabilities + `,"clientInfo":{"name":"old","version":"1.0.0"}}}`)
	c.drain(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	w.from = len(w.rec.Entries())
	return c
}

// post sends one message and returns the response body, which the caller reads
// and closes.
func (c *raw) post(message string) io.ReadCloser {
	c.w.t.Helper()
	req, err := http.NewRequestWithContext(c.w.ctx, http.MethodPost, c.w.url, strings.NewReader(message))
	if err != nil {
		c.w.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	if c.session != "" {
		req.Header.Set("Mcp-Session-Id", c.session)
		req.Header.Set("Mcp-Protocol-Version", c.version)
	}
	res, err := c.http.Do(req)
	if err != nil {
		c.w.t.Fatal(err)
	}
	if id := res.Header.Get("Mcp-Session-Id"); id != "" {
		c.session = id
	}
	return res.Body
}

// drain sends one message and returns the whole response body.
func (c *raw) drain(message string) string {
	c.w.t.Helper()
	body := c.post(message)
	defer body.Close()
	text, err := io.ReadAll(body)
	if err != nil {
		c.w.t.Fatal(err)
	}
	return string(text)
}
