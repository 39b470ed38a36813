package ends_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"github.com/mcpbridge/bridge/bridge/ends"
	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/mrtr"
	"github.com/mcpbridge/bridge/observe"
	"github.com/mcpbridge/bridge/translate"
	"github.com/mcpbridge/bridge/upstream"
)

// secret is in what peers say, which must stay out of the log.
const secret = "s3cr3t"

// Every cause has one word for each who hears of it: the client, the log, the metrics.
func TestEveryCauseHasItsWords(t *testing.T) {
	lost := &upstream.Failure{Cause: upstream.Lost, Sent: true, Detail: "the connection broke"}
	for name, tc := range map[string]struct {
		err    error
		told   string // to the client, in a tool's result or an error
		tool   bool   // it is a tool's result, for the model to read
		end    observe.End
		cause  string
		logged string
	}{
		"the server's error": {&jsonrpc.Error{Code: -32603, Message: secret}, secret, false, observe.Failed, "server_error", ""},
		"a failure":          {lost, "the connection broke", false, observe.Failed, "lost", "D-15"},
		"a wrapped failure":  {fmt.Errorf("while waiting: %w", lost), "the connection broke", false, observe.Failed, "lost", "D-15"},
		"no answer":          {&mrtr.Abort{Key: "q", Method: mcp.MethodRootsList, Reason: "nobody " + secret}, secret, true, observe.Failed, "no_answer", "roots/list"},
		"not declared":       {&mrtr.Abort{Method: mcp.MethodRootsList, Undeclared: "roots", Rule: "C-33"}, "why not", true, observe.Failed, "not_declared", "C-33"},
		"a limit":            {&mrtr.LimitReached{Limit: "limits.rounds", Value: 3}, "limits.rounds", true, observe.Failed, "limits.rounds", "limits.rounds"},
		"too many flows":     {&mrtr.LimitReached{Limit: "limits.flows", Value: 3}, "limits.flows", true, observe.Evicted, "limits.flows", "limits.flows"},
		"out of time":        {&mrtr.LimitReached{Limit: "timeouts.flow"}, "timeouts.flow", true, observe.Expired, "timeouts.flow", "timeouts.flow"},
		"a silent server":    {&mrtr.LimitReached{Limit: "timeouts.round"}, "timeouts.round", false, observe.Expired, "timeouts.round", "timeouts.round"},
		"a violation":        {&mrtr.Violation{Rule: "B-27", Text: "no type"}, "no type", false, observe.Failed, "violation", "B-27"},
		"an operator":        {downstream.ErrCallEnded, "who runs the bridge", false, observe.Cancelled, "operator", ""},
		"the bridge stops":   {downstream.ErrStopping, "shutting down", false, observe.Shutdown, "shutdown", ""},
		"a fault":            {ends.ErrFault, "internal error", false, observe.Failed, "internal", ""},
	} {
		t.Run(name, func(t *testing.T) {
			of := &ends.Facts{Method: mcp.MethodToolsCall, Rules: &translate.Rules{Version: mcp.V20251125}, Undeclared: "why not"}
			result, err := ends.Explain(tc.err, of)
			if (result == nil) == (err == nil) || (result != nil) != tc.tool {
				t.Fatalf("result %s, error %v", result, err)
			}
			said := string(result)
			if err != nil {
				said = err.Message
			}
			if !strings.Contains(said, tc.told) {
				t.Errorf("the client reads %s", said)
			}
			of.Method = mcp.MethodPromptsGet
			if result, err := ends.Explain(tc.err, of); result != nil || err == nil {
				t.Errorf("a prompt ends with %s", result)
			}
			if end, cause, _ := ends.EndOf(tc.err); end != tc.end || cause != tc.cause {
				t.Errorf("it is counted as %v, %s", end, cause)
			}
			var log bytes.Buffer
			line := zerolog.New(&log)
			ends.Why(line.Warn(), tc.err, "").Msg(ends.Line)
			if got := log.String(); strings.Contains(got, secret) || !strings.Contains(got, tc.logged) {
				t.Errorf("the log has %s", got)
			}
		})
	}
}

func TestAHintStandsOnlyWhereARuleWasBroken(t *testing.T) {
	for err, hinted := range map[error]bool{&mrtr.Violation{Rule: "B-27", Text: "no type"}: true, errors.New("x"): false} {
		var log bytes.Buffer
		line := zerolog.New(&log)
		ends.Why(line.Warn(), err, "look at the setting").Msg(ends.Line)
		if strings.Contains(log.String(), "look at the setting") != hinted {
			t.Errorf("%v: %s", err, log.String())
		}
	}
}

// What a person answered is told; what they wrote is not. URIs of resources are no names.
func TestWhoWatchesHearsWordsOfItsOwn(t *testing.T) {
	for response, want := range map[string]observe.Outcome{
		`{"action":"accept","content":{"a":1}}`: observe.Accepted, `{"action":"decline"}`: observe.Declined, `{"action":"cancel"}`: observe.Dismissed,
	} {
		if got := ends.OutcomeOf(mcp.MethodElicitationCreate, []byte(response)); got != want {
			t.Errorf("%s: %v", response, got)
		}
	}
	if got := ends.OutcomeOf(mcp.MethodSamplingCreateMessage, []byte(`{"action":"decline"}`)); got != observe.Accepted {
		t.Errorf("a model's answer: %v", got)
	}
	if ends.NameOf([]byte(`"a"`)) != "a" || ends.NameOf(nil) != "" {
		t.Error("names")
	}
	if !ends.FailedTool(mcp.MethodToolsCall, []byte(`{"isError":true}`)) || ends.FailedTool(mcp.MethodPromptsGet, []byte(`{"isError":true}`)) {
		t.Error("failed tools")
	}
}
