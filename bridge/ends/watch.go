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
	"github.com/mcpbridge/bridge/observe"
	"github.com/mcpbridge/bridge/rawjson"
	"github.com/mcpbridge/bridge/translate"
	"github.com/mcpbridge/bridge/upstream"
)

// EndOf tells how a call ended that failed with err, and why, in words that have no
// part of any peer's text.
func EndOf(err error) (end observe.End, cause string, code int) {
	var (
		failure   *upstream.Failure
		theirs    *jsonrpc.Error
		abort     *mrtr.Abort
		limit     *mrtr.LimitReached
		violation *mrtr.Violation
		malformed *translate.Malformed
	)
	switch {
	case errors.Is(err, downstream.ErrOperator):
		return observe.Cancelled, "operator", jsonrpc.CodeInternal
	case errors.Is(err, downstream.ErrElsewhere):
		return observe.Cancelled, "session", jsonrpc.CodeInternal
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
	case errors.As(err, &violation), errors.As(err, &malformed):
		return observe.Failed, "violation", jsonrpc.CodeInternal
	case errors.As(err, &limit) && limit.Limit == "limits.flows":
		return observe.Evicted, limit.Limit, jsonrpc.CodeInternal
	case errors.As(err, &limit) && isTimeout(limit.Limit):
		return observe.Expired, limit.Limit, jsonrpc.CodeInternal
	case errors.As(err, &limit):
		return observe.Failed, limitWord(limit.Limit), jsonrpc.CodeInternal
	case errors.Is(err, budget.ErrNoRoom):
		return observe.Failed, "store.size", jsonrpc.CodeInternal
	}
	return observe.Failed, "internal", jsonrpc.CodeInternal
}

// limitWord names a limit that a call reached: by its setting, where it has one.
func limitWord(limit string) string {
	if strings.HasPrefix(limit, "limits.") {
		return limit
	}
	return "limit"
}

func isTimeout(limit string) bool {
	switch limit {
	case "timeouts.flow", "timeouts.round", "timeouts.grace":
		return true
	}
	return false
}

// FailedTool reports whether a result is that of a tool that failed.
func FailedTool(method string, result []byte) bool {
	return method == mcp.MethodToolsCall && string(rawjson.Get(result, "isError")) == "true"
}

// outcomes has how to read an answer to each kind of question.
var outcomes = [mcp.InputKinds]func(response []byte) observe.Outcome{
	mcp.Elicitation: decided,
	mcp.Sampling:    given,
	mcp.Roots:       given,
}

// OutcomeOf reads what a usable answer to a question says. Of a method that is no
// question's none is usable.
func OutcomeOf(method string, response []byte) observe.Outcome {
	kind, asks := mcp.InputKindOf(method)
	if !asks {
		return observe.ClientError
	}
	return outcomes[kind](response)
}

// decided reads the answer of a person, who may say no.
func decided(response []byte) observe.Outcome {
	switch action, _ := rawjson.Text(rawjson.Get(response, "action")); action {
	case "decline":
		return observe.Declined
	case "cancel":
		return observe.Dismissed
	}
	return observe.Accepted
}

// given is the answer of a client's program, which says no by an error.
func given([]byte) observe.Outcome { return observe.Accepted }

// NameOf returns the name of the tool or prompt that a request is about, from what downstream.Request says of it. URIs of
// resources are not told: they may hold secrets.
func NameOf(raw []byte) string {
	name, _ := rawjson.Text(raw)
	return fault.Clip(name)
}
