package dialect

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/mrtr"
	"github.com/mcpbridge/bridge/rawjson"
	"github.com/mcpbridge/bridge/upstream"
)

// payloadTimeout bounds one tasks/result: a server may hold it back until the
// task ends, and the next tasks/get tells that as well.
const payloadTimeout = 10 * time.Second

func aboutTask(method string) bool {
	switch method {
	case mcp.MethodTasksGet, mcp.MethodTasksUpdate, mcp.MethodTasksCancel:
		return true
	}
	return false
}

// taskState completes the answer to a tasks/get. Drafts that had tasks in the
// core told there only that input is wanted or the task is over; what is wanted,
// and what came of it, they told in answer to tasks/result (I-14).
func (c *caller) taskState(ctx context.Context, get *upstream.Call, ans *upstream.Answer) (*upstream.Answer, error) {
	tasks := &c.dialect.tasks
	if ans.Error != nil {
		tasks.forget(get)
		return ans, nil
	}
	if err := tasks.seen(get, ans.Result); err != nil {
		return nil, err
	}
	lacks := missingPayload(ans.Result)
	if lacks == "" {
		return ans, nil
	}
	payload, err := c.payload(ctx, get)
	switch {
	case payload == nil && err == nil: // held back
		return ans, nil
	case err != nil:
		return nil, err
	case payload.Error != nil && lacks == "inputRequests":
		return payload, nil
	}
	ans.Replace(withPayload(ans.Result, payload))
	return ans, tasks.asks(get, payload.Result)
}

// missingPayload names the member that a task of its status must have and
// lacks; "" when nothing does.
func missingPayload(task []byte) string {
	status, _ := rawjson.Text(rawjson.Get(task, "status"))
	name := map[string]string{"input_required": "inputRequests", "completed": "result", "failed": "error"}[status]
	if name == "" || rawjson.Has(task, name) {
		return ""
	}
	return name
}

// payload sends tasks/result. Both values are nil when the server holds the
// answer back.
func (c *caller) payload(ctx context.Context, get *upstream.Call) (*upstream.Answer, error) {
	limited, cancel := context.WithTimeout(ctx, payloadTimeout)
	defer cancel()
	call := *get
	call.Method = mcp.MethodTasksResult
	_, call.Params = c.dialect.tasks.outgoing(&call, get.Params)
	ans, err := c.Caller.Do(limited, &call, nil)
	if failure := (*upstream.Failure)(nil); errors.As(err, &failure) && failure.Cause == upstream.Timeout && ctx.Err() == nil {
		return nil, nil
	}
	if err == nil && ans.Error == nil {
		ans.Replace(forms{On: true}.Result(call.Method, ans.Result))
	}
	return ans, err
}

// withPayload returns the task as the extension would tell it.
func withPayload(task []byte, payload *upstream.Answer) []byte {
	status, name, value := "completed", "result", payload.Result
	switch {
	case payload.Error != nil:
		status, name, value = "failed", "error", errorObject(payload.Error)
	case asksInput(payload.Result):
		status, name, value = "input_required", "inputRequests", rawjson.Get(payload.Result, "inputRequests")
		if value == nil {
			value = []byte("{}")
		}
	}
	return rawjson.Apply(nil, task,
		rawjson.Edit{Name: "status", Value: []byte(`"` + status + `"`)}, rawjson.Edit{Name: name, Value: value})
}

func asksInput(result []byte) bool {
	typ, _ := rawjson.Text(rawjson.Get(result, "resultType"))
	return typ == mcp.ResultInputRequired
}

func errorObject(e *jsonrpc.Error) []byte {
	out := strconv.AppendInt([]byte(`{"code":`), int64(e.Code), 10)
	out = rawjson.AppendQuote(append(out, `,"message":`...), e.Message)
	if e.Data != nil {
		out = append(append(out, `,"data":`...), e.Data...)
	}
	return append(out, '}')
}

// tooLarge is the failure of a task whose state, with its id, exceeds maxState.
func tooLarge(size int) error {
	return &mrtr.Violation{Rule: "I-10", Text: fmt.Sprintf("a task's requestState and id of %d bytes exceed the limit of %d", size, maxState)}
}
