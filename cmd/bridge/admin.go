package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"github.com/mcpbridge/bridge/config"
	"github.com/mcpbridge/bridge/internal/budget"
	"github.com/mcpbridge/bridge/internal/edge"
	"github.com/mcpbridge/bridge/internal/fleet"
	"github.com/mcpbridge/bridge/internal/mount"
	"github.com/mcpbridge/bridge/observe"
	"github.com/mcpbridge/bridge/observe/admin"
	"github.com/mcpbridge/bridge/observe/metrics"
	"github.com/mcpbridge/bridge/observe/record"
	"github.com/mcpbridge/bridge/observe/report"
	"github.com/mcpbridge/bridge/observe/tap"
	"github.com/mcpbridge/bridge/observe/traces"
	"github.com/mcpbridge/bridge/observe/view"
)

// administration is the listener for the people who run the bridge, what is shown
// there, and what is recorded. Without one nothing is counted: the nil administration.
type administration struct {
	metrics  *metrics.Registry
	hub      *tap.Hub
	recorder *record.Recorder
	tracer   *traces.Tracer // nil: nothing is traced
	book     *report.Book   // nil: clients are not counted

	stopSaving chan struct{} // closed to end the writing of the book
	saved      chan struct{} // closed when it has ended; nil: it never began
	aside      *edge.Aside   // nil: there is only a recording
	guard      admin.Options
	payloads   bool   // what servers ask is shown
	actions    bool   // people may end calls and sessions, and set the level of the log
	address    string // to open in a browser; holds the token if that was made here
	log        zerolog.Logger
}

// newAdministration opens the admin listener and begins the recording, the report and the traces,
// and returns nil when none of them is wanted. Nothing is served before serve.
func newAdministration(ctx context.Context, cfg *config.Config, environ []string, log zerolog.Logger) (*administration, error) {
	tracer, err := traces.FromEnviron(func(name string) string { return variable(environ, name) }, versionText())
	if err != nil {
		return nil, err
	}
	if cfg.Admin.Listen == "" && cfg.Record == "" && cfg.Admin.Report == "" && tracer == nil {
		return nil, nil
	}
	a := newSight(cfg, log)
	a.trace(tracer)
	if cfg.Admin.Report != "" {
		if a.book, err = report.Open(cfg.Admin.Report); err != nil {
			a.tracer.Close()
			return nil, fmt.Errorf("admin.report: %w", err)
		}
		a.hub.Count(a.book)
	}
	if cfg.Admin.Listen != "" {
		if err := a.open(ctx, cfg); err != nil {
			a.tracer.Close()
			return nil, err
		}
	}
	if err := a.recordFromStart(cfg); err != nil { // whoever finds that out later has nothing of what it was for
		a.stop()
		return nil, err
	}
	if a.book != nil {
		a.stopSaving, a.saved = make(chan struct{}), make(chan struct{})
		go a.keepReport()
	}
	return a, nil
}

// trace has calls traced, by nobody where the tracer is nil.
func (a *administration) trace(tracer *traces.Tracer) {
	a.tracer = tracer
	a.hub.Trace(tracer)
}

// newSight makes what sees messages, without a listener.
func newSight(cfg *config.Config, log zerolog.Logger) *administration {
	a := &administration{log: log, payloads: cfg.Admin.Payloads == "on", actions: cfg.Admin.Actions == "on"}
	a.hub = tap.NewHub(record.NewRedactor(a.payloads))
	a.recorder = record.New(record.Options{Dir: cfg.Record, Bridge: versionText(), Payloads: a.payloads, Ended: a.recorded})
	return a
}

// open opens the listener.
func (a *administration) open(ctx context.Context, settings *config.Config) error {
	cfg := &settings.Admin
	token, err := admin.NewToken(cfg.TokenFile)
	if err != nil {
		return err
	}
	if a.aside, err = edge.OpenAside(ctx, "admin", cfg.Listen, edge.Files(cfg.TLS), a.log); err != nil {
		return err
	}
	a.metrics = metrics.NewRegistry(versionText(), sourceRevision())
	if settings.Metrics.Tools == "on" {
		a.metrics.NameTools()
	}
	a.address = adminAddress(cfg, a.aside.Addr(), &token)
	a.guard = admin.Options{Token: token, TLS: cfg.TLS.Cert != "", Named: a.aside.Names}
	return nil
}

// watch has a mount at a path reported; without an administration nobody is told.
func (a *administration) watch(m *config.Mount, options *mount.Options) {
	if a == nil {
		return
	}
	options.Watch, options.Tap = observe.Nobody{}, a.hub.Mount(m.Path, serverOf(m))
	if a.metrics != nil {
		options.Watch = a.metrics.Mount(m.Path, serverOf(m))
	}
	options.Watch = options.Tap.Remember(options.Watch)
}

// serve shows what the mounts of a fleet do, until stop.
func (a *administration) serve(mounts *fleet.Fleet, memory *budget.Budget, kept *keeping) {
	if a == nil || a.aside == nil {
		return
	}
	a.metrics.Look(func() []metrics.State { return states(mounts) })
	if a.tracer != nil {
		a.metrics.Traces(map[string]func() uint64{
			"sent":    func() uint64 { return a.tracer.Counts().Sent },
			"failed":  func() uint64 { return a.tracer.Counts().Failed },
			"dropped": func() uint64 { return a.tracer.Counts().Dropped },
		})
	}
	if memory != nil {
		a.metrics.Memory(memory)
		a.hub.Within(memory.Limit())
	}
	if kept.up != nil {
		a.metrics.Store(kept.up)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", a.metrics.Handler())
	(&stored{kept.store, mounts, a.actions, a.log}).handle(mux)
	mux.Handle("/", view.New(view.Options{
		Look: func() []view.Mount { return a.sights(mounts) }, Messages: a.messages, After: a.after, Ends: a.ends, Payloads: a.payloads, Actions: a.deeds(mounts),
		Recording: a,
		Version:   "MCP Bridge " + versionText(),
	}))
	a.guard.Inside, a.guard.Static = mux, view.Static()
	go func() {
		if err := a.aside.Serve(admin.NewGuard(a.guard)); !errors.Is(err, http.ErrServerClosed) {
			a.log.Error().Err(err).Msg("the admin listener failed")
		}
	}()
}

// How long messages are kept after somebody looked, and how many are shown at once.
const (
	lookAfter    = 2 * time.Minute
	mostMessages = 500
)

// messages returns the latest messages of a session, and has more kept.
func (a *administration) messages(session uint64) []observe.Event {
	a.hub.Look(lookAfter)
	return a.hub.Of(session, mostMessages)
}

// after returns the latest messages after a number, and has more kept.
func (a *administration) after(seq uint64) []observe.Event {
	a.hub.Look(lookAfter)
	return a.hub.After(seq, mostMessages)
}

// ends returns calls that ended lately.
func (a *administration) ends(most int, wanted func(*observe.Ended) bool) []observe.Ended {
	return a.hub.Ends(most, wanted)
}

// deeds returns what the pages let people do; nil: they may only look.
func (a *administration) deeds(mounts *fleet.Fleet) view.Actions {
	if !a.actions {
		return nil
	}
	return &deeds{mounts, a.log}
}

// reloaded counts that the configuration was read again.
func (a *administration) reloaded(obeyed bool) {
	if a != nil && a.metrics != nil {
		a.metrics.Reloaded(obeyed)
	}
}

// stop ends the listener.
func (a *administration) stop() {
	if a == nil {
		return
	}
	if a.aside != nil {
		a.aside.Shutdown()
	}
	a.hub.Close()
	a.recorder.Stop()
	if a.saved != nil {
		close(a.stopSaving)
		<-a.saved
	}
	a.tracer.Close()
}

// adminAddress is what a person opens. A token from a file is known to who wrote it.
func adminAddress(cfg *config.Admin, at net.Addr, token *admin.Token) string {
	scheme, host, socket := "http://", reachable(at.String()), ""
	if cfg.TLS.Cert != "" {
		scheme = "https://"
	}
	if strings.HasPrefix(cfg.Listen, "unix:") {
		host, socket = "localhost", " over the socket "+at.String()
	}
	address := scheme + host + "/"
	if token.Shown {
		address += token.Fragment()
	}
	return address + socket
}
