package bridge

import (
	"errors"
	"fmt"
	"strings"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/budget"
	"github.com/mcpbridge/bridge/internal/fault"
	"github.com/mcpbridge/bridge/internal/logfield"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/mrtr"
	"github.com/mcpbridge/bridge/translate"
	"github.com/mcpbridge/bridge/upstream"
)

// This file is the one place where causes become what the client reads
// (sections F.2 and F.4, C-34).

// ending words how a call ends. It has no state of its own.
type ending struct{ *call }

// fail answers the client with the error of e.
func (k ending) fail(e *effect) {
	err := e.err
	if failure := (*upstream.Failure)(nil); errors.As(err, &failure) && failure.Cause == upstream.Unauthorized {
		if k.out.Refuse(refusalOf(failure)) { // H-3; too late: H-4
			return
		}
	}
	result, rpcErr := k.explain(err)
	finish(k.out, k.flow.ID, result, rpcErr)
}

// explain returns exactly one of a tool's error result and a JSON-RPC error.
func (k ending) explain(err error) ([]byte, *jsonrpc.Error) {
	var (
		theirs    *jsonrpc.Error
		abort     *mrtr.Abort
		limit     *mrtr.LimitReached
		violation *mrtr.Violation
		failure   *upstream.Failure
	)
	switch {
	case errors.As(err, &failure) && failure.Cause == upstream.SignIn: // the model can tell its person
		return k.signIn(failure)
	case errors.As(err, &failure): // first: it may wrap an error that is the bridge's own
		return nil, describe(failure)
	case errors.As(err, &theirs):
		rules := *k.conv.rules
		rules.Capabilities = k.flow.Capabilities
		return rules.Error(k.flow.Method, k.flow.Params, theirs)
	case errors.As(err, &abort):
		reason := abort.Reason
		if abort.Undeclared != "" {
			reason = k.undeclared(abort.Undeclared)
		}
		return k.giveUp(reason, fault.Text("inputRequest", abort.Key), fault.Text("method", abort.Method), fault.Reason(reason))
	case errors.As(err, &limit) && limit.Limit != "timeouts.round":
		return k.giveUp(limit.Error(), fault.Limit(limit.Limit))
	case budget.Short(err):
		return k.giveUp(err.Error(), fault.Limit("limits.memory"))
	case errors.As(err, &violation):
		return nil, fault.Internal(violation.Error(), fault.Text("rule", violation.Rule))
	}
	return nil, fault.Internal(err.Error())
}

// giveUp ends a call that could not get its input: for tools as a result that
// the model can react to, for the others as an error (C-34).
func (k ending) giveUp(reason string, details ...fault.Detail) ([]byte, *jsonrpc.Error) {
	if k.flow.Method == mcp.MethodToolsCall {
		return translate.ToolError(reason), nil
	}
	return nil, fault.Internal(reason, details...)
}

// signIn tells what the person has to do. The text is not cut: it holds an address,
// half of which leads nowhere.
func (k ending) signIn(f *upstream.Failure) ([]byte, *jsonrpc.Error) {
	result, refusal := k.giveUp(f.Error(), fault.Reason(f.Cause.String()))
	if refusal != nil {
		refusal.Message = f.Error()
	}
	return result, refusal
}

func refusalOf(f *upstream.Failure) *downstream.Refusal {
	return &downstream.Refusal{Status: f.Status, Challenge: f.Challenge}
}

// refuse converts the failure of a discover for the initialize answer.
func (b *Bridge) refuse(err error) error {
	var failure *upstream.Failure
	if !errors.As(err, &failure) {
		return fault.Internal(err.Error())
	}
	b.notices.unserved.Warn().Str(logfield.Method, mcp.MethodInitialize).Err(err).Msg("the upstream cannot serve a new session")
	if failure.Cause == upstream.Unauthorized {
		return refusalOf(failure)
	}
	return describe(failure)
}

// describe words an upstream failure. Its HTTP status is told, never relayed:
// 400 and 404 mean something else to a legacy client (E-19, A-25).
func describe(f *upstream.Failure) *jsonrpc.Error {
	details := []fault.Detail{fault.Reason(strings.ReplaceAll(f.Cause.String(), " ", "_"))}
	if f.Status != 0 {
		details = append(details, fault.Number("httpStatus", f.Status))
	}
	return fault.Internal(f.Error(), details...)
}

func methodNotFound(method string) *jsonrpc.Error {
	return fault.Method("method not offered: " + fault.Clip(method))
}

// tooMuchDeclared refuses an initialize whose text a session would keep.
func tooMuchDeclared(size, limit int) *jsonrpc.Error {
	return fault.Params(fmt.Sprintf("clientInfo, capabilities and Authorization have %d bytes together; the limit is %d (limits.declaration)", size, limit),
		fault.Limit("limits.declaration"))
}

// brokenRule names the rule that the server broke; empty when the failure is
// no breach of the protocol.
func brokenRule(err error) string {
	var (
		violation *mrtr.Violation
		abort     *mrtr.Abort
		failure   *upstream.Failure
	)
	switch {
	case errors.As(err, &violation):
		return violation.Rule
	case errors.As(err, &abort):
		return abort.Rule
	case !errors.As(err, &failure):
		return ""
	case failure.Rule != "":
		return failure.Rule
	}
	switch failure.Cause {
	case upstream.BadResponse, upstream.TooLarge, upstream.ServerError:
		return "E-41"
	case upstream.NotModern:
		return "E-40"
	case upstream.Lost:
		return "D-15"
	}
	return ""
}

// undeclared words the refusal of a round that asks for what was not declared
// upstream (C-33). Why it was not is the client's business, and may be in its hands.
func (k ending) undeclared(capability string) string {
	asked := "the server asked for " + capability + ", "
	switch {
	case k.conv.capable == nil:
		return asked + "which needs a session: send initialize first"
	case !k.out.Interactive():
		return asked + "but nothing can be asked on this request: its Accept header lacks text/event-stream"
	case k.conv.distrusts(capability):
		return asked + "which this client declared but did not serve when it was last asked"
	}
	return asked + "which the client did not declare" + k.conv.instead(capability)
}

// finish answers with exactly one of result and err.
func finish(out downstream.Reply, id jsonrpc.ID, result []byte, err *jsonrpc.Error) {
	if err != nil {
		out.Finish(downstream.Failure(id, err))
		return
	}
	out.Finish(downstream.Result(id, result))
}

// errOperator ends a call that the people who run the bridge gave up.
var errOperator = errors.New("the call was ended by who runs the bridge")

// errFault is what a client learns of a fault of the bridge.
var errFault = errors.New("internal error of the bridge")
