package bridge

import (
	"context"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/bridge/ask"
	"github.com/mcpbridge/bridge/bridge/catalog"
	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/observe"
	"github.com/mcpbridge/bridge/upstream"
)

var (
	linkIn  = regexp.MustCompile(`http://127\.0\.0\.1/questions/q/\w+`)
	guardIn = regexp.MustCompile(`name="guard" value="([^"]*)"`)
)

func TestPersonAnswersWhileTheCallWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conv, up, ada := mute(t, ask.Page, inputRequired(`"s"`, form1("q")), result(booked))
		c := request(t, conv, "1", mcp.MethodToolsCall, `{"name":"book","_meta":{"progressToken":7}}`)
		if got := member(up.calls()[0], "_meta", "io.modelcontextprotocol/clientCapabilities"); got != `{"elicitation":{"form":{},"url":{}}}` {
			t.Errorf("declared upstream: %s", got)
		}
		told := c.notified(mcp.NotificationProgress)
		if len(told) != 1 {
			t.Fatalf("%d progress notifications", len(told))
		}
		ada.answer(linkOf(t, string(told[0].Params)), "f0=Ada&action=accept")
		if got := c.result(); !strings.Contains(got, `"ok"`) {
			t.Error(got)
		}
		if got := member(up.calls()[1], "inputResponses"); got != `{"q":{"action":"accept","content":{"name":"Ada"}}}` {
			t.Error(got)
		}
		if len(c.asked()) != 0 {
			t.Error("the client was asked")
		}
	})
}

func TestLateAnswerCountsWhenTheSameCallComesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conv, up, ada := mute(t, ask.Page, inputRequired(`"s"`, form1("q")), result(booked), result(booked))
		first := request(t, conv, "1", mcp.MethodToolsCall, `{"name":"book","arguments":{"a":1},"_meta":{"progressToken":7}}`)
		pass(20 * time.Second)
		if got := first.result(); !strings.Contains(got, `"isError":true`) {
			t.Errorf("after its wait the call got %s", got)
		}
		ada.answer(linkOf(t, first.result()), "f0=Ada&action=accept")
		pass(time.Minute)
		if n := len(up.calls()); n != 1 {
			t.Fatalf("%d requests for nobody", n-1)
		}
		conv.cancelled(downstream.Caller{}, "1") // of a request that was answered
		if other := request(t, conv, "2", mcp.MethodToolsCall, `{"name":"book","arguments":{"a":2}}`); len(up.calls()) != 2 {
			t.Errorf("a call with other arguments is another one: %v", other.response)
		}
		again := request(t, conv, "3", mcp.MethodToolsCall, `{"name":"book", "arguments":{"a":1}}`)
		if got := again.result(); !strings.Contains(got, `"ok"`) || again.response.ID != "3" {
			t.Errorf("%s: %s", again.response.ID, got)
		}
		if got := member(up.calls()[2], "inputResponses"); got != `{"q":{"action":"accept","content":{"name":"Ada"}}}` {
			t.Error(got)
		}
		if conv.waiting().Len()+len(conv.table.calls)+ada.desk.Len() != 0 {
			t.Error("something is left")
		}
	})
}

// Two of the same at once are two calls with two questions: whichever is answered, the same
// call again picks that up, and then the other.
func TestTheSameCallTwiceAtOnceLosesNoAnswer(t *testing.T) {
	for _, answered := range []int{0, 1} {
		synctest.Test(t, func(t *testing.T) {
			conv, up, ada := mute(t, ask.Page, inputRequired(`"s"`, form1("q")), inputRequired(`"t"`, form1("q")), result(booked), result(booked))
			both := []*client{request(t, conv, "1", mcp.MethodToolsCall, `{"name":"book"}`), request(t, conv, "2", mcp.MethodToolsCall, `{"name":"book"}`)}
			pass(20 * time.Second)
			for i, at := range []int{answered, 1 - answered} {
				ada.answer(linkOf(t, both[at].result()), "f0=Ada&action=accept")
				if got := request(t, conv, strconv.Itoa(3+i), mcp.MethodToolsCall, `{"name":"book"}`).result(); !strings.Contains(got, `"ok"`) || len(up.calls()) != 3+i {
					t.Fatalf("answer %d: %s after %d requests", i+1, got, len(up.calls()))
				}
			}
			if conv.waiting().Len()+len(conv.table.calls)+ada.desk.Len() != 0 {
				t.Error("something is left")
			}
		})
	}
}

// A model that makes the same call again may write its arguments in another order.
func TestTheSameCallMayBeSpelledAnotherWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conv, up, ada := mute(t, ask.Page, inputRequired(`"s"`, form1("q")), result(booked))
		first := request(t, conv, "1", mcp.MethodToolsCall, `{"name":"book","arguments":{"a":1,"b":{"c":"é","d":[2]}}}`)
		pass(20 * time.Second)
		ada.answer(linkOf(t, first.result()), "f0=Ada&action=accept")
		again := request(t, conv, "2", mcp.MethodToolsCall, `{"arguments":{"b":{"d":[2.0],"c":"\u00e9"},"a":1},"name":"book"}`)
		if got := again.result(); !strings.Contains(got, `"ok"`) || len(up.calls()) != 2 {
			t.Errorf("%s after %d requests", got, len(up.calls()))
		}
	})
}

func TestSameCallAgainIsToldTheSameLink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conv, up, ada := mute(t, ask.Page, inputRequired(`"s"`, form1("q")), result(booked))
		first := request(t, conv, "1", mcp.MethodToolsCall, `{"name":"book"}`)
		pass(20 * time.Second)
		second := request(t, conv, "2", mcp.MethodToolsCall, `{"name":"book","_meta":{"progressToken":"t"}}`)
		pass(20 * time.Second)
		link := linkOf(t, first.result())
		if linkOf(t, second.result()) != link || len(up.calls()) != 1 {
			t.Errorf("%s, %d requests", second.result(), len(up.calls()))
		}
		third := request(t, conv, "3", mcp.MethodToolsCall, `{"name":"book"}`)
		ada.answer(link, "action=decline")
		if got := third.result(); !strings.Contains(got, `"ok"`) {
			t.Error(got)
		}
		if got := member(up.calls()[1], "inputResponses"); got != `{"q":{"action":"decline"}}` {
			t.Error(got)
		}
	})
}

func TestKeptCallEndsWithItsClient(t *testing.T) {
	for name, end := range map[string]func(*conversation){
		"cancelled": func(conv *conversation) { conv.cancelled(downstream.Caller{}, "2") },
		"closed":    func(conv *conversation) { conv.Close(nil) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				conv, up, ada := mute(t, ask.Page, inputRequired(`"s"`, form1("q")))
				request(t, conv, "1", mcp.MethodToolsCall, `{"name":"book"}`)
				pass(20 * time.Second)
				request(t, conv, "2", mcp.MethodToolsCall, `{"name":"book"}`)
				end(conv)
				synctest.Wait()
				if conv.waiting().Len()+len(conv.table.calls)+ada.desk.Len() != 0 || len(up.calls()) != 1 {
					t.Errorf("%d kept, %d calls, %d questions, %d requests", conv.waiting().Len(), len(conv.table.calls), ada.desk.Len(), len(up.calls()))
				}
			})
		})
	}
}

func TestOtherUsersCallIsAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conv, up, _ := mute(t, ask.Page, inputRequired(`"s"`, form1("q")), inputRequired(`"s"`, form1("q")))
		by := func(principal, id string) *client {
			c := &client{t: t, conv: conv}
			go conv.Serve(t.Context(), downstream.Caller{Principal: principal}, downstream.NewRequest(jsonrpc.Message{ID: jsonrpc.ID(id), Method: mcp.MethodToolsCall, Params: []byte(`{"name":"book"}`)}), c)
			synctest.Wait()
			return c
		}
		by("ada", "1")
		pass(20 * time.Second)
		by("eve", "2")
		if len(up.calls()) != 2 {
			t.Error("a call was given to somebody else")
		}
	})
}

func TestPoliciesAnswerAtOnce(t *testing.T) {
	for policy, want := range map[ask.Policy]string{ask.Decline: `{"q":{"action":"decline"}}`, ask.Default: ""} {
		synctest.Test(t, func(t *testing.T) {
			conv, up, _ := mute(t, policy, inputRequired(`"s"`, form1("q")), result(booked))
			c := request(t, conv, "1", mcp.MethodToolsCall, `{"name":"book"}`)
			if want == "" {
				if got := c.result(); !strings.Contains(got, "questions: default") || len(up.calls()) != 1 {
					t.Error(got)
				}
			} else if got := member(up.calls()[1], "inputResponses"); got != want {
				t.Error(got)
			}
		})
	}
}

// A client whose own time runs out gets an answer before that, and the same question
// again with the same call.
func TestImpatientClientIsAskedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conv, up := session(t, Limits{}, inputRequired(`"s"`, question1("q")), result(booked))
		conv.Driver.Patience = func(info []byte) time.Duration {
			if !strings.Contains(string(info), `"old"`) {
				t.Errorf("clientInfo %s", info)
			}
			return 50 * time.Second
		}
		conv.declare(conv.ClientInfo, conv.Declared)
		first := request(t, conv, "1", mcp.MethodToolsCall, book)
		pass(50 * time.Second)
		if got := first.result(); !strings.Contains(got, `"isError":true`) {
			t.Error(got)
		}
		second := request(t, conv, "2", mcp.MethodToolsCall, book)
		if len(second.asked()) != 1 || second.asked()[0].ID != first.asked()[0].ID {
			t.Fatalf("the question is not shown again: %v", second.asked())
		}
		pass(50 * time.Second)
		first.answer(0, `{"action":"accept"}`) // late, into the dialog that is still open
		if len(up.calls()) != 1 {
			t.Fatal("something ran for nobody")
		}
		third := request(t, conv, "3", mcp.MethodToolsCall, book)
		if got := third.result(); !strings.Contains(got, `"ok"`) || len(third.asked()) != 0 || len(up.calls()) != 2 {
			t.Errorf("%s, asked %d, %d requests", got, len(third.asked()), len(up.calls()))
		}
	})
}

// While no request waits, the time for an answer may pass: nothing runs for that, and
// an answer that came counts all the same.
func TestNothingRunsOnTimeForNobody(t *testing.T) {
	for _, answered := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			conv, up, ada := mute(t, ask.Page, inputRequired(`"s"`, form1("q")), result(booked))
			conv.Driver.Flows.ServerRequest, conv.Driver.Flows.Call = 5*time.Minute, time.Hour
			first := request(t, conv, "1", mcp.MethodToolsCall, book)
			pass(time.Minute)
			want := `{"q":{"action":"cancel"}}`
			if answered {
				ada.answer(linkOf(t, first.result()), "f0=Ada&action=accept")
				want = `{"q":{"action":"accept","content":{"name":"Ada"}}}`
			}
			pass(20 * time.Minute)
			if len(up.calls()) != 1 {
				t.Fatal("something ran for nobody")
			}
			if got := request(t, conv, "2", mcp.MethodToolsCall, book).result(); !strings.Contains(got, `"ok"`) {
				t.Error(got)
			}
			if got := member(up.calls()[1], "inputResponses"); got != want {
				t.Error(got)
			}
			if len(conv.table.calls) != 0 {
				t.Error("a call is left")
			}
		})
	}
}

func TestCallThatNobodyFetchesEndsWithItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conv, up, ada := mute(t, ask.Page, inputRequired(`"s"`, form1("q")))
		conv.Driver.Flows.ServerRequest, conv.Driver.Flows.Call = 5*time.Minute, time.Hour
		request(t, conv, "1", mcp.MethodToolsCall, book)
		pass(61 * time.Minute)
		if len(up.calls()) != 1 || len(conv.table.calls)+conv.waiting().Len()+ada.desk.Len() != 0 {
			t.Errorf("%d requests, %d calls", len(up.calls()), len(conv.table.calls))
		}
	})
}

// A server may take its time to say how a task goes. What it says when nobody waits for that any
// more, be it the result or that it failed, is asked again by the same call, and the tool runs once.
func TestALookAtATaskOutlivesItsRequest(t *testing.T) {
	done := result(`{"status":"completed","taskId":"t1","result":{"content":[{"type":"text","text":"ok"}]}}`)
	var asked time.Time
	asks := func(ctx context.Context, call *upstream.Call, notify func(jsonrpc.Message)) (*upstream.Answer, error) {
		asked = time.Now()
		return result(`{"status":"input_required","taskId":"t1","pollIntervalMs":1000,"inputRequests":{`+form1("q")+`}}`)(ctx, call, notify)
	}
	after := func(d time.Duration, then step) step {
		return func(ctx context.Context, call *upstream.Call, notify func(jsonrpc.Message)) (*upstream.Answer, error) {
			select {
			case <-time.After(time.Until(asked.Add(d))):
				return then(ctx, call, notify)
			case <-ctx.Done():
				return hang(ctx, call, notify)
			}
		}
	}
	for name, look := range map[string]step{
		"it ends":                 after(30*time.Second, done),
		"it ends at that moment":  after(20*time.Second, done),
		"it fails":                after(30*time.Second, rpcError(&jsonrpc.Error{Code: jsonrpc.CodeInternal})),
		"it is never told":        hang,
		"credentials are refused": after(30*time.Second, failure(&upstream.Failure{Cause: upstream.Unauthorized})),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				conv, up, ada := mute(t, ask.Page, result(taskCreated), asks, look, done, done)
				conv.Server = &catalog.Server{Tasks: true, Version: string(mcp.V20260728)}
				first := request(t, conv, "1", mcp.MethodToolsCall, book)
				pass(5 * time.Minute)
				if strings.Contains(first.result(), `"ok"`) {
					return // it was in time
				}
				second := request(t, conv, "2", mcp.MethodToolsCall, book)
				if got := second.result(); !strings.Contains(got, `"ok"`) {
					t.Error(got, second.response.Error)
				}
				if got := methods(up.calls()); strings.ReplaceAll(got, " tasks/get", "") != "tools/call" {
					t.Errorf("sent %s", got)
				}
				if conv.waiting().Len()+len(conv.table.calls)+ada.desk.Len() != 0 {
					t.Error("something is left")
				}
			})
		})
	}
}

// TestAQuestionOnAPageIsNoEnd: a call that a person answers elsewhere ends once.
func TestAQuestionOnAPageIsNoEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conv, _, ada := mute(t, ask.Page, inputRequired(`"s"`, form1("q")), result(booked))
		seen := &endings{}
		conv.Driver.Watch = seen
		c := request(t, conv, "1", mcp.MethodToolsCall, `{"name":"book","_meta":{"progressToken":7}}`)
		if n := len(seen.calls); n != 0 {
			t.Errorf("%d ends while the call waits", n)
		}
		ada.answer(linkOf(t, string(c.notified(mcp.NotificationProgress)[0].Params)), "f0=Ada&action=accept")
		if c.result(); len(seen.calls) != 1 || seen.calls[0].End != observe.Complete {
			t.Errorf("%+v", seen.calls)
		}
	})
}

// TestQuestionsThatOthersAnswerAreCounted: once, when what became of them is known, be there a request that
// waits or not.
func TestQuestionsThatOthersAnswerAreCounted(t *testing.T) {
	const action = "f0=Ada&action="
	for name, tc := range map[string]struct {
		policy ask.Policy
		then   func(conv *conversation, ada *person, link string)
		before observe.Outcome // before the same call comes
	}{
		"accepted": {ask.Page, func(_ *conversation, ada *person, link string) { ada.answer(link, action+"accept") }, observe.Accepted},
		"declined": {ask.Page, func(_ *conversation, ada *person, link string) { ada.answer(link, action+"decline") }, observe.Declined},
		"no one":   {ask.Page, func(*conversation, *person, string) { pass(5 * time.Minute) }, observe.Unanswered},
		"ended":    {ask.Page, func(conv *conversation, _ *person, _ string) { conv.Close(downstream.ErrStopping) }, observe.Withdrawn},
		"at once":  {ask.Decline, nil, observe.Declined},
	} {
		for _, waits := range []bool{true, false} {
			synctest.Test(t, func(t *testing.T) {
				conv, _, ada := mute(t, tc.policy, inputRequired(`"s"`, form1("q")), result(booked))
				seen := &endings{}
				conv.Driver.Watch, conv.Driver.Flows.ServerRequest, conv.Driver.Flows.Call = seen, 5*time.Minute, time.Hour
				if waits {
					conv.Driver.Wait = time.Hour
				}
				c := request(t, conv, "1", mcp.MethodToolsCall, `{"name":"book","_meta":{"progressToken":7}}`)
				if tc.then != nil {
					link := linkOf(t, string(c.notified(mcp.NotificationProgress)[0].Params))
					pass(time.Minute)
					tc.then(conv, ada, link)
					synctest.Wait()
				}
				if len(seen.questions) != 1 || seen.questions[0].Outcome != tc.before || !seen.questions[0].Elsewhere || seen.questions[0].Kind != observe.Form {
					t.Errorf("%s, waits: %t: %+v", name, waits, seen.questions)
				}
				if tc.then != nil && !waits && name != "ended" {
					request(t, conv, "2", mcp.MethodToolsCall, `{"name":"book"}`).result()
				}
				if len(seen.questions) != 1 {
					t.Errorf("%s, waits: %t: %d in the end", name, waits, len(seen.questions))
				}
			})
		}
	}
}

// TestACallWhoseQuestionIsOverSaysSo: who looks at a call that waits for the same one learns that nobody is
// asked any more, and when it ends.
func TestACallWhoseQuestionIsOverSaysSo(t *testing.T) {
	for _, answered := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			conv, _, ada := mute(t, ask.Page, inputRequired(`"s"`, form1("q")), result(booked))
			conv.Driver.Flows.ServerRequest, conv.Driver.Flows.Call = 5*time.Minute, time.Hour
			first := request(t, conv, "1", mcp.MethodToolsCall, book)
			pass(time.Minute)
			look := func() observe.Flow { return conv.Look().Flows[0] }
			if f := look(); f.Late || f.Questions[0].Answered || !f.Detached {
				t.Errorf("%+v", f)
			}
			if answered {
				ada.answer(linkOf(t, first.result()), "f0=Ada&action=accept")
			} else {
				pass(5 * time.Minute)
			}
			if f := look(); f.Late == answered || f.Questions[0].Answered != answered {
				t.Errorf("answered: %t: %+v", answered, f)
			}
			request(t, conv, "2", mcp.MethodToolsCall, book).result()
		})
	}
}
