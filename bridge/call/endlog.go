package call

import (
	"time"

	"github.com/rs/zerolog"

	"github.com/mcpbridge/bridge/bridge/ends"
	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/fault"
	"github.com/mcpbridge/bridge/internal/logfield"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/observe"
	"github.com/mcpbridge/bridge/rawjson"
)

// levelOf begins the line of a call that has ended: those that failed are for people
// to see, up to so many a minute. It returns nil where nobody wants the line.
func (d *Driver) levelOf(done *observe.CallEnd) *zerolog.Event {
	if done.End == observe.Complete || done.End == observe.Cancelled {
		return logfield.Each(d.Log.Debug())
	}
	return d.notices.failed.Warn()
}

// log writes the line of a call's end. It names the cause and never the payload (D-I5,
// H-11): what the upstream sent last serves only to hint at a setting.
func (k ending) log(done *observe.CallEnd, e *effect) {
	event := k.client.Driver.levelOf(done)
	if event == nil {
		return
	}
	event = ends.Words(k.logLine(event), done)
	if done.End == observe.Complete || done.End == observe.Cancelled {
		event.Msg(ends.Line)
		return
	}
	hint := ""
	if k.client.Driver.Hint != nil {
		hint = k.client.Driver.Hint(e.result)
	}
	ends.Why(event, e.err, hint).Msg(ends.Line)
}

// logLine says which call a line is about: whose, of what, since when.
func (k ending) logLine(event *zerolog.Event) *zerolog.Event {
	if k.flow.Home.Session != "" {
		event = event.Str(logfield.SessionID, logfield.Short(k.flow.Home.Session))
	}
	if name, ok := rawjson.Text(k.name); ok {
		event = event.Str(logfield.Tool, fault.Clip(name))
	}
	event = event.Str(logfield.FlowID, k.Name()).Str(logfield.Method, k.flow.Method).Int(logfield.Round, k.flow.Round)
	if !k.flow.Clock.Began.IsZero() {
		event = event.Dur(logfield.Duration, time.Since(k.flow.Clock.Began))
	}
	return event
}

// ReportLocal tells the log and who watches that a request was answered without the server.
func (p *Client) ReportLocal(caller *downstream.Caller, method string, began time.Time, err *jsonrpc.Error) {
	var done observe.CallEnd
	if err != nil {
		done.End, done.Cause, done.Code = observe.Failed, "refused", err.Code
	}
	p.ReportEnd(caller, method, began, done)
}

// ReportEnd is ReportLocal for a request that ended as done says; what else there is to say
// is added.
func (p *Client) ReportEnd(caller *downstream.Caller, method string, began time.Time, done observe.CallEnd) {
	done.Method, done.Took, done.Session = method, time.Since(began), logfield.Short(caller.Session)
	done.Version, done.Transport, done.HTTP = p.Rules.Version, p.Transport, caller.HTTP
	if event := p.Driver.levelOf(&done); event != nil {
		if done.Session != "" {
			event = event.Str(logfield.SessionID, done.Session)
		}
		ends.Words(event.Str(logfield.Method, fault.Clip(method)).Dur(logfield.Duration, done.Took), &done).Msg(ends.Line)
	}
	if watch := p.Driver.Watch; watch != nil {
		watch.CallEnded(done)
	}
}
