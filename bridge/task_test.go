package bridge

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/bridge/bridge/catalog"
	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/mrtr"
	"github.com/mcpbridge/bridge/sessions"
	"github.com/mcpbridge/bridge/upstream"
)

const taskCreated = `{"resultType":"task","taskId":"t1","status":"working","pollIntervalMs":1000,"statusMessage":"packing"}`

// withTaskServer makes a session whose server advertises the tasks extension.
func withTaskServer(t *testing.T, steps ...step) (*conversation, *script) {
	conv, up := session(t, Limits{}, steps...)
	conv.Server = &catalog.Server{Tasks: true, Version: string(mcp.V20260728)}
	return conv, up
}

func methods(calls []*upstream.Call) string {
	var names []string
	for _, call := range calls {
		names = append(names, call.Method)
	}
	return strings.Join(names, " ")
}

func TestTaskIsHidden_G1(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conv, up := withTaskServer(t,
			result(taskCreated),
			failure(&upstream.Failure{Cause: upstream.Unreachable}),
			result(`{"resultType":"complete","status":"completed","taskId":"t1","result":{"content":[{"type":"text","text":"done"}]}}`))
		c := request(t, conv, "1", mcp.MethodToolsCall, `{"name":"x","_meta":{"progressToken":"p"}}`)
		pass(5 * time.Second)
		if got := c.result(); got != `{"content":[{"type":"text","text":"done"}]}` {
			t.Fatalf("got %s", got)
		}
		if got := methods(up.calls()); got != "tools/call tasks/get tasks/get" {
			t.Fatalf("G-14: %s", got)
		}
		if got := member(up.calls()[1], "_meta", mcp.MetaClientCapabilities); !strings.Contains(got, mcp.ExtensionTasks) {
			t.Fatalf("G-3: %s", got)
		}
		if got := c.notified(mcp.NotificationProgress); len(got) != 1 || !strings.Contains(string(got[0].Params), "packing") {
			t.Fatalf("G-5: %v", got)
		}
	})
}

func TestTaskAsks_G6_G7(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asks := result(`{"status":"input_required","taskId":"t1","inputRequests":{` + question1("q") + `}}`)
		var shown atomic.Int32 // how often since the answer
		task := func(ctx context.Context, call *upstream.Call, notify func(jsonrpc.Message)) (*upstream.Answer, error) {
			switch {
			case call.Method == mcp.MethodTasksUpdate:
				shown.Store(1)
				return result(`{}`)(ctx, call, notify)
			case shown.Load() == 0, shown.CompareAndSwap(1, 2):
				return asks(ctx, call, notify)
			}
			return result(`{"status":"completed","result":{"content":[]}}`)(ctx, call, notify)
		}
		conv, up := withTaskServer(t, result(taskCreated), task, task, task, task, task, task, task)
		c := request(t, conv, "1", mcp.MethodToolsCall, book)
		pass(2500 * time.Millisecond)
		if n := len(c.asked()); n != 1 {
			t.Fatalf("G-7: asked %d times", n)
		}
		c.answer(0, `{"action":"accept","content":{"k":"e"}}`)
		pass(5 * time.Second)
		c.result()
		var update *upstream.Call
		for _, call := range up.calls() {
			if call.Method == mcp.MethodTasksUpdate {
				update = call
			}
		}
		if update == nil || member(update, "inputResponses") != `{"q":{"action":"accept","content":{"k":"e"}}}` {
			t.Fatalf("G-6: %s", methods(up.calls()))
		}
		if n := len(c.asked()); n != 1 {
			t.Fatalf("G-7: asked %d times", n)
		}
	})
}

func TestTaskIsCancelledWithTheCall_G12(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conv, up := withTaskServer(t, result(taskCreated), result(`{}`))
		c := request(t, conv, "1", mcp.MethodToolsCall, book)
		conv.Notify(downstream.Caller{}, jsonrpc.Message{Method: mcp.NotificationCancelled, Params: []byte(`{"requestId":1}`)})
		synctest.Wait()
		if got := methods(up.calls()); got != "tools/call tasks/cancel" || !c.abandoned {
			t.Fatalf("got %s", got)
		}
	})
}

// TestATaskOfAnotherProcessIsGivenUp_G13: by the call's record, and nothing of a call that has none.
func TestATaskOfAnotherProcessIsGivenUp_G13(t *testing.T) {
	for name, tc := range map[string]struct {
		first step
		want  string
	}{
		"a task":     {result(taskCreated), "tasks/cancel"},
		"a question": {inputRequired(`"s"`, question1("q")), ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				conv, _ := withTaskServer(t, tc.first)
				request(t, conv, "1", mcp.MethodToolsCall, book)
				there, up := withTaskServer(t, result(`{}`))
				for _, flow := range conv.Flows() {
					tell, err := there.GiveUp(downstream.Caller{Authorization: "Bearer its"}, flow)
					if err != nil {
						t.Error(err)
					}
					if tell != nil {
						tell()
					}
				}
				synctest.Wait()
				if got := methods(up.calls()); got != tc.want || got != "" && up.calls()[0].Authorization != "Bearer its" {
					t.Errorf("the server there got %q", got)
				}
				if _, err := there.GiveUp(downstream.Caller{}, []byte(`{`)); err == nil {
					t.Error("what is no record was read")
				}
			})
		})
	}
}

// asksOnce is a server whose task asks once, until then says that the answer was given, and
// takes it as update does.
func asksOnce(update step, then string) []step {
	var given atomic.Bool
	return append([]step{result(taskCreated)}, slices.Repeat([]step{func(ctx context.Context, call *upstream.Call, notify func(jsonrpc.Message)) (*upstream.Answer, error) {
		switch {
		case call.Method == mcp.MethodTasksUpdate:
			given.Store(true)
			return update(ctx, call, notify)
		case call.Method == mcp.MethodTasksGet && given.Load() && then != "":
			return result(then)(ctx, call, notify)
		case call.Method == mcp.MethodTasksGet:
			return result(`{"status":"input_required","taskId":"t1","inputRequests":{`+question1("q")+`}}`)(ctx, call, notify)
		}
		return result(`{}`)(ctx, call, notify)
	}}, 1000)...)
}

// A task that refuses an answer, and goes on to ask, ends the call with what it says: the person is
// not asked again. Where it goes on without it is well, as where it takes an answer a second time.
func TestATaskThatRefusesAnAnswerEndsTheCall_G6(t *testing.T) {
	refuses := rpcError(&jsonrpc.Error{Code: -32000, Message: "temporarily"})
	for name, tc := range map[string]struct {
		update     step
		then, want string // what the task says then; what the client gets
		after      time.Duration
	}{
		"it asks on":      {refuses, "", "temporarily", 5 * time.Second},
		"it has ended":    {refuses, `{"status":"completed","result":{"content":[]}}`, `{"content":[]}`, 5 * time.Second},
		"it has gone":     {failure(&upstream.Failure{Cause: upstream.Unreachable, Detail: "refused"}), "", "refused", mrtr.DefaultRound + time.Minute},
		"nobody may":      {failure(&upstream.Failure{Cause: upstream.Unauthorized}), "", "authoriz", 5 * time.Second},
		"it says nothing": {hang, "", "time", mrtr.DefaultRound + time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				conv, up := withTaskServer(t, asksOnce(tc.update, tc.then)...)
				c := request(t, conv, "1", mcp.MethodToolsCall, book)
				pass(2500 * time.Millisecond)
				c.answer(0, accepted)
				pass(tc.after)
				if !c.over() {
					t.Fatalf("nothing was told, after %d requests", len(up.calls()))
				}
				got := c.result()
				if e := c.response.Error; e != nil {
					got = e.Message
				}
				if !strings.Contains(got, tc.want) || len(c.asked()) != 1 {
					t.Errorf("got %s after %d questions", got, len(c.asked()))
				}
				if cancels := strings.Contains(methods(up.calls()), mcp.MethodTasksCancel); cancels != (tc.then == "") {
					t.Errorf("the task was cancelled: %v", cancels)
				}
			})
		})
	}
}

// An answer whose connection was lost goes up again, and a task that had taken it may refuse that, and show the question for a
// little longer: that is no reason to end the call. Where it goes on to ask, that refusal is why the call ends.
func TestAnAnswerThatWasTakenMayBeRefusedTheSecondTime_G6(t *testing.T) {
	for name, tc := range map[string]struct {
		shows int // looks after the answer, by which the task still asks
		want  string
	}{
		"it was taken":     {2, `{"content":[]}`},
		"it was not taken": {1000, "not outstanding"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var updates, looks atomic.Int32
				task := asksOnce(nil, "")[1]
				server := func(ctx context.Context, call *upstream.Call, notify func(jsonrpc.Message)) (*upstream.Answer, error) {
					switch {
					case call.Method == mcp.MethodTasksUpdate && updates.Add(1) == 1:
						return nil, &upstream.Failure{Cause: upstream.Lost, Sent: true, Detail: "lost"}
					case call.Method == mcp.MethodTasksUpdate:
						return rpcError(&jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "not outstanding"})(ctx, call, notify)
					case call.Method == mcp.MethodTasksGet && updates.Load() > 1 && int(looks.Add(1)) > tc.shows:
						return result(`{"status":"completed","result":{"content":[]}}`)(ctx, call, notify)
					}
					return task(ctx, call, notify)
				}
				conv, _ := withTaskServer(t, append([]step{result(taskCreated)}, slices.Repeat([]step{server}, 1000)...)...)
				c := request(t, conv, "1", mcp.MethodToolsCall, book)
				pass(2500 * time.Millisecond)
				c.answer(0, accepted)
				pass(mrtr.DefaultRound + time.Minute)
				if !c.over() {
					t.Fatalf("nothing was told after %d updates and %d looks", updates.Load(), looks.Load())
				}
				got := c.result()
				if e := c.response.Error; e != nil {
					got = e.Message
				}
				if !strings.Contains(got, tc.want) || updates.Load() != 2 || len(c.asked()) != 1 {
					t.Errorf("got %s after %d updates and %d questions", got, updates.Load(), len(c.asked()))
				}
			})
		})
	}
}

// An answer that does not reach the server's task is of no use once the call is over: the end
// of the bridge does not wait for it.
func TestTheEndDoesNotWaitForAnAnswerToATask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		updating := false
		task := func(ctx context.Context, call *upstream.Call, notify func(jsonrpc.Message)) (*upstream.Answer, error) {
			switch call.Method {
			case mcp.MethodTasksUpdate:
				updating = true
				<-ctx.Done() // the server takes it and says nothing
				return nil, &upstream.Failure{Cause: upstream.Canceled, Err: ctx.Err()}
			case mcp.MethodTasksCancel:
				return result(`{}`)(ctx, call, notify)
			}
			return result(`{"status":"input_required","taskId":"t1","inputRequests":{`+question1("q")+`}}`)(ctx, call, notify)
		}
		conv, _ := withTaskServer(t, result(taskCreated), task, task, task, task, task)
		c := request(t, conv, "1", mcp.MethodToolsCall, book)
		pass(2500 * time.Millisecond)
		c.answer(0, `{"action":"accept","content":{"k":"e"}}`)
		before := time.Now()
		conv.b.Close()
		if took := time.Since(before); !updating || took > 0 {
			t.Errorf("it took %v", took)
		}
	})
}

// An answer counts from its 202 on: whoever goes on with the call passes it on, if its task has not
// acknowledged it.
func TestAnAnswerThatATaskHasNotTakenIsKept_G6(t *testing.T) {
	for name, tc := range map[string]struct {
		update step
		sent   []string // by whoever goes on
	}{
		"it says nothing": {hang, []string{`{"q":` + accepted + `}`}},
		"it refuses":      {rpcError(&jsonrpc.Error{Code: -32000, Message: "temporarily"}), []string{`{"q":` + accepted + `}`}},
		"it was taken":    {result(`{}`), nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				here, _ := withTaskServer(t, asksOnce(tc.update, "")...)
				s := &strongbox{client: &client{t: t, conv: here}}
				s.begin()
				pass(2500 * time.Millisecond)
				s.answer(0, accepted)
				here.Renew() // it is kept again, whatever became of the answer
				there, next, up := goesOn(t, s)
				if got := updatesOf(up); !slices.Equal(got, tc.sent) {
					t.Errorf("sent %q", got)
				}
				if len(next.client.asked()) > 0 || next.over() == (tc.sent == nil) {
					t.Errorf("asked %d times, over %v", len(next.client.asked()), next.over())
				}
				here.Close(sessions.Removed)
				there.Close(sessions.Removed)
			})
		})
	}
}

// goesOn has another process go on with the newest record of a call. Its server's task asks until it gets an answer.
func goesOn(t *testing.T, s *strongbox) (*conversation, *strongbox, *script) {
	t.Helper()
	there, up := withTaskServer(t, asksOnce(result(`{}`), `{"status":"completed","result":{"content":[]}}`)[1:]...)
	next := &strongbox{client: &client{t: t, conv: there}, held: s.held}
	if err := there.Resume(downstream.Caller{}, s.record(), next); err != nil {
		t.Fatal(err)
	}
	pass(2500 * time.Millisecond)
	return there, next, up
}

// updatesOf returns the answers that the server was sent.
func updatesOf(up *script) (updates []string) {
	for _, call := range up.calls() {
		if call.Method == mcp.MethodTasksUpdate {
			updates = append(updates, member(call, "inputResponses"))
		}
	}
	return updates
}

// The acknowledgment of an answer is kept as soon as it is there, for a process that is killed keeps nothing more. It is
// nothing new to the client, whose call goes on where it cannot be kept.
func TestAnAnswerThatATaskHasTakenIsNotSentByAnotherProcess_G7(t *testing.T) {
	for name, away := range map[string]error{"it is kept": nil, "the store is away": errors.New("the store is away")} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				taken, done := make(chan struct{}), false
				steps := asksOnce(func(ctx context.Context, call *upstream.Call, notify func(jsonrpc.Message)) (*upstream.Answer, error) {
					<-taken
					done = true
					return result(`{}`)(ctx, call, notify)
				}, "")
				here, _ := withTaskServer(t, steps...)
				s := &strongbox{client: &client{t: t, conv: here}}
				s.begin()
				pass(2500 * time.Millisecond)
				s.answer(0, accepted)
				before := len(s.kept)
				s.breaks(away)
				close(taken)
				synctest.Wait()
				if !done || s.over() {
					t.Fatalf("taken %v, over %v", done, s.over())
				}
				if away == nil {
					if len(s.kept) != before+1 || !s.kept[before].Again || s.kept[before].Message != nil {
						t.Errorf("%d records were kept more", len(s.kept)-before)
					}
					if !s.kept[before].Over() {
						t.Error("a store that is away is waited for, and the next answer behind it")
					}
					there, next, up := goesOn(t, s)
					if got := updatesOf(up); len(got) > 0 || len(next.client.asked()) > 0 {
						t.Errorf("it is sent again: %q; asked %d times", got, len(next.client.asked()))
					}
					there.Close(sessions.Removed)
				}
				s.breaks(nil)
				here.Close(sessions.Removed)
			})
		})
	}
}

// Whoever goes on with a call may pass on an answer that its task has had: the refusal of that ends nothing.
func TestAnAnswerThatWasTakenBeforeMayBeRefusedAnotherProcess_G6(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		here, _ := withTaskServer(t, asksOnce(hang, "")...)
		s := &strongbox{client: &client{t: t, conv: here}}
		s.begin()
		pass(2500 * time.Millisecond)
		s.answer(0, accepted)
		asks, done := asksOnce(nil, "")[1], result(`{"status":"completed","result":{"content":[]}}`)
		there, _ := withTaskServer(t, rpcError(&jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "not outstanding"}), asks, asks, done)
		next := &strongbox{client: &client{t: t, conv: there}, held: s.held}
		if err := there.Resume(downstream.Caller{}, s.kept[len(s.kept)-1].Record, next); err != nil {
			t.Fatal(err)
		}
		pass(time.Minute)
		if got := next.client.result(); got != `{"content":[]}` {
			t.Errorf("got %s, %v", got, next.client.response.Error)
		}
		here.Close(sessions.Removed)
		there.Close(sessions.Removed)
	})
}

func TestTasksAreDeclaredForToolCallsOnly_A19(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conv, up := withTaskServer(t, result(`{"messages":[]}`), result(taskCreated))
		request(t, conv, "1", mcp.MethodPromptsGet, `{"name":"x"}`).result()
		if got := member(up.calls()[0], "_meta", mcp.MetaClientCapabilities); strings.Contains(got, "extensions") {
			t.Fatalf("got %s", got)
		}
		e := request(t, conv, "2", mcp.MethodPromptsGet, `{"name":"x"}`).rpcError()
		if e.Code != jsonrpc.CodeInternal || !strings.Contains(e.Message, "task") {
			t.Fatalf("G-17: %v", e)
		}
	})
}

func TestATaskThatIsAskedInVainEndsTheCall_DT20(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conv, up := withTaskServer(t, result(taskCreated), hang, result(`{}`))
		conv.Driver.Flows.Round = 10 * time.Second
		c := request(t, conv, "1", mcp.MethodToolsCall, book)
		pass(time.Minute)
		if got := c.rpcError(); !strings.Contains(got.Message, "timeouts.round") {
			t.Errorf("got %v", got)
		}
		if got := methods(up.calls()); got != "tools/call tasks/get tasks/cancel" {
			t.Errorf("sent %s", got)
		}
	})
}

// An answer whose client is told that it counts for nothing, since it could not be kept, reaches no task: the person
// is asked again.
func TestAnAnswerThatIsNotKeptReachesNoTask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		here, up := withTaskServer(t, asksOnce(result(`{}`), "")...)
		s := &strongbox{client: &client{t: t, conv: here}}
		s.begin()
		pass(2500 * time.Millisecond)
		s.err = downstream.ErrGone
		s.answer(0, accepted)
		pass(time.Second)
		for _, call := range up.calls() {
			if call.Method == mcp.MethodTasksUpdate {
				t.Errorf("it is sent: %s", member(call, "inputResponses"))
			}
		}
		here.Close(sessions.Removed)
	})
}
