package bridge

import (
	"bytes"
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/mcpbridge/bridge/bridge/ends"
	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/observe"
	"github.com/mcpbridge/bridge/sessions"
	"github.com/mcpbridge/bridge/upstream"
)

// ends takes the reports of calls.
type endings struct {
	observe.Nobody
	mu    sync.Mutex
	calls []observe.CallEnd

	questions []observe.Question
}

func (e *endings) QuestionEnded(q observe.Question) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.questions = append(e.questions, q)
}

func (e *endings) CallEnded(c observe.CallEnd) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.calls = append(e.calls, c)
}

// TestEveryEndOfACallHasOneLine: at debug, of those that failed at warn, in the words
// of the metrics, and with no word of what the call said.
func TestEveryEndOfACallHasOneLine(t *testing.T) {
	const secret = "a-secret"
	ask := inputRequired(`"`+secret+`"`, question1("a"))
	args := `{"name":"book","arguments":{"card":"` + secret + `"}}`
	for name, tc := range map[string]struct {
		steps      []step
		method     string
		params     string
		then       func(c *client)
		level, end string
		cause      string
	}{
		"completes":        {steps: []step{result(`{"resultType":"complete","content":[{"type":"text","text":"` + secret + `"}]}`)}, level: "debug", end: "complete"},
		"a tool fails":     {steps: []step{result(`{"resultType":"complete","isError":true,"content":[{"type":"text","text":"` + secret + `"}]}`)}, level: "debug", end: "complete"},
		"asks and goes on": {steps: []step{ask, result(booked)}, then: func(c *client) { c.answer(0, `{"action":"accept","content":{"k":"`+secret+`"}}`) }, level: "debug", end: "complete"},
		"is cancelled": {steps: []step{ask}, then: func(c *client) {
			c.conv.Notify(downstream.Caller{}, jsonrpc.Message{Method: mcp.NotificationCancelled, Params: []byte(`{"requestId":1,"reason":"` + secret + `"}`)})
		}, level: "debug", end: "cancelled", cause: "client"},
		"the server's error":  {steps: []step{rpcError(&jsonrpc.Error{Code: -32603, Message: secret, Data: []byte(`"` + secret + `"`)})}, level: "warn", end: "failed", cause: "server_error"},
		"no answer":           {steps: []step{failure(&upstream.Failure{Cause: upstream.ServerError, Sent: true, Detail: "HTTP 500"})}, level: "warn", end: "failed"},
		"a silent server":     {steps: []step{hang}, then: func(*client) { pass(time.Hour) }, level: "warn", end: "expired", cause: "timeouts.round"},
		"refused by status":   {steps: []step{failure(&upstream.Failure{Cause: upstream.Unauthorized, Status: 401, Challenge: []string{secret}})}, level: "warn", end: "failed"},
		"a violation":         {steps: []step{result(`{"resultType":"input_required"}`)}, level: "warn", end: "failed", cause: "violation"},
		"a malformed result":  {steps: []step{result(`{"resultType":"complete","content":"` + secret + `"}`)}, level: "warn", end: "failed", cause: "violation"},
		"answered here":       {method: mcp.MethodPing, params: `{}`, level: "debug", end: "complete"},
		"not offered":         {method: mcp.MethodDiscover, params: `{}`, level: "warn", end: "failed", cause: "refused"},
		"about nothing":       {params: `{}`, level: "warn", end: "failed", cause: "refused"},
		"an operator ends it": {steps: []step{ask}, then: func(c *client) { c.conv.Close(sessions.Dismissed) }, level: "debug", end: "cancelled", cause: "operator"},
		"ended elsewhere":     {steps: []step{ask}, then: func(c *client) { c.conv.Close(sessions.Elsewhere) }, level: "debug", end: "cancelled", cause: "session"},
		"the bridge stops":    {steps: []step{ask}, then: func(c *client) { c.conv.Close(downstream.ErrStopping) }, level: "warn", end: "shutdown", cause: "shutdown"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log bytes.Buffer
				seen := &endings{}
				conv, _ := sessionWith(t, Options{Log: zerolog.New(&log).Level(zerolog.DebugLevel), Watch: seen}, tc.steps...)
				if tc.method == "" {
					tc.method = mcp.MethodToolsCall
				}
				if tc.params == "" {
					tc.params = args
				}
				c := request(t, conv, "1", tc.method, tc.params)
				if tc.then != nil {
					tc.then(c)
				}
				synctest.Wait()
				var lines []map[string]any
				for text := range strings.Lines(log.String()) {
					var line map[string]any
					if err := json.Unmarshal([]byte(text), &line); err != nil {
						t.Fatal(err)
					}
					if line["message"] == ends.Line {
						lines = append(lines, line)
					}
				}
				if len(lines) != 1 || len(seen.calls) != 1 {
					t.Fatalf("%d lines, %d reports\n%s", len(lines), len(seen.calls), log.String())
				}
				line, done := lines[0], seen.calls[0]
				cause, _ := line["cause"].(string)
				if line["level"] != tc.level || line["end"] != tc.end || line["end"] != done.End.String() || cause != done.Cause || tc.cause != "" && cause != tc.cause {
					t.Errorf("%v\n%+v", line, done)
				}
				if line["method"] != tc.method || strings.Contains(log.String(), secret) {
					t.Errorf("%s", log.String())
				}
			})
		})
	}
}
