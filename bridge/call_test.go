package bridge

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/mrtr"
	"github.com/mcpbridge/bridge/rawjson"
	"github.com/mcpbridge/bridge/upstream"
)

const (
	book   = `{"name":"book","arguments":{"n":9007199254740993}}`
	booked = `{"resultType":"complete","content":[{"type":"text","text":"ok"}]}`
)

func question1(key string) string {
	return `"` + key + `":{"method":"elicitation/create","params":{"message":"Class?","requestedSchema":{"type":"object","properties":{"k":{"type":"string"}}}}}`
}

func inputRequired(state string, requests ...string) step {
	out := `{"resultType":"input_required"`
	if state != "" {
		out += `,"requestState":` + state
	}
	if len(requests) > 0 {
		out += `,"inputRequests":{` + strings.Join(requests, ",") + `}`
	}
	return result(out + `}`)
}

func TestPlainCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conv, up := session(t, Limits{}, result(booked))
		c := request(t, conv, "7", mcp.MethodToolsCall, book)
		if got := c.result(); got != `{"content":[{"type":"text","text":"ok"}]}` {
			t.Fatalf("got %s", got)
		}
		sent := up.calls()[0]
		if got := member(sent, "arguments", "n"); got != "9007199254740993" {
			t.Fatalf("P-6: %s", got)
		}
		if got := member(sent, "_meta", mcp.MetaClientCapabilities); got != `{"elicitation":{"form":{},"url":{}},"sampling":{},"roots":{}}` {
			t.Fatalf("A.5: %s", got)
		}
		if member(sent, "inputResponses") != "" || member(sent, "requestState") != "" {
			t.Fatalf("D-I4: %s", sent.Params)
		}
	})
}

func TestTwoRounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conv, up := session(t, Limits{},
			inputRequired(`"a\u002b\ud800"`, question1("one")),
			inputRequired("", question1("two")),
			result(booked))
		c := request(t, conv, "7", mcp.MethodToolsCall, book)
		c.answer(0, `{"action":"accept","content":{"k":"e"}}`)
		c.answer(1, `{"action":"decline"}`)
		c.result()
		calls := up.calls()
		if got := member(calls[1], "requestState"); got != `"a\u002b\ud800"` {
			t.Fatalf("D-I3: %s", got)
		}
		if got := member(calls[1], "inputResponses"); got != `{"one":{"action":"accept","content":{"k":"e"}}}` {
			t.Fatalf("C.9: %s", got)
		}
		if got := member(calls[2], "requestState"); got != "" {
			t.Fatalf("D-I4: %s", got)
		}
		for _, call := range calls {
			if member(call, "arguments") != `{"n":9007199254740993}` {
				t.Fatalf("D-I2: %s", call.Params)
			}
		}
	})
}

func TestDuplicateAndForeignAnswersAreIgnored_C9(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conv, up := session(t, Limits{}, inputRequired(`"s"`, question1("q")), result(booked))
		other, _ := session(t, Limits{})
		c := request(t, conv, "1", mcp.MethodToolsCall, book)
		id := c.asked()[0].ID
		other.Answer(downstream.Caller{}, jsonrpc.Message{ID: id, Result: []byte(`{"action":"accept"}`)})
		if len(up.calls()) != 1 {
			t.Fatal("another session answered")
		}
		c.answer(0, `{"action":"accept"}`)
		c.answer(0, `{"action":"accept"}`)
		if n := len(up.calls()); n != 2 {
			t.Fatalf("%d upstream requests", n)
		}
		c.result()
	})
}

func TestRepeatedClientIDsNeverCross(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conv, _ := session(t, Limits{},
			inputRequired(`"a"`, question1("q")), inputRequired(`"b"`, question1("q")),
			result(`{"content":[],"_meta":{"for":"b"}}`), result(`{"content":[],"_meta":{"for":"a"}}`))
		a := request(t, conv, "1", mcp.MethodToolsCall, book)
		b := request(t, conv, "1", mcp.MethodToolsCall, book)
		conv.Notify(downstream.Caller{}, jsonrpc.Message{Method: mcp.NotificationCancelled, Params: []byte(`{"requestId":1}`)})
		b.answer(0, `{"action":"accept"}`)
		a.answer(0, `{"action":"accept"}`)
		if !strings.Contains(a.result(), `"for":"a"`) || !strings.Contains(b.result(), `"for":"b"`) {
			t.Fatalf("crossed: %s %s", a.result(), b.result())
		}
	})
}

func TestCancelOfARunningCallClosesTheUpstreamStream_DT13(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conv, _ := session(t, Limits{}, hang)
		c := request(t, conv, `"x"`, mcp.MethodToolsCall, book)
		conv.Notify(downstream.Caller{}, jsonrpc.Message{Method: mcp.NotificationCancelled, Params: []byte(`{"requestId":"x"}`)})
		synctest.Wait()
		if !c.abandoned || c.ends != 1 || len(conv.table.calls) != 0 {
			t.Fatalf("abandoned %v, ends %d, calls %d", c.abandoned, c.ends, len(conv.table.calls))
		}
	})
}

func TestCancelWhileAskedNeverExecutes_DT13(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conv, up := session(t, Limits{}, inputRequired(`"s"`, question1("q")))
		c := request(t, conv, "5", mcp.MethodToolsCall, book)
		id := c.asked()[0].ID
		conv.Notify(downstream.Caller{}, jsonrpc.Message{Method: mcp.NotificationCancelled, Params: []byte(`{"requestId":5}`)})
		if got := c.notified(mcp.NotificationCancelled); len(got) != 1 || !strings.Contains(string(got[0].Params), string(id)) {
			t.Fatalf("C-35: %v", got)
		}
		c.answer(0, `{"action":"accept"}`)
		if len(up.calls()) != 1 || !c.abandoned {
			t.Fatalf("%d upstream requests, abandoned %v", len(up.calls()), c.abandoned)
		}
	})
}

func TestClientErrors_F3(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conv, up := session(t, Limits{}, inputRequired(`"s"`, question1("q")), result(booked), result(booked))
		c := request(t, conv, "5", mcp.MethodToolsCall, book)
		c.refuseToAnswer(0, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "?"})
		if got := member(up.calls()[1], "inputResponses"); got != `{"q":{"action":"cancel"}}` {
			t.Fatalf("got %s", got)
		}
		request(t, conv, "6", mcp.MethodToolsCall, book)
		if got := member(up.calls()[2], "_meta", mcp.MetaClientCapabilities); strings.Contains(got, "elicitation") {
			t.Fatalf("still declared: %s", got)
		}
	})
}

func TestAbortedSampling_C34(t *testing.T) {
	for method, want := range map[string]string{
		mcp.MethodToolsCall:  `"isError":true`,
		mcp.MethodPromptsGet: `"inputRequest":"s"`,
	} {
		synctest.Test(t, func(t *testing.T) {
			conv, up := session(t, Limits{}, inputRequired("",
				`"s":{"method":"sampling/createMessage","params":{"messages":[],"maxTokens":1}}`, question1("q")))
			c := request(t, conv, "5", method, `{"name":"x"}`)
			c.refuseToAnswer(0, &jsonrpc.Error{Code: -1, Message: "no"})
			got := c.result()
			if e := c.response.Error; e != nil {
				got = string(e.Data)
			}
			if !strings.Contains(got, want) || !strings.Contains(got, "rejected by the user") {
				t.Fatalf("got %s", got)
			}
			if len(c.notified(mcp.NotificationCancelled)) != 1 || len(up.calls()) != 1 {
				t.Fatal("C-35: the sibling was not withdrawn, or the server was called")
			}
		})
	}
}

func TestNoAnswer_C9(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conv, up := session(t, Limits{Flow: mrtr.Limits{ServerRequest: time.Minute}}, inputRequired(`"s"`, question1("q")), result(booked))
		c := request(t, conv, "5", mcp.MethodToolsCall, book)
		pass(time.Minute + time.Second)
		if got := member(up.calls()[1], "inputResponses"); got != `{"q":{"action":"cancel"}}` {
			t.Fatalf("got %s", got)
		}
		if len(c.notified(mcp.NotificationCancelled)) != 1 {
			t.Fatal("the question was not withdrawn")
		}
		c.result()
	})
}

func TestStateOnlyRound_DT5(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conv, up := session(t, Limits{}, inputRequired(`"busy"`), result(booked))
		c := request(t, conv, "5", mcp.MethodToolsCall, book)
		if len(up.calls()) != 1 {
			t.Fatal("not paced")
		}
		pass(time.Second)
		if got := member(up.calls()[1], "requestState"); got != `"busy"` || member(up.calls()[1], "inputResponses") != "" {
			t.Fatalf("got %s", up.calls()[1].Params)
		}
		c.result()
	})
}

func TestDeadlines_DT17_DT20(t *testing.T) {
	tests := map[string]struct {
		limits Limits
		step   step
		want   string
	}{
		"round":   {Limits{Flow: mrtr.Limits{Round: time.Second}}, hang, "timeouts.round"},
		"call":    {Limits{Flow: mrtr.Limits{Call: time.Second}}, hang, "timeouts.flow"},
		"waiting": {Limits{Flow: mrtr.Limits{Call: time.Second}}, inputRequired(`"s"`, question1("q")), "timeouts.flow"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				conv, _ := session(t, test.limits, test.step)
				c := request(t, conv, "5", mcp.MethodToolsCall, book)
				pass(2 * time.Second)
				got := c.result()
				if e := c.response.Error; e != nil {
					got = e.Message
				}
				if !strings.Contains(got, test.want) {
					t.Fatalf("got %s", got)
				}
			})
		})
	}
}

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

func TestFlowsPerSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ask := inputRequired(`"s"`, question1("q"))
		conv, _ := session(t, Limits{FlowsPerSession: 2}, ask, ask, ask)
		first := request(t, conv, "1", mcp.MethodToolsCall, book)
		request(t, conv, "2", mcp.MethodToolsCall, book)
		request(t, conv, "3", mcp.MethodToolsCall, book)
		if got := first.result(); !strings.Contains(got, "limits.flows") {
			t.Fatalf("got %s", got)
		}
		if conv.table.suspended.Len() != 2 || conv.table.questions.len() != 2 {
			t.Fatalf("%d suspended, %d questions", conv.table.suspended.Len(), conv.table.questions.len())
		}
	})
}

func TestJSONOnlyClientsAreNotAsked_A18(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conv, up := session(t, Limits{}, inputRequired(`"s"`, question1("q")))
		c := requestOn(&client{t: t, conv: conv, jsonOnly: true}, "1", mcp.MethodToolsCall, `{"name":"x","_meta":{"progressToken":1}}`)
		if got := c.result(); !strings.Contains(got, "isError") {
			t.Fatalf("got %s", got)
		}
		meta := member(up.calls()[0], "_meta")
		if strings.Contains(meta, "elicitation") || strings.Contains(meta, "progressToken") {
			t.Fatalf("declared what cannot be honoured: %s", meta)
		}
	})
}

func TestUnauthorized_H3_H4(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		denied := failure(&upstream.Failure{Cause: upstream.Unauthorized, Status: 401, Challenge: []string{"Bearer scope=x"}})
		conv, _ := session(t, Limits{}, denied, inputRequired(`"s"`, question1("q")), denied)
		c := request(t, conv, "1", mcp.MethodToolsCall, book)
		if c.refused == nil || c.refused.Status != 401 || c.ends != 1 {
			t.Fatalf("refused %+v", c.refused)
		}
		c = request(t, conv, "2", mcp.MethodToolsCall, book)
		c.answer(0, `{"action":"accept"}`)
		if e := c.rpcError(); e.Code != jsonrpc.CodeInternal {
			t.Fatalf("code %d", e.Code)
		}
	})
}

func TestResend_D15(t *testing.T) {
	lost := failure(&upstream.Failure{Cause: upstream.Lost, Sent: true})
	neverLeft := failure(&upstream.Failure{Cause: upstream.Unreachable, Sent: false})
	tests := []struct {
		method string
		first  step
		calls  int
	}{
		{mcp.MethodToolsCall, lost, 1},
		{mcp.MethodToolsCall, neverLeft, 2},
		{mcp.MethodToolsList, lost, 2},
		{mcp.MethodPromptsGet, lost, 2},
	}
	for i, test := range tests {
		t.Run(fmt.Sprint(i, test.method), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				conv, up := session(t, Limits{}, test.first, result(`{"content":[],"tools":[],"messages":[]}`))
				c := request(t, conv, "1", test.method, `{"name":"x"}`)
				if n := len(up.calls()); n != test.calls {
					t.Fatalf("%d upstream requests, want %d", n, test.calls)
				}
				if test.calls == 1 {
					c.rpcError()
				}
			})
		})
	}
}

func TestLostCallOfARepeatableToolIsResent_D15_Q8(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lost := failure(&upstream.Failure{Cause: upstream.Lost, Sent: true})
		conv, up := session(t, Limits{},
			result(`{"tools":[{"name":"safe","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}},{"name":"book","inputSchema":{"type":"object"}}]}`),
			lost, result(booked), lost)
		request(t, conv, "1", mcp.MethodToolsList, `{}`).result()
		request(t, conv, "2", mcp.MethodToolsCall, `{"name":"safe"}`).result()
		if e := request(t, conv, "3", mcp.MethodToolsCall, book).rpcError(); len(up.calls()) != 4 || e.Code != jsonrpc.CodeInternal {
			t.Fatalf("%d upstream requests", len(up.calls()))
		}
	})
}

func TestRequestsAboutNothingAreRefusedHere_F4(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conv, up := session(t, Limits{})
		for method, params := range map[string]string{
			mcp.MethodToolsCall: `{"arguments":{}}`, mcp.MethodPromptsGet: `{"name":5}`, mcp.MethodResourcesRead: ``,
		} {
			if e := request(t, conv, "1", method, params).rpcError(); e.Code != jsonrpc.CodeInvalidParams {
				t.Errorf("%s: %v", method, e)
			}
		}
		if n := len(up.calls()); n != 0 {
			t.Fatalf("%d requests went up", n)
		}
	})
}

func TestLocalMethods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conv, up := session(t, Limits{})
		if got := request(t, conv, "1", mcp.MethodPing, "").result(); got != "{}" {
			t.Fatalf("A-9: %s", got)
		}
		for _, method := range []string{mcp.MethodDiscover, mcp.MethodListen, mcp.MethodTasksUpdate, mcp.MethodTasksGet, mcp.MethodResourcesSubscribe} {
			if code := request(t, conv, "1", method, `{}`).rpcError().Code; code != jsonrpc.CodeMethodNotFound {
				t.Errorf("A-12: %s: %d", method, code)
			}
		}
		if code := request(t, conv, "1", mcp.MethodInitialize, `{}`).rpcError().Code; code != jsonrpc.CodeInvalidRequest {
			t.Errorf("A-4: %d", code)
		}
		if n := len(up.calls()); n != 0 {
			t.Fatalf("P-5: %d requests went up", n)
		}
	})
}

func TestCloseEndsEverything_DT19(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conv, _ := session(t, Limits{}, inputRequired(`"s"`, question1("q")), hang)
		asked := request(t, conv, "1", mcp.MethodToolsCall, book)
		running := request(t, conv, "2", mcp.MethodToolsCall, book)
		conv.Close(nil)
		conv.Close(nil)
		synctest.Wait()
		if !asked.abandoned || !running.abandoned || len(conv.table.calls)+conv.table.questions.len() != 0 {
			t.Fatal("something is left")
		}
		late := request(t, conv, "3", mcp.MethodToolsCall, book)
		if !late.abandoned {
			t.Fatal("served after the end")
		}
	})
}

func TestURLElicitation_C27_C32(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ask := inputRequired(`"s"`, `"u":{"method":"elicitation/create","params":{"mode":"url","message":"Sign in","url":"https://example.com/?t=1"}}`)
		conv, up := session(t, Limits{}, ask, ask, result(booked))
		c := request(t, conv, "1", mcp.MethodToolsCall, book)
		params := string(c.asked()[0].Params)
		if !strings.Contains(params, `"elicitationId":"`) || !strings.Contains(params, `"url":"https://example.com/?t=1"`) {
			t.Fatalf("C-27: %s", params)
		}
		c.answer(0, `{"action":"accept","content":{"x":1}}`)
		if n := len(c.asked()); n != 1 {
			t.Fatalf("C-31: prompted %d times", n)
		}
		pass(5 * time.Second)
		if got := member(up.calls()[2], "inputResponses"); got != `{"u":{"action":"accept"}}` {
			t.Fatalf("C-29: %s", got)
		}
		if n := len(c.notified(mcp.NotificationElicitationComplete)); n != 1 {
			t.Fatalf("C-32: %d", n)
		}
		c.result()
	})
}

func TestPanicAfterAnAnswerEndsNothingButItsCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conv, _ := session(t, Limits{}, inputRequired(`"s"`, question1("q")),
			func(context.Context, *upstream.Call, func(jsonrpc.Message)) (*upstream.Answer, error) {
				panic("a fault")
			})
		c := request(t, conv, "1", mcp.MethodToolsCall, book)
		c.answer(0, `{"action":"accept"}`)
		synctest.Wait()
		if c.response == nil || c.response.Error == nil || c.response.Error.Code != jsonrpc.CodeInternal {
			t.Fatalf("the client got %+v", c.response)
		}
	})
}
