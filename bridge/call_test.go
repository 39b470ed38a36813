package bridge

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
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
		if conv.table.waiting.owners.Len() != 2 || conv.table.questions.len() != 2 {
			t.Fatalf("%d suspended, %d questions", conv.table.waiting.owners.Len(), conv.table.questions.len())
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

// Whoever brings no credentials of the session may know its id only, also when the server
// takes theirs, and the session is not bound to them for all that.
func TestCallsOfOthersInASessionEndNoneOfItsOwner(t *testing.T) {
	for _, rotation := range []uint64{0, 1} {
		callsOfOthersInASession(t, downstream.Caller{Principal: "mallory", Unproven: true, Rotation: rotation})
	}
}

func callsOfOthersInASession(t *testing.T, mallory downstream.Caller) {
	synctest.Test(t, func(t *testing.T) {
		ask := inputRequired(`"s"`, question1("q"))
		conv, _ := session(t, Limits{FlowsPerSession: 2}, ask, ask, ask, ask, ask)
		owners := []*client{request(t, conv, "1", mcp.MethodToolsCall, book), request(t, conv, "2", mcp.MethodToolsCall, book)}
		var others []*client
		for _, id := range []string{"3", "4", "5"} {
			c := &client{t: t, conv: conv}
			go conv.Serve(t.Context(), mallory, downstream.NewRequest(jsonrpc.Message{
				ID: jsonrpc.ID(id), Method: mcp.MethodToolsCall, Params: []byte(book),
			}), c)
			synctest.Wait()
			others = append(others, c)
		}
		for _, c := range append(owners, others[1:]...) {
			if c.response != nil {
				t.Errorf("a call was ended: %s", c.result())
			}
		}
		if got := others[0].result(); !strings.Contains(got, "limits.flows") {
			t.Errorf("the oldest of the others: %s", got)
		}
	})
}
