package legacy

import (
	"context"
	"io"
	"net/http"
	"time"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/budget"
	"github.com/mcpbridge/bridge/internal/logfield"
	"github.com/mcpbridge/bridge/legacy/channel"
	"github.com/mcpbridge/bridge/legacy/session"
)

// What the front gives the sessions that are connections.

// ServeStdio serves one client over a pair of pipes, one message per line
// (E-31). It returns nil when in ends and what it brought was answered or took too
// long, ctx's error when ctx ends, and the write error when the client no longer
// reads. By then every request has ended. The goroutine that reads ends with
// in, which ServeStdio doesn't close: nothing interrupts a read of a standard input.
func ServeStdio(ctx context.Context, in io.Reader, out io.Writer, opt Options, b downstream.Backend) error {
	opt = opt.withDefaults()
	account, err := session.OpenAccount(opt.Memory, "", 0)
	if err != nil {
		return err
	}
	of := opt.ofChannels(account)
	of.Pace = opt.paceOfOne()
	return channel.Serve(ctx, in, out, of, b)
}

func (o *Options) ofChannels(account *budget.Account) channel.Options {
	return channel.Options{
		MaxBody: o.MaxBody, MaxBatch: o.MaxBatch, MaxPending: o.MaxPending, MaxInFlight: func() int { return o.MaxInFlight },
		Logger: o.Logger, Dropped: logfield.Seldom(o.Logger), Watch: o.Watch, Account: account,
	}
}

// connections opens sessions that are connections. It has no state of its own.
type connections struct{ *HTTP }

// channelOptions are those of a connection that is the session of this id, and whose
// requests a shutdown waits for.
func (h connections) channelOptions(r *http.Request, id string, account *budget.Account) channel.Options {
	opt := h.opt.ofChannels(account)
	opt.Gate, opt.Pace, opt.Places, opt.MaxInFlight = h.gate, h.admission.pace(r, id), h.admission.places(r), func() int { return h.admission.inFlight(r) }
	opt.Late = h.refusals.late
	opt.Streams = h.admission.streams(r)
	opt.Tenant = h.sessions.Sharing(r, account)
	opt.Dropped = h.notices.dropped
	return opt
}

// silence is after what silence a connection is pinged.
func (h connections) silence() time.Duration { return h.opt.KeepAlive * 2 / 3 }
