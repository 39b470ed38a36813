package mount

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// newFront starts a server with this handler.
func newFront(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	return server.URL
}

// wire keeps no connection, so that none outlives its test.
var wire = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

func request(t *testing.T, method, url, session, body string) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", "application/json, text/event-stream")
	req.Header.Set("Content-Type", "application/json")
	if session != "" {
		req.Header.Set("Mcp-Session-Id", session)
	}
	return req
}

func send(t *testing.T, method, url, session, body string) (status int, text string) {
	t.Helper()
	resp, err := wire.Do(request(t, method, url, session, body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	all, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(all)
}

func post(t *testing.T, url, session, body string) (status int, text string) {
	t.Helper()
	return send(t, http.MethodPost, url, session, body)
}

// initialize opens a session on the wire.
func initialize(t *testing.T, url, version, caps string) (session, body string) {
	t.Helper()
	resp, err := wire.Do(request(t, http.MethodPost, url, "", `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"`+
		version+`","capabilities":`+caps+`,"clientInfo":{"name":"c","version":"1"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	all, _ := io.ReadAll(resp.Body)
	session = resp.Header.Get("Mcp-Session-Id")
	if session != "" {
		if status, text := post(t, url, session, `{"jsonrpc":"2.0","method":"notifications/initialized"}`); status != http.StatusAccepted {
			t.Fatalf("initialized answers %d %s", status, text)
		}
	}
	return session, string(all)
}
