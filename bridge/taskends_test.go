package bridge

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/rs/zerolog"

	"github.com/mcpbridge/bridge/bridge/ends"
	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
)

// TestEveryRequestAboutATaskHasOneEnd: the call that runs as a task has one when that is
// over, and so has each request that asks for it, waits for it, or is refused.
func TestEveryRequestAboutATaskHasOneEnd(t *testing.T) {
	const called, got, waited = "tools/call complete ", "tasks/get complete ", "tasks/result complete "
	ask := inputRequired(`"s"`, question1("q"))
	for name, tc := range map[string]struct {
		steps []step
		then  func(t *testing.T, conv *conversation, id string)
		want  []string
	}{
		"its outcome is fetched": {[]step{result(booked)}, func(t *testing.T, conv *conversation, id string) {
			request(t, conv, "2", mcp.MethodTasksGet, id).result()
			request(t, conv, "3", mcp.MethodTasksResult, id).result()
		}, []string{called, got, waited}},
		"its outcome is waited for": {[]step{ask, result(booked)}, func(t *testing.T, conv *conversation, id string) {
			c := request(t, conv, "3", mcp.MethodTasksResult, id)
			c.answer(0, `{"action":"accept","content":{"k":"v"}}`)
			synctest.Wait()
			c.result()
		}, []string{called, waited}},
		"it fails": {[]step{rpcError(&jsonrpc.Error{Code: -32050})}, func(t *testing.T, conv *conversation, id string) {
			request(t, conv, "3", mcp.MethodTasksResult, id).rpcError()
		}, []string{"tools/call failed server_error", "tasks/result failed task"}},
		"who waits gives up": {[]step{ask}, func(t *testing.T, conv *conversation, id string) {
			c := request(t, conv, "3", mcp.MethodTasksResult, id)
			cancel(conv, "", 3)
			if !c.abandoned {
				t.Error("it still waits")
			}
		}, []string{"tasks/result cancelled client"}},
		"it is cancelled": {[]step{ask}, func(t *testing.T, conv *conversation, id string) {
			request(t, conv, "3", mcp.MethodTasksResult, id)
			request(t, conv, "4", mcp.MethodTasksCancel, id)
		}, []string{"tools/call cancelled client", "tasks/result failed task", "tasks/cancel complete "}},
		"it is unknown": {[]step{result(booked)}, func(t *testing.T, conv *conversation, _ string) {
			request(t, conv, "3", mcp.MethodTasksResult, `{"taskId":"x"}`).rpcError()
		}, []string{called, "tasks/result failed refused"}},
		"there are too many": {slices.Repeat([]step{hang}, 64), func(t *testing.T, conv *conversation, _ string) {
			for range 63 {
				startTask(t, conv)
			}
			request(t, conv, "9", mcp.MethodToolsCall, asTask).rpcError()
		}, []string{"tools/call failed refused"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log bytes.Buffer
				seen := &endings{}
				conv, _ := sessionWith(t, Options{Log: zerolog.New(&log).Level(zerolog.DebugLevel), Watch: seen}, tc.steps...)
				conv.Rules.HostTasks = true
				conv.push = noPush{}
				tc.then(t, conv, startTask(t, conv))
				synctest.Wait()
				var got []string
				for _, c := range seen.calls {
					got = append(got, c.Method+" "+c.End.String()+" "+c.Cause)
				}
				if !slices.Equal(slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(tc.want))) || strings.Count(log.String(), `"`+ends.Line+`"`) != len(tc.want) {
					t.Errorf("%q, want %q\n%s", got, tc.want, log.String())
				}
			})
		})
	}
}

// TestACallThatIsOverBeforeItBeganHasOneEnd: its cancellation has overtaken it.
func TestACallThatIsOverBeforeItBeganHasOneEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		seen := &endings{}
		conv, _ := sessionWith(t, Options{Log: zerolog.New(&log).Level(zerolog.DebugLevel), Watch: seen})
		cancel(conv, "", 1)
		request(t, conv, "1", mcp.MethodToolsCall, book)
		if len(seen.calls) != 1 || seen.calls[0].End.String() != "cancelled" || seen.calls[0].Rounds != 0 || strings.Count(log.String(), ends.Line) != 1 {
			t.Errorf("%+v\n%s", seen.calls, log.String())
		}
		conv.Close(downstream.ErrStopping)
	})
}
