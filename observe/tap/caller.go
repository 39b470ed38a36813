package tap

import (
	"context"
	"errors"
	"time"

	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/observe"
	"github.com/mcpbridge/bridge/upstream"
)

// caller reports every request to the server.
type caller struct {
	upstream.Caller
	watch observe.Watcher
}

var _ upstream.Wrapper = (*caller)(nil)

// Caller returns inner with what it does reported to watch.
func Caller(inner upstream.Caller, watch observe.Watcher) upstream.Caller {
	return &caller{inner, watch}
}

// Unwrap implements upstream.Wrapper.
func (c *caller) Unwrap() upstream.Caller { return c.Caller }

// Do implements upstream.Caller.
func (c *caller) Do(ctx context.Context, call *upstream.Call, notify func(jsonrpc.Message)) (*upstream.Answer, error) {
	began := time.Now()
	answer, err := c.Caller.Do(ctx, call, notify)
	done := observe.Request{Method: call.Method, Version: mcp.V20260728, Took: time.Since(began)}
	switch {
	case err != nil:
		done.Result, done.Cause = observe.Error, causeOf(err)
	case answer.Error != nil:
		done.Result, done.Code = observe.Error, answer.Error.Code
	default:
		done.Result = resultOf(answer.ResultType())
	}
	c.watch.RequestEnded(done)
	return answer, err
}

func causeOf(err error) string {
	var failure *upstream.Failure
	if errors.As(err, &failure) {
		return failure.Cause.String()
	}
	return "unknown"
}

// resultOf reads the raw member resultType.
func resultOf(raw string) observe.Result {
	switch raw {
	case `"` + mcp.ResultInputRequired + `"`:
		return observe.InputRequired
	case `"` + mcp.ResultTask + `"`:
		return observe.Task
	}
	return observe.Final
}
