package bridge

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/bridge/ask"
	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/mrtr"
	"github.com/mcpbridge/bridge/upstream"
)

// slow answers with a result after a while, unless the call is cancelled.
func slow(after time.Duration, then step) step {
	return func(ctx context.Context, call *upstream.Call, notify func(jsonrpc.Message)) (*upstream.Answer, error) {
		select {
		case <-time.After(after):
			return then(ctx, call, notify)
		case <-ctx.Done():
			return hang(ctx, call, notify)
		}
	}
}

// resumed is a call whose question was answered after its first request, and that a second one has just gone
// on with; the server takes 4 s, and would ask once more.
func resumed(t *testing.T, last step) (*conversation, *script, *client) {
	conv, up, ada := mute(t, ask.Page, inputRequired(`"s"`, form1("q")), slow(4*time.Second, last), inputRequired(`"t"`, form1("q")))
	conv.Driver.Flows.Grace = time.Second
	first := request(t, conv, "1", mcp.MethodToolsCall, book)
	pass(20 * time.Second)
	ada.answer(linkOf(t, first.result()), "f0=Ada&action=accept")
	return conv, up, request(t, conv, "2", mcp.MethodToolsCall, book)
}

// A person who has answered is not asked again, and a tool that ran does not run again, because the
// connection of the call broke meanwhile.
func TestACallWhoseConnectionBrokeIsDoneOnce(t *testing.T) {
	down := rpcError(&jsonrpc.Error{Code: -32000, Message: "the airline is down"})
	for name, tt := range map[string]struct {
		last  step
		again time.Duration // after the connection broke
		want  string
	}{
		"it runs":              {result(booked), time.Second, `"ok"`},
		"it is done":           {result(booked), time.Minute, `"ok"`},
		"it has failed":        {down, time.Minute, "the airline is down"},
		"it is done long ago":  {result(booked), 29 * time.Minute, `"ok"`},
		"it runs and the last": {down, time.Second, "the airline is down"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				conv, up, second := resumed(t, tt.last)
				second.gone.Store(true)
				pass(tt.again)
				third := request(t, conv, "3", mcp.MethodToolsCall, book)
				if pass(10 * time.Second); !third.over() {
					t.Fatal("the same call waits still")
				}
				if got := string(third.response.AppendTo(nil)); !strings.Contains(got, tt.want) || third.response.ID != "3" || len(up.calls()) != 2 {
					t.Errorf("the same call got %s, after %d requests", got, len(up.calls()))
				}
				if n := conv.replies().Len() + len(conv.table.calls); n != 0 {
					t.Errorf("%d calls are left", n)
				}
				if request(t, conv, "4", mcp.MethodToolsCall, book); len(up.calls()) != 3 {
					t.Error("what was delivered is not done anew")
				}
			})
		})
	}
}

// It is no matter whether the first request waited still when the person answered.
func TestACallWhoseFirstConnectionBrokeIsDoneOnce(t *testing.T) {
	for name, told := range map[string]bool{"while the person was asked": true, "while the tool ran": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				conv, up, ada := mute(t, ask.Page, inputRequired(`"s"`, form1("q")), slow(time.Minute, result(booked)))
				first := request(t, conv, "1", mcp.MethodToolsCall, `{"name":"book","_meta":{"progressToken":7}}`)
				link := linkOf(t, string(first.notified(mcp.NotificationProgress)[0].Params))
				first.gone.Store(told)
				ada.answer(link, "f0=Ada&action=accept")
				first.gone.Store(true)
				second := request(t, conv, "2", mcp.MethodToolsCall, `{"name":"book"}`)
				pass(time.Minute)
				if got := second.result(); !strings.Contains(got, `"ok"`) || len(up.calls()) != 2 {
					t.Errorf("the same call got %s, after %d requests", got, len(up.calls()))
				}
			})
		})
	}
}

func TestTwoSameCallsAtOnceAreTwo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conv, up, second := resumed(t, result(booked))
		if request(t, conv, "3", mcp.MethodToolsCall, book); len(up.calls()) != 3 {
			t.Error("a call was taken from a request that waits for it")
		}
		pass(5 * time.Second)
		second.result()
	})
}

func TestACancelledCallIsNotGoneOnWith(t *testing.T) {
	for name, after := range map[string]time.Duration{"while it runs": time.Second, "when it is done": 10 * time.Second} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				conv, up, second := resumed(t, result(booked))
				second.gone.Store(true)
				pass(after)
				conv.cancelled(downstream.Caller{}, "2")
				synctest.Wait()
				if n := conv.replies().Len() + len(conv.table.calls); n != 0 {
					t.Errorf("%d calls are left", n)
				}
				if request(t, conv, "3", mcp.MethodToolsCall, book); len(up.calls()) != 3 {
					t.Error("a cancelled call goes on")
				}
			})
		})
	}
}

// What is kept is in the session's memory: it ends with that, and keeps it from being unloaded.
func TestAnOutcomeIsKeptForAsLongAsItsSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conv, _, second := resumed(t, result(booked))
		second.gone.Store(true)
		pass(10 * time.Second)
		if conv.replies().Len() != 1 || conv.Unload(func(downstream.Checkpointer, time.Time) bool { return true }) {
			t.Error("the outcome may be unloaded")
		}
		if conv.Close(nil); conv.replies().Len() != 0 {
			t.Error("the outcome outlives its session")
		}
	})
}

func TestACallWithoutASessionWhoseConnectionBrokeIsDoneOnce(t *testing.T) {
	for _, again := range []time.Duration{time.Second, time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			ask1 := inputRequired(`"s"`, form1("q"))
			c, up := newCrowd(t, Limits{Flow: mrtr.Limits{Grace: time.Second}}, ask.Page, ask1, slow(4*time.Second, result(booked)), ask1)
			first := c.call("ada", `{"name":"book"}`)
			pass(20 * time.Second)
			c.answer(linkOf(t, first.result()), "f0=Ada&action=accept")
			c.call("ada", `{"name":"book"}`).gone.Store(true)
			pass(again)
			if c.call("eve", `{"name":"book"}`); len(up.calls()) != 3 {
				t.Error("somebody else's call goes on")
			}
			third := c.call("ada", `{"name":"book"}`)
			pass(5 * time.Second)
			if got := third.result(); !strings.Contains(got, `"ok"`) || len(up.calls()) != 3 {
				t.Errorf("the same call got %s, after %d requests", got, len(up.calls()))
			}
			c.b.Close()
			if c.b.replies.Len() != 0 {
				t.Error("something is left")
			}
		})
	}
}
