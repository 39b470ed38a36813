package bridge

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/rawjson"
	"github.com/mcpbridge/bridge/upstream"
)

func progressTo(token string, values ...string) func(*upstream.Call, func(jsonrpc.Message)) {
	return func(call *upstream.Call, notify func(jsonrpc.Message)) {
		if token == "" {
			token = member(call, "_meta", "progressToken")
		}
		for _, v := range values {
			notify(jsonrpc.Message{Method: mcp.NotificationProgress, Params: []byte(`{"progressToken":` + token + `,"progress":` + v + `,"total":1}`)})
		}
	}
}

func during(before func(*upstream.Call, func(jsonrpc.Message)), then step) step {
	return func(ctx context.Context, call *upstream.Call, notify func(jsonrpc.Message)) (*upstream.Answer, error) {
		before(call, notify)
		return then(ctx, call, notify)
	}
}

// A server that counts on across its rounds is let.
func TestProgressKeepsTheServersOwnCount_C4(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conv, _ := session(t, Limits{},
			during(progressTo("", "1", "2"), inputRequired(`"s"`, question1("q"))),
			during(progressTo("", "3", "4"), inputRequired(`"s"`, question1("q"))),
			during(progressTo("", "1", "5"), result(booked)))
		c := request(t, conv, "5", mcp.MethodToolsCall, `{"name":"book","_meta":{"progressToken":0}}`)
		c.answer(0, `{"action":"accept"}`)
		c.answer(1, `{"action":"accept"}`)
		c.result()
		var got []string
		for _, m := range c.notified(mcp.NotificationProgress) {
			got = append(got, string(rawjson.Get(m.Params, "progress")))
		}
		if all := strings.Join(got, " "); all != "1 2 3 4 5 9" { // the last round began anew
			t.Fatalf("got %s", all)
		}
	})
}

func TestProgressRisesAcrossRounds_C4(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conv, up := session(t, Limits{},
			during(progressTo("", "0.4", "0.4", "0.2"), inputRequired(`"s"`, question1("q"))),
			during(progressTo("", "0.1", "0.2"), result(booked)))
		c := request(t, conv, "5", mcp.MethodToolsCall, `{"name":"book","_meta":{"progressToken":0}}`)
		pass(31 * time.Second) // two heartbeats
		c.answer(0, `{"action":"accept"}`)
		c.result()
		var got []string
		for _, m := range c.notified(mcp.NotificationProgress) {
			got = append(got, string(m.Params))
		}
		want := []string{
			`{"progressToken":0,"progress":0.4,"total":1}`,
			`{"progressToken":0,"progress":0.401,"message":"Waiting for your answer"}`,
			`{"progressToken":0,"progress":0.402,"message":"Waiting for your answer"}`,
			`{"progressToken":0,"progress":0.502,"total":1.402}`,
			`{"progressToken":0,"progress":0.602,"total":1.402}`,
		}
		if strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Fatalf("got\n%s", strings.Join(got, "\n"))
		}
		first, second := member(up.calls()[0], "_meta", "progressToken"), member(up.calls()[1], "_meta", "progressToken")
		if first == second || first == "0" {
			t.Fatalf("B-5: tokens %s and %s", first, second)
		}
	})
}

func TestNoTokenNoProgress_C3(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conv, up := session(t, Limits{}, during(progressTo(`"p1-0"`, "0.4"), inputRequired(`"s"`, question1("q"))), result(booked))
		c := request(t, conv, "5", mcp.MethodToolsCall, book)
		pass(time.Minute)
		c.answer(0, `{"action":"accept"}`)
		if len(c.notified(mcp.NotificationProgress)) > 0 || member(up.calls()[0], "_meta", "progressToken") != "" {
			t.Fatal("progress without a token")
		}
	})
}

func TestLogLevels_C6_C7(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		logs := func(_ *upstream.Call, notify func(jsonrpc.Message)) {
			for _, level := range []string{"debug", "warning", "alert"} {
				notify(jsonrpc.Message{Method: mcp.NotificationMessage, Params: []byte(`{"level":"` + level + `","data":1}`)})
			}
		}
		conv, up := session(t, Limits{}, during(logs, result(booked)), during(logs, result(booked)))
		c := request(t, conv, "5", mcp.MethodToolsCall, book)
		if n := len(c.notified(mcp.NotificationMessage)); n != 0 {
			t.Fatalf("C-7: %d messages without a level", n)
		}
		if got := request(t, conv, "6", mcp.MethodSetLevel, `{"level":"loud"}`).rpcError().Code; got != jsonrpc.CodeInvalidParams {
			t.Fatalf("code %d", got)
		}
		request(t, conv, "6", mcp.MethodSetLevel, `{"level":"warning"}`).result()
		c = request(t, conv, "7", mcp.MethodToolsCall, book)
		if n := len(c.notified(mcp.NotificationMessage)); n != 2 {
			t.Fatalf("C-6: %d messages", n)
		}
		if got := member(up.calls()[1], "_meta", mcp.MetaLogLevel); got != `"warning"` {
			t.Fatalf("B-6: %s", got)
		}
	})
}

// A client that read nothing had each message of a few bytes of its server become one of 60 KB.
func TestALongProgressTokenIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conv, up := session(t, Limits{}, result(booked))
		c := request(t, conv, "5", mcp.MethodToolsCall, `{"name":"book","_meta":{"progressToken":"`+strings.Repeat("t", 1<<10)+`"}}`)
		if err := c.rpcError(); err.Code != jsonrpc.CodeInvalidParams || !strings.Contains(err.Message, "progressToken has 1026 bytes; it may have 1024") {
			t.Errorf("the client gets %v", err)
		}
		if len(up.calls()) > 0 {
			t.Error("the server is called")
		}
		c = request(t, conv, "5", mcp.MethodToolsCall, `{"name":"book","_meta":{"progressToken":"`+strings.Repeat("t", 1<<10-2)+`"}}`)
		c.result()
	})
}
