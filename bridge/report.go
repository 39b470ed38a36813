package bridge

import (
	"errors"
	"slices"
	"time"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/mrtr"
	"github.com/mcpbridge/bridge/observe"
	"github.com/mcpbridge/bridge/rawjson"
	"github.com/mcpbridge/bridge/upstream"
)

// reporter tells what is to be seen of a call. It has no state of its own.
type reporter struct{ *call }

// report tells who watches how the call ended, with its last word.
func (k reporter) report(e *effect) {
	watch := k.conv.b.opt.Watch
	if watch == nil || e.do == mrtr.Tell || e.again {
		return
	}
	done := observe.Call{Method: k.flow.Method, Version: k.conv.rules.Version, Rounds: k.flow.Round + 1}
	if began := k.flow.Clock.Began; !began.IsZero() { // else nothing was sent
		done.Took = time.Since(began)
	}
	switch e.do {
	case mrtr.Deliver:
		done.ToolError = failedTool(k.flow.Method, e.result)
	case mrtr.Stop:
		done.End = observe.Cancelled
	case mrtr.Fail:
		done.End, done.Cause, done.Code = endOf(e.err)
		k.reportUnasked(e.err)
	}
	watch.CallEnded(done)
}

// reportLocal tells who watches that a request was answered without the server.
func (c *conversation) reportLocal(method string, began time.Time, err *jsonrpc.Error) {
	watch := c.b.opt.Watch
	if watch == nil {
		return
	}
	done := observe.Call{Method: method, Version: c.rules.Version, Took: time.Since(began)}
	if err != nil {
		done.End, done.Cause, done.Code = observe.Failed, "refused", err.Code
	}
	watch.CallEnded(done)
}

// endOf tells how a call ended that failed with err, and why, in words that have no
// part of any peer's text.
func endOf(err error) (end observe.End, cause string, code int) {
	var (
		failure   *upstream.Failure
		theirs    *jsonrpc.Error
		abort     *mrtr.Abort
		limit     *mrtr.LimitReached
		violation *mrtr.Violation
	)
	switch {
	case errors.Is(err, errOperator):
		return observe.Cancelled, "operator", jsonrpc.CodeInternal
	case errors.Is(err, downstream.ErrStopping):
		return observe.Shutdown, "shutdown", jsonrpc.CodeInternal
	case errors.As(err, &failure):
		return observe.Failed, failure.Cause.String(), jsonrpc.CodeInternal
	case errors.As(err, &theirs):
		return observe.Failed, "server_error", theirs.Code
	case errors.As(err, &abort) && abort.Undeclared != "":
		return observe.Failed, "not_declared", jsonrpc.CodeInternal
	case errors.As(err, &abort):
		return observe.Failed, "no_answer", jsonrpc.CodeInternal
	case errors.As(err, &violation):
		return observe.Failed, "violation", jsonrpc.CodeInternal
	case errors.As(err, &limit) && limit.Limit == "limits.flows":
		return observe.Evicted, limit.Limit, jsonrpc.CodeInternal
	case errors.As(err, &limit) && isTimeout(limit.Limit):
		return observe.Expired, limit.Limit, jsonrpc.CodeInternal
	case errors.As(err, &limit):
		return observe.Failed, "limit", jsonrpc.CodeInternal
	}
	return observe.Failed, "internal", jsonrpc.CodeInternal
}

func isTimeout(limit string) bool {
	switch limit {
	case "timeouts.flow", "timeouts.round", "timeouts.grace":
		return true
	}
	return false
}

func failedTool(method string, result []byte) bool {
	return method == mcp.MethodToolsCall && string(rawjson.Get(result, "isError")) == "true"
}

// reportQuestion tells who watches what became of a question, after so long.
func (k reporter) reportQuestion(in *mrtr.Input, outcome observe.Outcome, took time.Duration) {
	if watch := k.conv.b.opt.Watch; watch != nil {
		watch.QuestionEnded(observe.Question{Kind: questionKind(in), Version: k.conv.rules.Version, Outcome: outcome, Took: took})
	}
}

// askedForLocked returns how long the questions have been open.
func (k reporter) askedForLocked() time.Duration {
	by := k.flow.Clock.AnswerBy
	if by.IsZero() {
		return 0
	}
	return time.Since(by.Add(-k.conv.b.flows.ServerRequest))
}

// reportWithdrawnLocked tells who watches that a question was taken back.
func (k reporter) reportWithdrawnLocked(in *mrtr.Input, act *mrtr.Action) {
	if slices.Contains(act.Ignored, in) {
		k.reportQuestion(in, observe.Unanswered, k.conv.b.flows.ServerRequest)
		return
	}
	k.reportQuestion(in, observe.Withdrawn, k.askedForLocked())
}

// reportUnasked tells who watches of a question that the client could not be asked.
func (k reporter) reportUnasked(err error) {
	abort := (*mrtr.Abort)(nil)
	if !errors.As(err, &abort) {
		return
	}
	in := &mrtr.Input{InputRequest: mrtr.InputRequest{Method: abort.Method}}
	switch {
	case abort.Undeclared != "":
		k.reportQuestion(in, observe.NotDeclared, 0)
	case abort.Unasked:
		k.reportQuestion(in, observe.NotExpressible, 0)
	}
}

// reportAnswerLocked tells who watches what a client answered.
func (k reporter) reportAnswerLocked(in *mrtr.Input, msg *jsonrpc.Message) {
	switch {
	case k.conv.b.opt.Watch == nil:
	case msg.Error != nil:
		k.reportQuestion(in, observe.ClientError, k.askedForLocked())
	default:
		k.reportQuestion(in, outcomeOf(in, msg.Result), k.askedForLocked())
	}
}

// outcomeOf reads what a usable answer to a question says.
func outcomeOf(in *mrtr.Input, response []byte) observe.Outcome {
	if kindOf(in.Method) != elicitation {
		return observe.Accepted
	}
	switch action, _ := rawjson.Text(rawjson.Get(response, "action")); action {
	case "decline":
		return observe.Declined
	case "cancel":
		return observe.Dismissed
	}
	return observe.Accepted
}
