package bridge

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/mrtr"
	"github.com/mcpbridge/bridge/observe"
	"github.com/mcpbridge/bridge/upstream"
)

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

// TestACallWhoseQuestionNobodyAnsweredSaysSo: to who watches, though it is complete, and
// any call says which it was.
func TestACallWhoseQuestionNobodyAnsweredSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		seen := &endings{}
		conv, _ := sessionWith(t, Options{Watch: seen, Limits: Limits{Flow: mrtr.Limits{ServerRequest: time.Minute}}}, inputRequired(`"s"`, question1("q")), result(booked), result(booked))
		request(t, conv, "5", mcp.MethodToolsCall, book)
		pass(time.Minute + time.Second)
		request(t, conv, "6", mcp.MethodToolsCall, book).result()
		if len(seen.calls) != 2 {
			t.Fatalf("%+v", seen.calls)
		}
		silent, other := seen.calls[0], seen.calls[1]
		if silent.End != observe.Complete || silent.Silences != 1 || silent.Silence != time.Minute || !silent.Unusual() || silent.Amiss() || silent.Name == "" || silent.ID == "" {
			t.Errorf("%+v", silent)
		}
		if other.Silences != 0 || other.Unusual() || other.Serial == 0 || other.Tool == nil {
			t.Errorf("%+v", other)
		}
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

// TestTheLimitThatEndsACircleIsShown: the one that is reached first.
func TestTheLimitThatEndsACircleIsShown(t *testing.T) {
	for limit, limits := range map[string]mrtr.Limits{
		"limits.state-only-rounds": {Rounds: 9, StateOnly: 3},
		"limits.rounds":            {Rounds: 3, StateOnly: 9},
	} {
		synctest.Test(t, func(t *testing.T) {
			conv, _ := session(t, Limits{Flow: limits}, inputRequired(`"a"`), inputRequired(`"b"`), inputRequired(`"c"`), inputRequired(`"d"`))
			c := request(t, conv, "5", mcp.MethodToolsCall, book)
			seen := conv.Look().Flows
			if len(seen) != 1 || seen[0].StateOnly != 1 || seen[0].StateMost != 3 || seen[0].StateCap != limit {
				t.Errorf("%s: shown as %+v", limit, seen)
			}
			pass(time.Hour)
			if text := c.result(); !strings.Contains(text, "isError") {
				t.Errorf("%s: it went on: %s", limit, text)
			}
		})
	}
}
