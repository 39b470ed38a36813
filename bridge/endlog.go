package bridge

import (
	"errors"
	"time"

	"github.com/rs/zerolog"

	"github.com/mcpbridge/bridge/internal/fault"
	"github.com/mcpbridge/bridge/internal/logfield"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mrtr"
	"github.com/mcpbridge/bridge/observe"
	"github.com/mcpbridge/bridge/rawjson"
	"github.com/mcpbridge/bridge/upstream"
)

// endedLine is the one line that every call has at its end.
const endedLine = "call ended"

// levelOf begins the line of a call that has ended: those that failed are for people
// to see, up to so many a minute. It returns nil where nobody wants the line.
func (b *Bridge) levelOf(done *observe.Call) *zerolog.Event {
	if done.End == observe.Complete || done.End == observe.Cancelled {
		return b.log.Debug()
	}
	return b.notices.failed.Warn()
}

// words adds how a call ended, in the words of the metrics.
func words(event *zerolog.Event, done *observe.Call) *zerolog.Event {
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

// log writes the line of a call's end. It names the cause and never the payload (D-I5,
// H-11): what the upstream sent last serves only to hint at a setting.
func (k ending) log(done *observe.Call, e *effect) {
	event := k.conv.b.levelOf(done)
	if event == nil {
		return
	}
	event = words(k.logLine(event), done)
	if done.End == observe.Complete || done.End == observe.Cancelled {
		event.Msg(endedLine)
		return
	}
	if rule := brokenRule(e.err); rule != "" {
		event = hintAtDraft(event.Str(logfield.Rule, rule), e.result)
	}
	// A peer's own error text may quote anything, so it is not logged: of the
	// server's the code, of the client's what it was asked.
	var (
		failure *upstream.Failure
		theirs  *jsonrpc.Error
		abort   *mrtr.Abort
	)
	switch {
	case !errors.As(e.err, &failure) && errors.As(e.err, &theirs):
	case failure != nil && failure.Cause == upstream.SignIn: // its text holds the address to sign in at, whose query is nobody else's
	case errors.As(e.err, &abort) && abort.Rule == "":
		event = event.Str("question", abort.Method)
	default:
		event = event.Err(e.err)
	}
	event.Msg(endedLine)
}

// logLine says which call a line is about: whose, of what, since when.
func (k ending) logLine(event *zerolog.Event) *zerolog.Event {
	if k.flow.Home.Session != "" {
		event = event.Str(logfield.SessionID, logfield.Short(k.flow.Home.Session))
	}
	if name, ok := rawjson.Text(k.name); ok {
		event = event.Str(logfield.Tool, fault.Clip(name))
	}
	event = event.Str(logfield.FlowID, k.id()).Str(logfield.Method, k.flow.Method).Int(logfield.Round, k.flow.Round)
	if !k.flow.Clock.Began.IsZero() {
		event = event.Dur(logfield.Duration, time.Since(k.flow.Clock.Began))
	}
	return event
}
