package ends

import (
	"errors"

	"github.com/rs/zerolog"

	"github.com/mcpbridge/bridge/internal/logfield"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mrtr"
	"github.com/mcpbridge/bridge/observe"
	"github.com/mcpbridge/bridge/translate"
	"github.com/mcpbridge/bridge/upstream"
)

// ruleMalformed is broken by a result that is not what its method requires.
const ruleMalformed = "B-30"

// Line is the one line that every call has at its end.
const Line = "call ended"

// Words adds how a call ended, in the words of the metrics.
func Words(event *zerolog.Event, done *observe.CallEnd) *zerolog.Event {
	event = event.Stringer(logfield.End, done.End)
	if done.Cause != "" {
		event = event.Str(logfield.Cause, done.Cause)
	}
	if done.Code != 0 {
		event = event.Int(logfield.Code, done.Code)
	}
	if done.ToolError {
		event = event.Bool("tool_error", true)
	}
	return event
}

// Why adds why a call failed. It names the cause and never the payload (D-I5, H-11): hint
// is what would make sense of what the upstream sent last; empty: nothing.
func Why(event *zerolog.Event, err error, hint string) *zerolog.Event {
	if rule := BrokenRule(err); rule != "" {
		event = event.Str(logfield.Rule, rule)
		if hint != "" {
			event = event.Str("hint", hint)
		}
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
	case failure != nil && failure.Cause == upstream.SignIn: // its text holds the address to sign in at, whose query is nobody else's
	case errors.As(err, &abort) && abort.Rule == "":
		event = event.Str("question", abort.Method)
	default:
		event = event.Err(err)
	}
	return event
}

// BrokenRule names the rule that the server broke; empty when the failure is
// no breach of the protocol.
func BrokenRule(err error) string {
	var (
		violation *mrtr.Violation
		malformed *translate.Malformed
		abort     *mrtr.Abort
		failure   *upstream.Failure
	)
	switch {
	case errors.As(err, &violation):
		return violation.Rule
	case errors.As(err, &malformed):
		return ruleMalformed
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
