package bridge

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/bridge/bridge/call"
	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/mrtr"
	"github.com/mcpbridge/bridge/observe"
	"github.com/mcpbridge/bridge/sessions"
	"github.com/mcpbridge/bridge/upstream"

	"github.com/rs/zerolog"
)

// A fault in the middle of one call ends that call, leaves nothing locked, and its
// neighbours and its session go on.
func TestPanicInsideAStepEndsItsCallAlone(t *testing.T) {
	tool := `{"resultType":"complete","tools":[{"name":"a","inputSchema":{"type":"object"}}]}`
	question := `{"resultType":"input_required","requestState":"s","inputRequests":{` + question1("q") + `}}`
	for name, faulty := range map[string]step{
		"while the result is translated": func(context.Context, *upstream.Call, func(jsonrpc.Message)) (*upstream.Answer, error) {
			return &upstream.Answer{Result: []byte(tool)}, nil
		},
		"while a question is translated": func(_ context.Context, call *upstream.Call, _ func(jsonrpc.Message)) (*upstream.Answer, error) {
			return &upstream.Answer{Result: []byte(question)}, nil
		},
		"while a notification is translated": during(func(call *upstream.Call, notify func(jsonrpc.Message)) {
			notify(jsonrpc.Message{Method: mcp.NotificationMessage, Params: []byte(`{"level":"error"}`)})
		}, result(tool)),
		"while the upstream is asked": func(context.Context, *upstream.Call, func(jsonrpc.Message)) (*upstream.Answer, error) {
			panic("a fault")
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				conv, _ := session(t, Limits{}, inputRequired(`"s"`, question1("q")), faulty, result(booked))
				conv.setLevelLocked("debug")
				neighbour := request(t, conv, "1", mcp.MethodToolsCall, book)
				sound := conv.Rules
				conv.Rules = nil // whoever translates now has a fault
				c := &client{t: t, conv: conv}
				call.New(&conv.Client, downstream.Caller{}, downstream.NewRequest(jsonrpc.Message{ID: "2", Method: mcp.MethodToolsCall, Params: []byte(book)}), c).Start()
				conv.Rules = sound
				if code := c.rpcError().Code; code != jsonrpc.CodeInternal {
					t.Errorf("the client got the error %d", code)
				}
				neighbour.answer(0, `{"action":"accept","content":{}}`)
				neighbour.result()
				conv.Close(sessions.Expired)
				if n := len(conv.table.calls); n > 0 {
					t.Errorf("%d calls are left", n)
				}
			})
		})
	}
}

func TestPanicWhileAnAnswerIsReadEndsItsCallAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conv, _ := session(t, Limits{}, inputRequired(`"s"`, question1("q")))
		c := request(t, conv, "1", mcp.MethodToolsCall, book)
		sound := conv.Rules
		conv.Rules = nil
		c.answer(0, `{"action":"accept","content":{}}`)
		conv.Rules = sound
		if code := c.rpcError().Code; code != jsonrpc.CodeInternal {
			t.Errorf("the client got the error %d", code)
		}
		conv.Close(sessions.Expired)
	})
}

// slowClient reads what it is sent at 1 KiB/s.
type slowClient struct{ client }

func (c *slowClient) read(msg downstream.Message) {
	time.Sleep(time.Duration(msg.Room()) * time.Second / 1024)
}

func (c *slowClient) Send(msg downstream.Message) {
	c.read(msg)
	c.client.Send(msg)
}

func (c *slowClient) Finish(msg downstream.Message) {
	c.read(msg)
	c.client.Finish(msg)
}

// atOnce fails when f takes any time.
func atOnce(t *testing.T, what string, f func()) {
	t.Helper()
	before := time.Now()
	f()
	if took := time.Since(before); took > 0 {
		t.Errorf("%s took %v", what, took)
	}
}

func TestSlowReaderHoldsNobodyUp(t *testing.T) {
	huge := `{"content":[{"type":"text","text":"` + strings.Repeat("x", 16<<20) + `"}]}`
	for name, first := range map[string]step{
		"an answer":  result(huge),
		"a question": inputRequired(`"s"`, `"q":{"method":"elicitation/create","params":{"message":"`+strings.Repeat("x", 16<<20)+`","requestedSchema":{"type":"object","properties":{}}}}`),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				conv, _ := session(t, Limits{FlowsPerSession: 1, Flow: mrtr.Limits{Call: 10 * time.Hour}}, first,
					inputRequired(`"s"`, question1("q")), inputRequired(`"s"`, question1("q")), inputRequired(`"s"`, question1("q")))
				slow := &slowClient{client{t: t, conv: conv}}
				go conv.Serve(t.Context(), downstream.Caller{}, downstream.NewRequest(jsonrpc.Message{ID: `"slow"`, Method: mcp.MethodToolsCall, Params: []byte(book)}), slow)
				synctest.Wait()
				var second, third *client
				atOnce(t, "a neighbour", func() { second = request(t, conv, "2", mcp.MethodToolsCall, book) })
				atOnce(t, "its eviction", func() { third = request(t, conv, "3", mcp.MethodToolsCall, book) })
				if !strings.Contains(second.result(), "limits.flows") {
					t.Errorf("the neighbour got %s", second.result())
				}
				atOnce(t, "a neighbour's cancellation", func() { cancel(conv, "", 3) })
				if !third.abandoned {
					t.Error("the neighbour was not cancelled")
				}
				atOnce(t, "the call's own cancellation", func() {
					conv.Notify(downstream.Caller{}, jsonrpc.Message{Method: mcp.NotificationCancelled, Params: []byte(`{"requestId":"slow"}`)})
				})
				last := request(t, conv, "4", mcp.MethodToolsCall, book)
				atOnce(t, "the end of the session", func() { conv.Close(sessions.Closed) })
				if last.rpcErrorOrResult(); slow.over() {
					t.Error("the slow reader is done already")
				}
				pass(5 * time.Hour)
				if !slow.over() || slow.ends != 1 {
					t.Errorf("the slow reader got %d ends", slow.ends)
				}
			})
		})
	}
}

// What time does to a call does not wait for its client either.
func TestDeadlineDoesNotWaitForASlowReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var began, ended time.Time
		conv, _ := session(t, Limits{Flow: mrtr.Limits{Call: time.Minute}}, func(ctx context.Context, _ *upstream.Call, notify func(jsonrpc.Message)) (*upstream.Answer, error) {
			began = time.Now()
			context.AfterFunc(ctx, func() { ended = time.Now() })
			notify(jsonrpc.Message{Method: mcp.NotificationMessage, Params: []byte(`{"level":"error","data":"x"}`)})
			<-ctx.Done()
			return nil, ctx.Err()
		})
		conv.setLevelLocked("debug")
		slow := &stuckClient{client: client{t: t, conv: conv}, proceed: make(chan struct{})}
		go conv.Serve(t.Context(), downstream.Caller{}, downstream.NewRequest(jsonrpc.Message{ID: "1", Method: mcp.MethodToolsCall, Params: []byte(book)}), slow)
		pass(time.Hour)
		if took := ended.Sub(began); took != time.Minute {
			t.Errorf("the request upstream was given up after %v", took)
		}
		close(slow.proceed)
		synctest.Wait()
		if !strings.Contains(slow.rpcErrorOrResult(), "timeouts.flow") {
			t.Errorf("the client got %s", slow.rpcErrorOrResult())
		}
	})
}

// stuckClient reads nothing until it may.
type stuckClient struct {
	client
	proceed chan struct{}
}

func (c *stuckClient) Queue(msg downstream.Message) {
	<-c.proceed
	c.client.Queue(msg)
}

// rpcErrorOrResult is how the one response ends, whatever it is.
func (c *client) rpcErrorOrResult() string {
	c.t.Helper()
	if got := c.result(); c.response.Error == nil {
		return got
	}
	return c.response.Error.Message
}

// TestAFaultInTheTranslationIsHowACallEnded: what is counted is what its client hears.
func TestAFaultInTheTranslationIsHowACallEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		seen := &endings{}
		conv, _ := sessionWith(t, Options{Watch: seen, Log: zerolog.Nop()}, result(booked))
		faulty := conv.Driver.Options
		faulty.Catalog = nil // which the translation asks
		sound := conv.Driver
		conv.Driver = call.NewDriver(faulty)
		c := &client{t: t, conv: conv}
		call.New(&conv.Client, downstream.Caller{}, downstream.NewRequest(jsonrpc.Message{ID: "1", Method: mcp.MethodToolsCall, Params: []byte(book)}), c).Start()
		conv.Driver = sound
		if code := c.rpcError().Code; code != jsonrpc.CodeInternal {
			t.Errorf("the client got the error %d", code)
		}
		if len(seen.calls) != 1 || seen.calls[0].End != observe.Failed || seen.calls[0].Cause != "internal" {
			t.Errorf("it ended as %+v", seen.calls)
		}
	})
}
