package passthrough

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/upstream"
)

// lines is a log that several write to.
type lines struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

// The header that names a tool names resources and tasks, too.
func TestTheLogTakesNoResourceForATool(t *testing.T) {
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/mcp", nil)
	for method, tool := range map[string]string{"tools/call": "x", "prompts/get": "x", "resources/read": "", "tasks/get": "", "vault/open": "", "": ""} {
		r.Header.Set("Mcp-Method", method)
		r.Header.Set("Mcp-Name", "x")
		if got := failedOf(r, time.Now()).tool; got != tool {
			t.Errorf("%s: %q", method, got)
		}
	}
}

// What cannot be passed on is told with what it was about and for how long, some a minute,
// whichever way it went.
func TestTheLogTellsOfRequestsThatCouldNotBePassedOn(t *testing.T) {
	const body = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":{"s":"secret"},"_meta":{}}}`
	lost := &scripted{verbatim: func(context.Context, *upstream.Call, func(jsonrpc.Message)) (*upstream.Answer, error) {
		return nil, errors.New("lost")
	}}
	request := func() *http.Request {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/mcp", strings.NewReader(body))
		r.Header.Set("Mcp-Method", "tools/call")
		r.Header.Set("Mcp-Name", "x")
		r.Header.Set("Mcp-Session-Id", "0123456789abcdef")
		return r
	}
	for name, way := range map[string]struct {
		session bool
		open    func(log zerolog.Logger) (ask func())
	}{
		"whole": {true, func(log zerolog.Logger) func() {
			nowhere, _ := url.Parse("http://127.0.0.1:1/mcp?key=secret")
			p := New(Options{URL: nowhere, Log: log})
			return func() { p.ServeHTTP(httptest.NewRecorder(), request()) }
		}},
		"over connections": {false, func(log zerolog.Logger) func() {
			conv := NewConnections(ConnectionOptions{Server: lost, Log: log}).Open()
			return func() {
				msg, _ := jsonrpc.Parse([]byte(body))
				conv.Serve(t.Context(), downstream.Caller{}, downstream.NewRequest(msg), &outcome{done: make(chan string, 1)})
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			var log lines
			ask := way.open(zerolog.New(&log))
			for range 40 {
				ask()
			}
			text := log.buf.String()
			if n := strings.Count(text, "\n"); n != 20 || strings.Count(text, `"level":"warn"`) != n || strings.Contains(text, "secret") {
				t.Errorf("%d lines:\n%s", n, text)
			}
			for _, field := range []string{`"method":"tools/call"`, `"tool":"x"`, `"duration":`, `"error":"`} {
				if strings.Count(text, field) != 20 {
					t.Errorf("%s is missing in\n%s", field, text)
				}
			}
			if way.session && !strings.Contains(text, `"session_id":"01234567"`) {
				t.Errorf("no session in\n%s", text)
			}
		})
	}
}
