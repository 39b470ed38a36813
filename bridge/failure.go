package bridge

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/budget"
	"github.com/mcpbridge/bridge/internal/logfield"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/mrtr"
	"github.com/mcpbridge/bridge/rawjson"
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
	k.logEnd(err, e.result)
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
		return k.giveUp(reason, []rawjson.Edit{
			quoted("inputRequest", abort.Key), quoted("method", abort.Method), quoted("reason", reason),
		})
	case errors.As(err, &limit) && limit.Limit != "timeouts.round":
		return k.giveUp(limit.Error(), []rawjson.Edit{quoted("limit", limit.Limit)})
	case budget.Short(err):
		return k.giveUp(err.Error(), []rawjson.Edit{quoted("limit", "limits.memory")})
	case errors.As(err, &violation):
		return nil, internalError(violation.Error(), []rawjson.Edit{quoted("rule", violation.Rule)})
	}
	return nil, internalError(err.Error(), nil)
}

// giveUp ends a call that could not get its input: for tools as a result that
// the model can react to, for the others as an error (C-34).
func (k ending) giveUp(reason string, data []rawjson.Edit) ([]byte, *jsonrpc.Error) {
	if k.flow.Method == mcp.MethodToolsCall {
		return translate.ToolError(reason), nil
	}
	return nil, internalError(reason, data)
}

// signIn tells what the person has to do. The text is not cut: it holds an address,
// half of which leads nowhere.
func (k ending) signIn(f *upstream.Failure) ([]byte, *jsonrpc.Error) {
	result, refusal := k.giveUp(f.Error(), []rawjson.Edit{quoted("reason", f.Cause.String())})
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
		return internalError(err.Error(), nil)
	}
	b.log.Warn().Str(logfield.Method, mcp.MethodInitialize).Err(err).Msg("the upstream cannot serve a new session")
	if failure.Cause == upstream.Unauthorized {
		return refusalOf(failure)
	}
	return describe(failure)
}

// describe words an upstream failure. Its HTTP status is told, never relayed:
// 400 and 404 mean something else to a legacy client (E-19, A-25).
func describe(f *upstream.Failure) *jsonrpc.Error {
	data := []rawjson.Edit{quoted("reason", strings.ReplaceAll(f.Cause.String(), " ", "_"))}
	if f.Status != 0 {
		data = append(data, rawjson.Edit{Name: "httpStatus", Value: strconv.AppendInt(nil, int64(f.Status), 10)})
	}
	return internalError(f.Error(), data)
}

// internalError is an error of the bridge's own, marked by data.bridge so that
// it cannot be taken for the server's (F-2).
func internalError(message string, data []rawjson.Edit) *jsonrpc.Error {
	inner := rawjson.Apply(nil, emptyObject, data...)
	outer := append([]byte(`{"bridge":`), inner...)
	return &jsonrpc.Error{Code: jsonrpc.CodeInternal, Message: bounded(message), Data: append(outer, '}')}
}

func methodNotFound(method string) *jsonrpc.Error {
	return &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "method not offered: " + bounded(method)}
}

func invalidParams(message string) *jsonrpc.Error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: message}
}

// tooMuchDeclared refuses an initialize whose text a session would keep.
func tooMuchDeclared(size, limit int) *jsonrpc.Error {
	return &jsonrpc.Error{
		Code:    jsonrpc.CodeInvalidParams,
		Message: fmt.Sprintf("clientInfo, capabilities and Authorization have %d bytes together; the limit is %d (limits.declaration)", size, limit),
		Data:    []byte(`{"bridge":{"limit":"limits.declaration"}}`),
	}
}

func quoted(name, text string) rawjson.Edit {
	return rawjson.Edit{Name: name, Value: rawjson.AppendQuote(nil, bounded(text))}
}

// maxText bounds peer-controlled text in errors and logs, in bytes.
const maxText = 400

func bounded(s string) string {
	if len(s) <= maxText {
		return s
	}
	return strings.ToValidUTF8(s[:maxText], "") + "…"
}

// logEnd writes one line for every flow that fails. It names the cause and
// never the payload (D-I5, H-11). result is what the upstream sent last, if anything.
func (k ending) logEnd(err error, result []byte) {
	event := k.conv.b.log.Info()
	if rule := brokenRule(err); rule != "" {
		event = hintAtDraft(k.conv.b.log.Warn().Str(logfield.Rule, rule), result)
	}
	// A peer's own error text may quote anything, so it is not logged: of the
	// server's the code, of the client's what it was asked.
	var (
		failure *upstream.Failure
		theirs  *jsonrpc.Error
		abort   *mrtr.Abort
	)
	switch {
	case !errors.As(err, &failure) && errors.As(err, &theirs):
		event = event.Int(logfield.Code, theirs.Code)
	case failure != nil && failure.Cause == upstream.SignIn:
		event = event.Stringer(logfield.Cause, failure.Cause) // its text holds the address to sign in at, whose query is nobody else's
	case errors.As(err, &abort) && abort.Rule == "":
		event = event.Str(logfield.Cause, "no usable answer to "+abort.Method)
	default:
		event = event.Err(err)
	}
	k.logLine(event).Msg("call failed")
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

// logLine says which call a line is about: whose, of what, since when.
func (k ending) logLine(event *zerolog.Event) *zerolog.Event {
	if k.flow.Home.Session != "" {
		event = event.Str(logfield.SessionID, logfield.Short(k.flow.Home.Session))
	}
	if name, ok := rawjson.Text(k.name); ok {
		event = event.Str(logfield.Tool, bounded(name))
	}
	event = event.Str(logfield.FlowID, k.id()).Str(logfield.Method, k.flow.Method).Int(logfield.Round, k.flow.Round)
	if !k.flow.Clock.Began.IsZero() {
		event = event.Dur(logfield.Duration, time.Since(k.flow.Clock.Began))
	}
	return event
}
