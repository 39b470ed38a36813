package tap

import (
	"cmp"
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
	of, number := c.origin(call)
	seen := c.begin(call, of, number)
	traced, call := of.trace(call, number)
	if seen != nil && notify != nil {
		notify = seen.hearing(notify)
	}
	answer, err := c.Caller.Do(ctx, call, notify)
	done := observe.Request{Method: call.Method, Version: mcp.V20260728, Took: time.Since(began), Params: call.Params}
	switch {
	case err != nil:
		done.Result, done.Cause = observe.Error, causeOf(err)
	case answer.Error != nil:
		done.Result, done.Code, done.HTTP = observe.Error, answer.Error.Code, answer.HTTP
	default:
		done.Result, done.HTTP, done.Answer = resultOf(answer.ResultType()), answer.HTTP, answer.Result
	}
	if seen == nil || seen.of == nil {
		seen = cmp.Or(c.late(call), seen)
	}
	if seen != nil {
		seen.answered(&done, answer)
	}
	if traced != nil {
		traced.End(&done)
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

// round is a request to the server that is seen.
type round struct {
	tap    *Tap
	of     *reply // nil: no call of a client's makes it
	number int
	id     jsonrpc.ID
}

// begin notes a request; nil: nobody looks.
func (c *caller) begin(call *upstream.Call, of *reply, number int) *round {
	if !c.tap.open.Load() {
		return nil
	}
	r := &round{tap: c.tap, of: of, number: number, id: c.tap.requestID()}
	msg := jsonrpc.Message{ID: r.id, Method: call.Method, Params: call.Params}
	r.note(observe.Event{Out: true, Kind: "request", Method: call.Method, Bytes: len(call.Params), Body: c.tap.body(&msg)})
	return r
}

func (r *round) note(e observe.Event) {
	e.Hop, e.Round = observe.Upstream, r.number
	if r.of == nil {
		r.tap.note(e)
		return
	}
	r.of.note(e)
}

// hearing notes the notifications of a round on their way.
func (r *round) hearing(notify func(jsonrpc.Message)) func(jsonrpc.Message) {
	return func(msg jsonrpc.Message) {
		r.note(observe.Event{Kind: "notification", Method: msg.Method, Bytes: len(msg.Params), Body: r.tap.body(&msg)})
		notify(msg)
	}
}

// answered notes the outcome of a round.
func (r *round) answered(done *observe.Request, answer *upstream.Answer) {
	e := observe.Event{Kind: "response", Method: done.Method, Status: done.Result.String(), Took: done.Took}
	switch {
	case done.Cause != "":
		e.Kind, e.Status = "error", done.Cause
	case done.Code != 0:
		e.Kind, e.Status = "error", strconv.Itoa(done.Code)
		e.Body = r.tap.body(&jsonrpc.Message{ID: r.id, Error: answer.Error})
	default:
		e.Bytes = len(answer.Result)
		e.Body = r.tap.body(&jsonrpc.Message{ID: r.id, Result: answer.Result})
	}
	r.note(e)
}
