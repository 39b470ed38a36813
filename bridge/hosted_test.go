package bridge

import (
	"context"
	"fmt"
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
	"github.com/mcpbridge/bridge/rawjson"
	"github.com/mcpbridge/bridge/upstream"
)

type noPush struct{}

func (noPush) Changed()                        {}
func (noPush) Reaches() bool                   { return true }
func (noPush) Accepted(downstream.Caller) bool { return false }
func (noPush) Push(string, downstream.Message) {}
func (noPush) End(error)                       {}
func (noPush) Detached(uint64, time.Time)      {}

const asTask = `{"name":"book","arguments":{},"task":{"ttl":60000}}`

// hosting returns a session for which the bridge hosts tasks.
func hostingSession(t *testing.T, steps ...step) (*conversation, *script) {
	conv, up := session(t, Limits{}, steps...)
	conv.Rules.HostTasks = true
	conv.push = noPush{}
	return conv, up
}

// startTask calls a tool as a task and returns the params that name it.
func startTask(t *testing.T, conv *conversation) string {
	t.Helper()
	created := request(t, conv, "1", mcp.MethodToolsCall, asTask).result()
	task := rawjson.Get([]byte(created), "task")
	if status := string(rawjson.Get(task, "status")); !strings.Contains(`"working""input_required""completed"`, status) {
		t.Fatalf("got %s", created)
	}
	return `{"taskId":` + string(rawjson.Get(task, "taskId")) + `}`
}

func taskStatusOf(t *testing.T, conv *conversation, id string) string {
	t.Helper()
	return string(rawjson.Get([]byte(request(t, conv, "2", mcp.MethodTasksGet, id).result()), "status"))
}

func TestHostedTaskRunsBehindItsHandle_G3(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conv, up := hostingSession(t, inputRequired(`"s"`, question1("q")), result(booked))
		id := startTask(t, conv)
		if got := member(up.calls()[0], "task"); got != "" {
			t.Fatalf("B-7: %s", got)
		}
		if got := taskStatusOf(t, conv, id); got != `"input_required"` {
			t.Fatalf("got %s", got)
		}
		c := request(t, conv, "3", mcp.MethodTasksResult, id)
		asked := c.asked()
		if len(asked) != 1 || !strings.Contains(string(asked[0].Params), mcp.MetaRelatedTask) {
			t.Fatalf("asked %v", asked)
		}
		c.answer(0, `{"action":"accept"}`)
		if got := c.result(); !strings.Contains(got, `"ok"`) || !strings.Contains(got, mcp.MetaRelatedTask) || c.response.ID != "3" {
			t.Fatalf("got %s under %s", got, c.response.ID)
		}
		if got := taskStatusOf(t, conv, id); got != `"completed"` {
			t.Fatalf("got %s", got)
		}
		if got := request(t, conv, "4", mcp.MethodTasksResult, id).result(); !strings.Contains(got, `"ok"`) {
			t.Fatalf("got %s", got)
		}
		if e := request(t, conv, "5", mcp.MethodTasksCancel, id).rpcError(); e.Code != jsonrpc.CodeInvalidParams {
			t.Fatalf("code %d", e.Code)
		}
		pass(2 * time.Minute)
		if e := request(t, conv, "6", mcp.MethodTasksGet, id).rpcError(); e.Code != jsonrpc.CodeInvalidParams {
			t.Fatalf("ttl: code %d", e.Code)
		}
	})
}

func TestHostedTaskFailsWithItsTool_G3(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conv, _ := hostingSession(t, result(`{"content":[],"isError":true}`), rpcError(&jsonrpc.Error{Code: -5, Message: "no"}))
		if got := taskStatusOf(t, conv, startTask(t, conv)); got != `"failed"` {
			t.Fatalf("got %s", got)
		}
		id := startTask(t, conv)
		if e := request(t, conv, "3", mcp.MethodTasksResult, id).rpcError(); e.Code != -5 {
			t.Fatalf("code %d", e.Code)
		}
		for _, params := range []string{`{}`, `{"cursor":null}`} { // B-8
			list := request(t, conv, "4", mcp.MethodTasksList, params).result()
			if n := strings.Count(list, `"taskId"`); n != 2 {
				t.Fatalf("%s: listed %d: %s", params, n, list)
			}
		}
	})
}

func TestHostedTaskIsCancelledForGood_G3(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conv, _ := hostingSession(t, hang)
		created := request(t, conv, "1", mcp.MethodToolsCall, asTask)
		id := `{"taskId":` + string(rawjson.Get(rawjson.Get([]byte(created.result()), "task"), "taskId")) + `}`
		waiting := request(t, conv, "2", mcp.MethodTasksResult, id)
		left := request(t, conv, "3", mcp.MethodTasksResult, id)
		if !conv.Knows(downstream.Caller{}, "3") || conv.Knows(downstream.Caller{}, "9") {
			t.Error("it does not know what a cancellation means")
		}
		leave := jsonrpc.Message{Method: mcp.NotificationCancelled, Params: []byte(`{"requestId":3}`)}
		stranger := downstream.Caller{Principal: "eve", Unproven: true}
		conv.Notify(stranger, leave)
		if left.abandoned || conv.Knows(stranger, "3") {
			t.Fatal("somebody else's cancellation ended a tasks/result")
		}
		conv.Notify(downstream.Caller{}, leave)
		if !left.abandoned {
			t.Fatal("a cancelled tasks/result still waits")
		}
		got := request(t, conv, "4", mcp.MethodTasksCancel, id).result()
		if !strings.Contains(got, `"cancelled"`) || waiting.rpcError().Code != jsonrpc.CodeInternal {
			t.Fatalf("got %s", got)
		}
	})
}

func TestTaskParamsAreIgnoredWhereNotHosted_G2(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conv, _ := session(t, Limits{}, result(booked))
		if got := request(t, conv, "1", mcp.MethodToolsCall, asTask).result(); !strings.Contains(got, `"ok"`) {
			t.Fatalf("got %s", got)
		}
	})
}

// What is no wish for a task makes none; null is what clients write for a member that they leave out.
func TestOnlyAWishForATaskMakesOne_G3(t *testing.T) {
	for wish, want := range map[string]string{
		`{}`: "a task", `{"ttl":60000}`: "a task", `{"ttl":0}`: "a task", `{"ttl":1.5}`: "a task", `{"ttl":1e18}`: "a task", `{"ttl":null,"more":1}`: "a task",
		`null`: "a result",
		`5`:    "-32602", `[]`: "-32602", `true`: "-32602", `"x"`: "-32602", `{"ttl":"x"}`: "-32602", `{"ttl":-1}`: "-32602", `{"ttl":{}}`: "-32602", `{"ttl":true}`: "-32602",
	} {
		synctest.Test(t, func(t *testing.T) {
			conv, up := hostingSession(t, result(booked))
			c := request(t, conv, "1", mcp.MethodToolsCall, `{"name":"book","arguments":{},"task":`+wish+`}`)
			got := "a result"
			if answer := c.result(); rawjson.Has([]byte(answer), "task") {
				got = "a task"
			} else if e := c.response.Error; e != nil && strings.Contains(string(e.Data), `"bridge"`) {
				got = strconv.Itoa(e.Code)
			}
			if got != want || (want == "-32602") != (len(up.calls()) == 0) {
				t.Errorf("%s: %s, want %s; %d calls went to the server", wish, got, want, len(up.calls()))
			}
			conv.Close(downstream.ErrCancelled)
		})
	}
}

func TestAQuestionOfATaskIsNeverDroppedForItsProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		noisy := func(ctx context.Context, call *upstream.Call, notify func(jsonrpc.Message)) (*upstream.Answer, error) {
			for i := range 256 + 10 {
				notify(jsonrpc.Message{Method: mcp.NotificationProgress,
					Params: fmt.Appendf(nil, `{"progressToken":%s,"progress":%d}`, member(call, "_meta", "progressToken"), i+1)})
			}
			return inputRequired(`"s"`, question1("q"))(ctx, call, notify)
		}
		conv, _ := hostingSession(t, noisy, result(booked))
		created := request(t, conv, "1", mcp.MethodToolsCall, `{"name":"book","arguments":{},"task":{},"_meta":{"progressToken":7}}`).result()
		id := `{"taskId":` + string(rawjson.Get(rawjson.Get([]byte(created), "task"), "taskId")) + `}`
		c := request(t, conv, "3", mcp.MethodTasksResult, id)
		c.answer(0, `{"action":"accept"}`)
		if n := len(c.notified(mcp.NotificationProgress)); n != 256 {
			t.Errorf("%d progress notifications", n)
		}
		c.result()
	})
}

// A tasks/result may be given up by its client, as those with a clock do, or lose its connection: who
// asks for the task next is shown what is open, under the same id.
func TestAQuestionOfATaskIsShownToWhoeverWaitsNext(t *testing.T) {
	for name, leave := range map[string]func(conv *conversation, c *client){
		"cancelled":     func(conv *conversation, _ *client) { cancel(conv, "", 3) },
		"gone":          func(_ *conversation, c *client) { c.gone.Store(true) },
		"may come back": func(*conversation, *client) {},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				conv, _ := hostingSession(t, inputRequired(`"s"`, question1("q")), result(booked))
				id := startTask(t, conv)
				first := request(t, conv, "3", mcp.MethodTasksResult, id)
				leave(conv, first)
				next := request(t, conv, "4", mcp.MethodTasksResult, id)
				if n := len(next.asked()); n != 1 || next.asked()[0].ID != first.asked()[0].ID {
					t.Fatalf("asked %v", next.asked())
				}
				if got := taskStatusOf(t, conv, id); got != `"input_required"` {
					t.Errorf("got %s", got)
				}
				next.answer(0, `{"action":"accept"}`)
				if got := next.result(); !strings.Contains(got, `"ok"`) || len(next.asked()) != 1 {
					t.Errorf("got %s", got)
				}
				conv.Close(nil)
			})
		})
	}
}

func TestATaskWhoseQuestionTimedOutWorksOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conv, _ := hostingSession(t, inputRequired(`"s"`, question1("q")), hang)
		id := startTask(t, conv)
		pass(conv.Driver.Flows.ServerRequest)
		if got := taskStatusOf(t, conv, id); got != `"working"` {
			t.Errorf("got %s", got)
		}
		if c := request(t, conv, "3", mcp.MethodTasksResult, id); len(c.sent) != 0 {
			t.Errorf("who comes later is told %v", c.sent)
		}
		conv.Close(nil)
	})
}

func TestRequestsThatWaitForATaskAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conv, _ := hostingSession(t, inputRequired(`"s"`, question1("q")), hang)
		id := startTask(t, conv)
		for i := range 3 * 16 { // each client leaves before the next one comes
			c := request(t, conv, strconv.Itoa(100+i), mcp.MethodTasksResult, id)
			if c.over() {
				t.Fatalf("%d was refused", i)
			}
			c.gone.Store(true)
		}
		for i := range 16 {
			request(t, conv, strconv.Itoa(200+i), mcp.MethodTasksResult, id)
		}
		if e := request(t, conv, "300", mcp.MethodTasksResult, id).rpcError(); !strings.Contains(e.Message, "too many") {
			t.Errorf("got %v", e)
		}
		conv.Close(nil)
	})
}

func TestTheHandleOfATaskDoesNotWaitForTheServer_G3(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conv, _ := hostingSession(t, hang)
		c := &client{t: t, conv: conv}
		returned := false
		go func() { // over HTTP the answer leaves when the handler returns
			conv.Serve(context.Background(), downstream.Caller{}, downstream.NewRequest(jsonrpc.Message{ID: "1", Method: mcp.MethodToolsCall, Params: []byte(asTask)}), c)
			returned = true
		}()
		synctest.Wait()
		if got := c.result(); !returned || !strings.Contains(got, `"working"`) {
			t.Errorf("returned: %v, %s", returned, got)
		}
		conv.Close(nil)
	})
}

func TestATaskWhoseResultWasFetchedMakesRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var steps []step
		for range 64 + 1 {
			steps = append(steps, result(booked))
		}
		conv, _ := hostingSession(t, steps...)
		var ids []string
		for range 64 {
			ids = append(ids, startTask(t, conv))
		}
		if e := request(t, conv, "1", mcp.MethodToolsCall, asTask).rpcError(); !strings.Contains(e.Message, "too many tasks") {
			t.Errorf("got %v", e)
		}
		request(t, conv, "3", mcp.MethodTasksResult, ids[5]).result()
		startTask(t, conv)
		if e := request(t, conv, "4", mcp.MethodTasksGet, ids[5]).rpcError(); e.Code != jsonrpc.CodeInvalidParams {
			t.Errorf("got %v", e)
		}
		request(t, conv, "4", mcp.MethodTasksGet, ids[0]).result()
	})
}

func TestATaskThatWasCancelledMakesRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var steps []step
		for range 64 + 1 {
			steps = append(steps, inputRequired(`"s"`, question1("q")))
		}
		conv, _ := hostingSession(t, steps...)
		for range 64 {
			request(t, conv, "2", mcp.MethodTasksCancel, startTask(t, conv)).result()
		}
		if got := taskStatusOf(t, conv, startTask(t, conv)); got != `"input_required"` {
			t.Errorf("one more is %s", got)
		}
		conv.Close(nil)
	})
}

// A task is under way until it is over, and counts as its request did, for its session, too.
func TestATaskOutlastsItsRequest_G3(t *testing.T) {
	asks := inputRequired(`"s"`, question1("q"))
	for name, tc := range map[string]struct {
		step  step
		ends  func(conv *conversation, id string)
		lasts int32 // before that
	}{
		"one that ends at once": {result(booked), func(*conversation, string) {}, 0},
		"one that asks": {asks, func(conv *conversation, id string) {
			request(t, conv, "3", mcp.MethodTasksResult, id).answer(0, `{"action":"accept"}`)
		}, 1},
		"one that is cancelled":  {asks, func(conv *conversation, id string) { request(t, conv, "4", mcp.MethodTasksCancel, id).result() }, 1},
		"the end of its session": {asks, func(conv *conversation, _ string) { conv.Close(nil) }, 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			conv, _ := hostingSession(t, tc.step, result(booked))
			created := request(t, conv, "1", mcp.MethodToolsCall, asTask)
			if n := created.lasting.Load(); n != tc.lasts {
				t.Errorf("%s: it counts %d times, want %d", name, n, tc.lasts)
			}
			tc.ends(conv, `{"taskId":`+string(rawjson.Get(rawjson.Get([]byte(created.result()), "task"), "taskId"))+`}`)
			synctest.Wait()
			if n := created.lasting.Load(); n != 0 {
				t.Errorf("%s: it counts %d times after its end", name, n)
			}
			conv.Close(nil)
		})
	}
}

// A task whose person is asked on the page says where, to whoever asks how it goes.
func TestATaskSaysWhereItsPersonIsAsked_G3(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conv, _, who := mute(t, ask.Page, inputRequired(`"s"`, form1("q")), hang)
		conv.Rules.HostTasks = true
		conv.push = noPush{}
		conv.Server = &catalog.Server{Logging: true, Version: string(mcp.V20260728)}
		id := startTask(t, conv)
		got := request(t, conv, "2", mcp.MethodTasksGet, id).result()
		link := linkOf(t, string(rawjson.Get([]byte(got), "statusMessage")))
		if taskStatusOf(t, conv, id) != `"input_required"` {
			t.Errorf("got %s", got)
		}
		if told := request(t, conv, "3", mcp.MethodTasksResult, id).notified(mcp.NotificationMessage); len(told) != 1 || !strings.Contains(string(told[0].Params), link) {
			t.Errorf("tasks/result says %v", told)
		}
		who.answer(link, "f0=Ada&action=accept")
		if got := request(t, conv, "2", mcp.MethodTasksGet, id).result(); !strings.Contains(got, `"working"`) || strings.Contains(got, "statusMessage") {
			t.Errorf("after the answer: %s", got)
		}
		conv.Close(nil)
	})
}
