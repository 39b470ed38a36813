package tap

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/observe"
	"github.com/mcpbridge/bridge/upstream"
)

// caller sees every request to the server.
type caller struct {
	upstream.Caller
	tap   *Tap
	watch observe.Watcher
}

var _ upstream.Wrapper = (*caller)(nil)

// Caller returns inner with what it does reported to watch, and its messages kept while
// somebody looks.
func (t *Tap) Caller(inner upstream.Caller, watch observe.Watcher) upstream.Caller {
	return &caller{inner, t, watch}
}

// Unwrap implements upstream.Wrapper.
func (c *caller) Unwrap() upstream.Caller { return c.Caller }

// Do implements upstream.Caller.
func (c *caller) Do(ctx context.Context, call *upstream.Call, notify func(jsonrpc.Message)) (*upstream.Answer, error) {
	began := time.Now()
	of, round := c.begin(call)
	if of != nil && notify != nil {
		notify = of.hearing(notify, round)
	}
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
	if of != nil {
		of.answered(&done, answer, round)
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

// begin notes a request that a watched call makes, and returns that call; nil: nobody
// looks, or the request is nobody's.
func (c *caller) begin(call *upstream.Call) (of *reply, round int) {
	if !c.tap.open.Load() {
		return nil, 0
	}
	of, _ = call.Origin.(*reply)
	if of == nil {
		return nil, 0
	}
	round = int(of.rounds.Add(1))
	of.note(observe.Event{Hop: observe.Upstream, Out: true, Kind: "request", Method: call.Method, Round: round, Bytes: len(call.Params)})
	return of, round
}

// hearing notes the notifications of a round on their way.
func (r *reply) hearing(notify func(jsonrpc.Message), round int) func(jsonrpc.Message) {
	return func(msg jsonrpc.Message) {
		r.note(observe.Event{Hop: observe.Upstream, Kind: "notification", Method: msg.Method, Round: round, Bytes: len(msg.Params)})
		notify(msg)
	}
}

// answered notes the outcome of a round.
func (r *reply) answered(done *observe.Request, answer *upstream.Answer, round int) {
	e := observe.Event{Hop: observe.Upstream, Kind: "response", Method: done.Method, Round: round, Status: done.Result.String(), Took: done.Took}
	switch {
	case done.Cause != "":
		e.Kind, e.Status = "error", done.Cause
	case done.Code != 0:
		e.Kind, e.Status = "error", strconv.Itoa(done.Code)
	default:
		e.Bytes = len(answer.Result)
	}
	r.note(e)
}
