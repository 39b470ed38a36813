package mount

import (
	"cmp"
	"context"
	"net/http"
	"sync/atomic"

	"github.com/mcpbridge/bridge/bridge"
	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/passthrough"
	"github.com/mcpbridge/bridge/internal/relay"
	"github.com/mcpbridge/bridge/internal/relayed"
	"github.com/mcpbridge/bridge/upstream"
	"github.com/mcpbridge/bridge/upstream/stdio"
)

// Command is a server that runs as a process.
type Command struct {
	Stdio stdio.Options // Fallback and Account are filled in
	// PerSession gives each session a process of its own, at most so many; 0
	// shares one between all sessions (E-49).
	PerSession int
	// Children bounds the processes of clients that are handed to a server of
	// their own era, which has one client per process; 0: 32, or as many as
	// PerSession says, together with those.
	Children int
}

// places returns those for processes of single sessions.
func (c *Command) places() *relay.Places {
	return relay.NewPlaces(cmp.Or(c.PerSession, c.Children, defaultChildren))
}

const defaultChildren = 32

// local is a server that is a process. Legacy clients of a legacy one get a
// process each.
type local struct {
	opt      *Options
	verdicts *verdicts
	process  upstream.Caller
	stdio    *stdio.Client
	verbatim passthrough.Sender // the same
	proxy    *passthrough.Process
	logs     *logGate
	places   *relay.Places
	handover *handover
	children *children // nil: all sessions share the process
	modern   atomic.Bool
}

// newLocal makes what speaks with a process. Nothing runs before the first call.
func newLocal(opt *Options, v *verdicts) (*local, error) {
	opt.Command.Stdio.Fallback, opt.Command.Stdio.Account = opt.Draft, opt.Legacy.Memory.Own()
	opt.Command.Stdio.Start = probeOptions(opt).Timeout
	process, err := stdio.New(opt.Command.Stdio)
	if err != nil {
		return nil, err
	}
	l := &local{opt: opt, verdicts: v, logs: &logGate{log: opt.Bridge.Log}, places: opt.Command.places(), verbatim: process, stdio: process}
	l.process = &gated{process, l.logs}
	l.proxy = passthrough.NewProcess(passthrough.ProcessOptions{
		Server: process, Legacy: l.isLegacy, Logs: l.logs.visit, Tools: opt.Bridge.Catalog.Headers(), Log: opt.Bridge.Log,
		CommitDelay: opt.Legacy.CommitDelay, KeepAlive: opt.Legacy.KeepAlive, WriteTimeout: opt.Legacy.WriteTimeout,
		Limits: limitsOf(opt),
	})
	v.everyone = true
	return l, nil
}

// isLegacy reports whether the command turned out to be a legacy server. One that
// has proved to be modern is not asked again.
func (l *local) isLegacy(ctx context.Context) bool {
	if l.modern.Load() {
		return false
	}
	v := l.verdicts.judge(ctx, downstream.Caller{})
	l.modern.Store(v.Usable())
	return v.LegacyServer()
}

func (l *local) caller() upstream.Caller { return l.process }

func (l *local) connections() *passthrough.Connections {
	return passthrough.NewConnections(passthrough.ConnectionOptions{
		Server: l.verbatim, Legacy: l.isLegacy, Logs: l.logs.visit, Turns: l.opt.Legacy.Turns, Limits: limitsOf(l.opt), Log: l.opt.Bridge.Log,
	})
}

func (l *local) bypass() bypass { return l.proxy }

func (l *local) asModern() http.Handler { return l.proxy }

func (l *local) backend(b *bridge.Bridge, _ *Mount) downstream.Backend {
	inner := downstream.Backend(&shared{Bridge: b, logs: l.logs})
	if l.opt.Command.PerSession > 0 {
		l.children = newChildren(b, l)
		inner = l.children
	}
	l.handover = newHandover(inner, l.verdicts, &relay.Process{Options: l.opt.Command.Stdio, Places: l.places}, l.opt, nil)
	return l.handover
}

func (l *local) holds(string) bool { return false }

func (l *local) remembers() *relayed.Sessions { return nil }

func (l *local) sessionCount() int { return 0 }

func (l *local) close() {
	l.handover.close()
	if l.children != nil {
		l.children.close()
	}
}
