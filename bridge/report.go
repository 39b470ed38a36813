package bridge

import (
	"errors"
	"slices"
	"time"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/fault"
	"github.com/mcpbridge/bridge/internal/logfield"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/mrtr"
	"github.com/mcpbridge/bridge/observe"
	"github.com/mcpbridge/bridge/rawjson"
	"github.com/mcpbridge/bridge/upstream"
)

// reporter tells what is to be seen of a call. It has no state of its own.
type reporter struct{ *call }

// report tells the log and who watches how the call ended, with its last word.
func (k reporter) report(e *effect) {
	if e.again || e.do != mrtr.Deliver && e.do != mrtr.Fail && e.do != mrtr.Stop {
		return
	}
	done := observe.Call{Method: k.flow.Method, Rounds: k.flow.Round + 1, Session: logfield.Short(k.flow.Home.Session)}
	if began := k.flow.Clock.Began; !began.IsZero() { // else nothing was sent
		done.Took = time.Since(began)
	}
	switch e.do {
	case mrtr.Deliver:
		done.ToolError = failedTool(k.flow.Method, e.result)
	case mrtr.Stop:
		done.End, done.Cause = observe.Cancelled, "client"
	case mrtr.Fail:
		done.End, done.Cause, done.Code = endOf(e.err)
		k.reportUnasked(e.err)
	}
	ending(k).log(&done, e)
	if watch := k.conv.b.opt.Watch; watch != nil {
		done.Version, done.Transport, done.HTTP = k.conv.rules.Version, k.conv.transport, k.http
		if done.Method == mcp.MethodToolsCall {
			done.Tool = k.name
		}
		if done.Unusual() {
			done.ID, done.Name = k.id(), nameOf(k.flow.Method, k.name)
		}
		watch.CallEnded(done)
	}
}

// reportLocal tells the log and who watches that a request was answered without the server.
func (c *conversation) reportLocal(caller *downstream.Caller, method string, began time.Time, err *jsonrpc.Error) {
	done := observe.Call{Method: method, Version: c.rules.Version, Transport: c.transport, HTTP: caller.HTTP, Took: time.Since(began), Session: logfield.Short(caller.Session)}
	if err != nil {
		done.End, done.Cause, done.Code = observe.Failed, "refused", err.Code
	}
	if event := c.b.levelOf(&done); event != nil {
		if done.Session != "" {
			event = event.Str(logfield.SessionID, done.Session)
		}
		words(event.Str(logfield.Method, fault.Clip(method)).Dur(logfield.Duration, done.Took), &done).Msg(endedLine)
	}
	if watch := c.b.opt.Watch; watch != nil {
		watch.CallEnded(done)
	}
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
		watch.QuestionEnded(observe.Question{Kind: questionKind(in), Version: k.conv.rules.Version, Outcome: outcome, Took: took, Transport: k.conv.transport, HTTP: k.http})
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

// nameOf returns the name of the tool or prompt that a request is about. URIs of
// resources are not told: they may hold secrets.
func nameOf(method string, raw []byte) string {
	if method != mcp.MethodToolsCall && method != mcp.MethodPromptsGet {
		return ""
	}
	name, _ := rawjson.Text(raw)
	return fault.Clip(name)
}

// repeatedLocked tells who watches that the flow sends a round again, by what it was before
// the step.
func (k reporter) repeatedLocked(resent bool, stateOnly int) {
	watch := k.conv.b.opt.Watch
	if watch == nil {
		return
	}
	if k.flow.Resent && !resent {
		watch.Repeated(observe.BrokenLine)
	}
	if k.flow.StateOnly > stateOnly {
		watch.Repeated(observe.StateOnly)
	}
}
