package ends

import (
	"errors"
	"strings"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/budget"
	"github.com/mcpbridge/bridge/internal/fault"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/mrtr"
	"github.com/mcpbridge/bridge/translate"
	"github.com/mcpbridge/bridge/upstream"
)

// Facts are what the words for the end of a call depend on.
type Facts struct {
	Method       string
	Params       []byte
	Rules        *translate.Rules
	Capabilities []byte // as declared upstream
	Undeclared   string // why the server may not ask what it asked; empty where it may
}

// Explain returns exactly one of a tool's error result and a JSON-RPC error.
func Explain(err error, of *Facts) ([]byte, *jsonrpc.Error) {
	var (
		theirs    *jsonrpc.Error
		abort     *mrtr.Abort
		limit     *mrtr.LimitReached
		violation *mrtr.Violation
		malformed *translate.Malformed
		failure   *upstream.Failure
	)
	switch {
	case errors.As(err, &failure) && failure.Cause == upstream.SignIn: // the model can tell its person
		return of.signIn(failure)
	case errors.As(err, &failure): // first: it may wrap an error that is the bridge's own
		return nil, Describe(failure)
	case errors.As(err, &theirs):
		rules := *of.Rules
		rules.Capabilities = of.Capabilities
		return rules.Error(of.Method, of.Params, theirs)
	case errors.As(err, &abort):
		reason := abort.Reason
		if abort.Undeclared != "" {
			reason = of.Undeclared
		}
		return of.giveUp(reason, fault.Text("inputRequest", abort.Key), fault.Text("method", abort.Method), fault.Reason(reason))
	case errors.As(err, &limit) && limit.Limit != "timeouts.round":
		return of.giveUp(limit.Error(), fault.Limit(limit.Limit))
	case budget.Short(err):
		return of.giveUp(err.Error(), fault.Limit("limits.memory"))
	case errors.Is(err, budget.ErrNoRoom):
		return of.giveUp(err.Error(), fault.Limit("store.size"))
	case errors.As(err, &violation):
		return nil, fault.Internal(violation.Error(), fault.Text("rule", violation.Rule))
	case errors.As(err, &malformed):
		return nil, fault.Internal(malformed.Error(), fault.Text("rule", ruleMalformed))
	}
	return nil, fault.Internal(err.Error())
}

// giveUp ends a call that could not get its input: for tools as a result that
// the model can react to, for the others as an error (C-34).
func (of *Facts) giveUp(reason string, details ...fault.Detail) ([]byte, *jsonrpc.Error) {
	if of.Method == mcp.MethodToolsCall {
		return translate.ToolError(reason), nil
	}
	return nil, fault.Internal(reason, details...)
}

// signIn tells what the person has to do. The text is not cut: it holds an address,
// half of which leads nowhere.
func (of *Facts) signIn(f *upstream.Failure) ([]byte, *jsonrpc.Error) {
	result, refusal := of.giveUp(f.Error(), fault.Reason(f.Cause.String()))
	if refusal != nil {
		refusal.Message = f.Error()
	}
	return result, refusal
}

// RefusalOf passes the challenge of a server that wants other credentials on (H-3).
func RefusalOf(f *upstream.Failure) *downstream.Refusal {
	return &downstream.Refusal{Status: f.Status, Challenge: f.Challenge, Why: f.Detail}
}

// Describe words an upstream failure. Its HTTP status is told, never relayed:
// 400 and 404 mean something else to a legacy client (E-19, A-25).
func Describe(f *upstream.Failure) *jsonrpc.Error {
	details := []fault.Detail{fault.Reason(strings.ReplaceAll(f.Cause.String(), " ", "_"))}
	if f.Status != 0 {
		details = append(details, fault.Number("httpStatus", f.Status))
	}
	return fault.Internal(f.Error(), details...)
}

// MethodNotFound refuses what the bridge does not offer.
func MethodNotFound(method string) *jsonrpc.Error {
	return fault.Method("method not offered: " + fault.Clip(method))
}

// Finish answers with exactly one of result and err.
func Finish(out downstream.Reply, id jsonrpc.ID, result []byte, err *jsonrpc.Error) {
	if err != nil {
		out.Finish(downstream.Failure(id, err))
		return
	}
	out.Finish(downstream.Result(id, result))
}

// ErrFault is what a client learns of a fault of the bridge.
var ErrFault = errors.New("internal error of the bridge")
