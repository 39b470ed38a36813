package bridge

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/mrtr"
	"github.com/mcpbridge/bridge/sessions"
	"github.com/mcpbridge/bridge/upstream"
)

// elsewhere opens a conversation again on another bridge, as another process would,
// and goes on with its calls.
func elsewhere(t *testing.T, from *conversation, steps ...step) (*conversation, *script, []*client) {
	t.Helper()
	conv, up := session(t, Limits{}, steps...)
	record, err := readRecord(from.Record())
	if err != nil {
		t.Fatal(err)
	}
	conv.fill(record)
	if record.Announced {
		hearing{conv}.announce(downstream.Caller{})
	}
	var clients []*client
	for _, flow := range from.Flows() {
		c := &client{t: t, conv: conv}
		if err := conv.Resume(downstream.Caller{}, flow, c); err != nil {
			t.Fatal(err)
		}
		clients = append(clients, c)
	}
	synctest.Wait()
	return conv, up, clients
}

func TestQuestionIsAnsweredInAnotherProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conv, _ := session(t, Limits{}, inputRequired(`"s"`, question1("q")))
		conv.setLevelLocked("error")
		before := request(t, conv, "7", mcp.MethodToolsCall, book)
		pass(time.Minute)
		there, up, clients := elsewhere(t, conv, result(booked))
		there.Answer(downstream.Caller{}, jsonrpc.Message{ID: before.asked()[0].ID, Result: []byte(`{"action":"accept","content":{"day":"Monday"}}`)})
		synctest.Wait()
		if got := clients[0].result(); !strings.Contains(got, `"ok"`) || clients[0].response.ID != "7" {
			t.Fatalf("got %s for %s", got, clients[0].response.ID)
		}
		if got := member(up.calls()[0], "requestState") + member(up.calls()[0], "inputResponses"); got != `"s"{"q":{"action":"accept","content":{"day":"Monday"}}}` {
			t.Fatalf("the server got %s", got)
		}
		if there.breaker.served == 0 {
			t.Error("the client's answer was not noted")
		}
		if there.breaker.served = 0; string(there.Record()) != string(conv.Record()) {
			t.Errorf("the session is another: %s", there.Record())
		}
	})
}

// TestClocksOfReplicasMayDiffer: by a minute, in either direction. A question stays open in the replica that
// goes on with its call, and the call ends at its deadline as that replica's clock has it.
func TestClocksOfReplicasMayDiffer(t *testing.T) {
	for name, ahead := range map[string]time.Duration{"the other's is ahead": time.Minute, "the other's is behind": -time.Minute} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				conv, _ := session(t, Limits{}, inputRequired(`"s"`, question1("q")))
				before := request(t, conv, "7", mcp.MethodToolsCall, book)
				flow, err := mrtr.Decode(conv.Flows()[0])
				if err != nil {
					t.Fatal(err)
				}
				for _, at := range []*time.Time{&flow.Clock.Began, &flow.Clock.Deadline, &flow.Clock.Due, &flow.Clock.AnswerBy, &flow.Clock.Beat, &flow.Clock.Look} {
					if !at.IsZero() {
						*at = at.Add(-ahead) // as a clock that is ahead sees it
					}
				}
				left := time.Until(flow.Clock.Deadline)
				for _, answered := range []bool{true, false} {
					record, err := flow.Encode()
					if err != nil {
						t.Fatal(err)
					}
					there, _ := session(t, Limits{}, result(booked))
					c := &client{t: t, conv: there}
					if err := there.Resume(downstream.Caller{}, record, c); err != nil {
						t.Fatal(err)
					}
					synctest.Wait()
					if c.over() {
						t.Fatal("the call ended at once")
					}
					if answered {
						there.Answer(downstream.Caller{}, jsonrpc.Message{ID: before.asked()[0].ID, Result: []byte(accepted)})
						synctest.Wait()
						c.result()
						continue
					}
					pass(left)
					if synctest.Wait(); !c.over() {
						t.Error("the call outlives its deadline")
					}
				}
			})
		})
	}
}

// Time goes on where it was.
func TestDeadlinesHoldInAnotherProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conv, _ := session(t, Limits{}, inputRequired(`"s"`, question1("q")))
		request(t, conv, "7", mcp.MethodToolsCall, book)
		pass(mrtr.DefaultServerRequest - time.Second)
		_, up, clients := elsewhere(t, conv, result(booked))
		pass(2 * time.Second)
		clients[0].result()
		if got := member(up.calls()[0], "inputResponses"); got != `{"q":{"action":"cancel"}}` {
			t.Fatalf("the server got %s", got)
		}
	})
}

func TestInterruptedRoundIsRepeatedOnlyWithoutHarm_D15(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conv, _ := session(t, Limits{}, hang, hang)
		request(t, conv, "1", mcp.MethodToolsCall, book)
		request(t, conv, "2", mcp.MethodPromptsGet, `{"name":"p"}`)
		_, up, clients := elsewhere(t, conv, result(`{"messages":[]}`))
		if n := len(up.calls()); n != 1 || up.calls()[0].Method != mcp.MethodPromptsGet {
			t.Fatalf("%d requests were repeated", n)
		}
		for _, c := range clients {
			if c.response.ID == "1" && !strings.Contains(c.rpcError().Message, "unknown") {
				t.Errorf("the call got %s", c.rpcError().Message)
			}
		}
		conv.Close(nil)
	})
}

func TestRecordsOfNewerBridgesAreLeftAlone(t *testing.T) {
	b := New(Options{Upstream: &script{}, Log: zerolog.Nop()})
	defer b.Close()
	for record, want := range map[string]error{`{"v":2,"version":"2025-11-25"}`: mrtr.ErrNewer, `{"v":1}`: nil, `x`: nil} {
		if _, err := b.Restore(t.Context(), downstream.Caller{}, downstream.Caller{}, []byte(record), nil); err == nil || want != nil && !errors.Is(err, want) {
			t.Errorf("%s: %v", record, err)
		}
	}
}

func TestAnswerSurvivesAShortOutage_D15(t *testing.T) {
	down := failure(&upstream.Failure{Cause: upstream.Unreachable, Detail: "refused"})
	busy := failure(&upstream.Failure{Cause: upstream.Busy, Status: 503, Sent: true, RetryAfter: 3 * time.Second})
	tokenless := failure(&upstream.Failure{Cause: upstream.SignIn, RetryAfter: time.Second}) // the authorization server is away
	synctest.Test(t, func(t *testing.T) {
		conv, up := session(t, Limits{}, inputRequired(`"s"`, question1("q")), down, down, down, busy, tokenless, result(booked))
		c := request(t, conv, "1", mcp.MethodToolsCall, book)
		c.answer(0, `{"action":"accept","content":{}}`)
		if c.over() {
			t.Fatal("the call ended at once")
		}
		pass(20 * time.Second)
		c.result()
		for _, call := range up.calls()[1:] {
			if got := member(call, "inputResponses"); got != `{"q":{"action":"accept","content":{}}}` {
				t.Errorf("a retry carries %s", got)
			}
		}
	})
	synctest.Test(t, func(t *testing.T) { // an outage that lasts, and a call that asked nobody
		steps := []step{down, down, inputRequired(`"s"`, question1("q"))}
		for range 100 {
			steps = append(steps, down)
		}
		conv, up := session(t, Limits{}, steps...)
		request(t, conv, "1", mcp.MethodToolsCall, book).rpcError()
		c := request(t, conv, "2", mcp.MethodToolsCall, book)
		c.answer(0, `{"action":"accept","content":{}}`)
		pass(mrtr.DefaultRound + time.Second)
		if c.rpcError(); len(up.calls()) > 40 {
			t.Errorf("%d requests to a server that is down", len(up.calls()))
		}
	})
}

// What only a person can do about a sign-in is said at once; so is, in the first round, that there is no token just now.
func TestAFailedSignInIsSaidAtOnce_D15(t *testing.T) {
	for name, tc := range map[string]struct {
		asks bool
		step step
	}{
		"a retry that needs a person": {true, failure(&upstream.Failure{Cause: upstream.SignIn})},
		"a first round":               {false, failure(&upstream.Failure{Cause: upstream.SignIn, RetryAfter: time.Second})},
	} {
		synctest.Test(t, func(t *testing.T) {
			steps := []step{tc.step}
			if tc.asks {
				steps = append([]step{inputRequired(`"s"`, question1("q"))}, tc.step)
			}
			conv, _ := session(t, Limits{}, steps...)
			c := request(t, conv, "1", mcp.MethodToolsCall, book)
			if tc.asks {
				c.answer(0, `{"action":"accept","content":{}}`)
			}
			if !c.over() {
				t.Errorf("%s: the call waits", name)
			}
		})
	}
}

func TestEndedSessionsAnswerTheirCalls_DT19(t *testing.T) {
	for cause, answered := range map[error]bool{sessions.Expired: true, sessions.Evicted: true, sessions.Closed: true, sessions.Dismissed: true, sessions.Elsewhere: true,
		sessions.Removed: false, errors.New("client disconnected"): false} {
		synctest.Test(t, func(t *testing.T) {
			conv, _ := session(t, Limits{}, inputRequired(`"s"`, question1("q")))
			c := request(t, conv, "1", mcp.MethodToolsCall, book)
			conv.Close(cause)
			if (c.response != nil) != answered || c.abandoned == answered {
				t.Errorf("%v: answered with %+v", cause, c.response)
			}
		})
	}
}

// A call that comes while its session ends is answered, too.
func TestACallThatComesTooLateIsAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conv, up := session(t, Limits{})
		conv.Conclude()
		if e := request(t, conv, "1", mcp.MethodToolsCall, book).rpcError(); !strings.Contains(e.Message, "session has ended, for its server") || len(up.calls()) > 0 {
			t.Errorf("it ends with %v, and the server gets %v", e, up.calls())
		}
	})
}

// Of a session whose server is another one, what waits for the client ends, and what is at the
// server ends with what that says.
func TestConcludedCallsEndWithWhatTheServerSays(t *testing.T) {
	for name, tc := range map[string]struct {
		says step
		told string
	}{
		"a result": {result(booked), `"text":"ok"`}, "a question": {inputRequired(`"s"`, question1("q")), `another one"`},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				conv, up := session(t, Limits{}, func(ctx context.Context, call *upstream.Call, notify func(jsonrpc.Message)) (*upstream.Answer, error) {
					time.Sleep(time.Second)
					return tc.says(ctx, call, notify)
				})
				c := &client{t: t, conv: conv}
				go conv.Serve(t.Context(), downstream.Caller{}, downstream.NewRequest(jsonrpc.Message{ID: "1", Method: mcp.MethodToolsCall, Params: []byte(book)}), c)
				synctest.Wait()
				conv.Conclude()
				time.Sleep(2 * time.Second)
				synctest.Wait()
				if c.response == nil {
					t.Fatal("it is not answered")
				}
				if got := string(c.response.AppendTo(nil)); !strings.Contains(got, tc.told) || len(up.calls()) != 1 {
					t.Errorf("it ends with %s after %d requests", got, len(up.calls()))
				}
			})
		})
	}
}

// TestACallThatOnlyWaitsForItsClientIsNotInDoubt: nothing of it is at the server that has become another one. A task of that may run.
func TestACallThatOnlyWaitsForItsClientIsNotInDoubt(t *testing.T) {
	const doubt = "whether the call was executed is not known"
	for name, end := range map[string]func(downstream.Conversation){
		"its session lasts until its calls have ended": downstream.Conversation.Conclude,
		"its session ends": func(c downstream.Conversation) { c.Close(downstream.ErrOutdated) },
	} {
		for what, tc := range map[string]struct {
			says  step
			doubt bool
		}{
			"it waits for its client":    {inputRequired(`"s"`, question1("q")), false},
			"it is a task at the server": {result(taskCreated), true},
		} {
			t.Run(name+", "+what, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					conv, _ := withTaskServer(t, tc.says)
					c := request(t, conv, "1", mcp.MethodToolsCall, book)
					end(conv)
					synctest.Wait()
					if got := c.rpcError().Message; !strings.Contains(got, "has become another one") || strings.Contains(got, doubt) != tc.doubt {
						t.Errorf("it ends with %q", got)
					}
				})
			})
		}
	}
}

func TestFailedCallsAreLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		conv, _ := sessionWith(t, Options{Log: zerolog.New(&log)}, func(ctx context.Context, call *upstream.Call, notify func(jsonrpc.Message)) (*upstream.Answer, error) {
			time.Sleep(2 * time.Second)
			return nil, &upstream.Failure{Cause: upstream.Lost, Sent: true, Detail: "the connection was lost"}
		})
		c := &client{t: t, conv: conv}
		conv.Serve(t.Context(), downstream.Caller{Session: "ABCDEFGHIJKLMNOP"}, downstream.NewRequest(jsonrpc.Message{
			ID: "1", Method: mcp.MethodToolsCall, Params: []byte(book)}), c)
		for _, want := range []string{`"session_id":"ABCDEFGH"`, `"tool":"book"`, `"duration":2000`, `"error":"the connection was lost"`, `"round":0`} {
			if !strings.Contains(log.String(), want) {
				t.Errorf("the log lacks %s: %s", want, log.String())
			}
		}
	})
}

// TestTheLogNamesToolsAndPromptsAlone: what other methods call a name is a param, and not told.
func TestTheLogNamesToolsAndPromptsAlone(t *testing.T) {
	for method, params := range map[string]string{
		"patients/find": `{"name":"secret"}`, mcp.MethodPromptsList: `{"name":"secret"}`, mcp.MethodComplete: `{"name":"secret","ref":{"type":"ref/prompt","name":"x"}}`,
	} {
		var log bytes.Buffer
		conv, _ := sessionWith(t, Options{Log: zerolog.New(&log)}, failure(&upstream.Failure{Cause: upstream.BadResponse, Sent: true, Detail: "nonsense"}))
		conv.Serve(t.Context(), downstream.Caller{}, downstream.NewRequest(jsonrpc.Message{ID: "1", Method: method, Params: []byte(params)}), &client{t: t, conv: conv})
		if !strings.Contains(log.String(), method) || strings.Contains(log.String(), "secret") || strings.Contains(log.String(), `"tool"`) {
			t.Errorf("%s: %s", method, log.String())
		}
	}
}

// A server that fails every call must not fill the disk with lines.
func TestTheLogIsNotFilledByFailedCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		fails := failure(&upstream.Failure{Cause: upstream.BadResponse, Sent: true, Detail: "nonsense"})
		b := New(Options{Upstream: &script{steps: slices.Repeat([]step{fails}, 1000)}, Log: zerolog.New(&log)})
		defer b.Close()
		for range 1000 {
			conv := b.Stateless(downstream.Caller{}, mcp.V20250326)
			conv.Serve(t.Context(), downstream.Caller{}, downstream.NewRequest(jsonrpc.Message{ID: "1", Method: mcp.MethodToolsCall, Params: []byte(book)}), discard{})
		}
		if n := strings.Count(log.String(), `"error":`); n != 100 {
			t.Errorf("%d lines", n)
		}
	})
}
