// Package mount puts one upstream behind one client-facing endpoint: it joins
// the client-facing server, the bridge and the upstream client, decides which
// clients are handed to the server as they are, and owns the lifetimes of all.
// The command, the demo, the benchmarks and the tests all mount the same way.
package mount

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/mcpbridge/bridge/bridge"
	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/dialect"
	"github.com/mcpbridge/bridge/internal/passthrough"
	"github.com/mcpbridge/bridge/internal/relay"
	"github.com/mcpbridge/bridge/legacy"
	"github.com/mcpbridge/bridge/negotiate"
	"github.com/mcpbridge/bridge/upstream"
)

// Options says what to mount. Only Upstream.URL, Caller or Command is required.
type Options struct {
	Upstream upstream.HTTPOptions
	Caller   upstream.Caller // instead of Upstream, for servers that are neither HTTP nor a process
	Command  *Command        // instead of Upstream, for servers that are a process
	// Draft says how to speak to servers of a draft; nil: as they say that they
	// speak. Whoever brings a Caller gives it the same one.
	Draft  *dialect.Dialect
	Probe  negotiate.Options
	Legacy legacy.Options
	Bridge bridge.Options // Upstream, Prober, Draft and Modern are filled in
	// RefuseModern answers modern requests as a legacy server would, instead
	// of relaying them (Q1).
	RefuseModern bool
	// Relay says which legacy clients are handed to a server that speaks their
	// revision.
	Relay negotiate.RelayPolicy
	// DropAuthorization keeps clients' credentials from the server. Credentials
	// in Upstream.Header do so in any case.
	DropAuthorization bool
}

// Mount is one running endpoint. It is an http.Handler for the MCP path.
type Mount struct {
	*legacy.HTTP
	// Backend answers clients that come over other ways than HTTP.
	Backend  downstream.Backend
	Bridge   *bridge.Bridge
	Prober   *negotiate.Prober
	Upstream upstream.Caller

	handover *handover // nil when no client is handed on
	eras     *eras     // the same, of a server over HTTP
	servers  *relay.HTTP
	past     past      // nil when no request is handed on
	logs     *logGate  // nil without a process
	children *children // nil unless each session has a process
	modern   atomic.Bool
}

// past hands requests past the bridge.
type past interface {
	http.Handler
	Active() int
	Drain()
	Shutdown(context.Context) error
	Close()
}

// New mounts an upstream. Nothing is sent before the first request.
func New(opt Options) (*Mount, error) {
	if opt.Draft == nil {
		opt.Draft = dialect.New(dialect.Options{Log: opt.Bridge.Log})
	}
	opt.Upstream.Drafts = opt.Draft
	m := &Mount{Upstream: opt.Caller, Prober: negotiate.NewProber(probeOptions(&opt))}
	if err := m.connect(&opt); err != nil {
		return nil, err
	}
	if m.past != nil && !opt.RefuseModern {
		opt.Bridge.Modern = m.past
	}
	m.Upstream = opt.Draft.Caller(m.Upstream)
	opt.Bridge.Upstream, opt.Bridge.Prober, opt.Bridge.Draft = m.Upstream, m.Prober, opt.Draft.Active
	m.Bridge = bridge.New(opt.Bridge)
	m.Backend = m.backend(&opt)
	m.HTTP = legacy.NewHTTP(opt.Legacy, m.Backend)
	return m, nil
}

// connect makes what speaks to the server.
func (m *Mount) connect(opt *Options) (err error) {
	switch {
	case opt.Caller != nil:
	case opt.Command != nil:
		opt.Command.Stdio.Drafts = opt.Draft
		m.Upstream, err = m.start(opt)
	default:
		err = m.dial(opt)
	}
	return err
}

// start makes what speaks to a process. Nothing runs before the first call.
func (m *Mount) start(opt *Options) (upstream.Caller, error) {
	process, err := upstream.NewStdio(opt.Command.Stdio)
	if err != nil {
		return nil, err
	}
	m.logs = &logGate{log: opt.Bridge.Log}
	if !opt.RefuseModern {
		m.past = passthrough.NewProcess(passthrough.ProcessOptions{
			Server: process, Legacy: m.isLegacy, Logs: m.logs.visit, Log: opt.Bridge.Log,
			CommitDelay: opt.Legacy.CommitDelay, KeepAlive: opt.Legacy.KeepAlive, WriteTimeout: opt.Legacy.WriteTimeout,
		})
	}
	return &gated{process, m.logs}, nil
}

// isLegacy reports whether a command turned out to be a legacy server. One that
// has proved to be modern is not asked again.
func (m *Mount) isLegacy(ctx context.Context) bool {
	if m.modern.Load() {
		return false
	}
	v := m.Judge(ctx)
	m.modern.Store(v.Usable())
	return v.LegacyServer()
}

// dial makes what speaks to a server over HTTP.
func (m *Mount) dial(opt *Options) error {
	caller, err := upstream.NewHTTP(opt.Upstream)
	if err != nil {
		return err
	}
	m.Upstream = decide(caller, opt)
	if opt.RefuseModern && opt.Relay == negotiate.RelayNever {
		return nil
	}
	endpoint, err := url.Parse(opt.Upstream.URL)
	if err != nil {
		return err // impossible: NewHTTP has parsed it
	}
	m.past = passthrough.New(passthrough.Options{
		URL: endpoint, Header: opt.Upstream.Header, DropAuthorization: opt.DropAuthorization, TLS: opt.Upstream.TLS,
		Dial: opt.Upstream.Dial, Answered: m.answered, Log: opt.Upstream.Log,
	})
	m.servers = relay.NewHTTP(relay.HTTPOptions{
		URL: endpoint, Header: opt.Upstream.Header, DropAuthorization: opt.DropAuthorization, TLS: opt.Upstream.TLS,
		Dial: opt.Upstream.Dial, MaxMessage: opt.Upstream.MaxResponse, UserAgent: opt.Upstream.UserAgent, Log: opt.Upstream.Log,
	})
	return nil
}

// backend chooses what answers clients: the bridge, with what its upstream
// makes necessary around it.
func (m *Mount) backend(opt *Options) downstream.Backend {
	switch {
	case opt.Command != nil:
		places := opt.Command.places()
		inner := downstream.Backend(&shared{Bridge: m.Bridge, logs: m.logs})
		if opt.Command.PerSession > 0 {
			m.children = newChildren(m.Bridge, opt, places)
			inner = m.children
		}
		if opt.Relay == negotiate.RelayNever {
			return inner
		}
		m.handover = m.newHandover(inner, &relay.Process{Options: opt.Command.Stdio, Places: places}, opt)
		m.handover.everyone = true
		return m.handover
	case m.servers != nil && opt.Relay != negotiate.RelayNever:
		m.handover = m.newHandover(m.Bridge, m.servers, opt)
		m.eras = newEras(m.handover, m.past, opt)
		return m.eras
	}
	return m.Bridge
}

func (m *Mount) newHandover(inner downstream.Backend, server relay.Server, opt *Options) *handover {
	return &handover{
		Backend: inner, policy: opt.Relay, prober: m.Prober, caller: m.Upstream, log: opt.Bridge.Log,
		relay: relay.New(relay.Options{
			Server: server, Start: opt.Probe.Timeout, Call: opt.Bridge.Limits.Call, Calls: opt.Legacy.MaxInFlight, Log: opt.Bridge.Log,
		}),
	}
}

// defaultMinTTL serves sessions that open in a burst from one discover, whatever
// its ttlMs says: clients that open a session per call would else double the
// upstream's load.
const defaultMinTTL = 5 * time.Second

// commandTimeout is how long a server that is a command may take to its first
// answer: many are fetched by a package runner at their start.
const commandTimeout = 25 * time.Second

// How long a legacy server that clients are relayed to is believed to be one.
// Finding out takes three requests, or a process, which may not even answer the
// first of them. A command does not change as easily as what is behind a URL.
const (
	legacyTTL        = 30 * time.Second
	legacyCommandTTL = time.Hour
)

// probeOptions fills in what Options leaves to the mount.
func probeOptions(opt *Options) negotiate.Options {
	probe := opt.Probe
	probe.Draft = opt.Draft.Version
	process := opt.Caller != nil || opt.Command != nil
	if probe.MinTTL == 0 {
		probe.MinTTL = defaultMinTTL
	}
	if probe.Timeout == 0 && process {
		probe.Timeout = commandTimeout
	}
	if probe.LegacyTTL == 0 && opt.Relay != negotiate.RelayNever {
		probe.LegacyTTL = legacyTTL
		if process {
			probe.LegacyTTL = legacyCommandTTL
		}
	}
	return probe
}

// Holds reports whether a session, named by its id, is served or relayed here.
func (m *Mount) Holds(session string) bool {
	return m.HTTP.Holds(session) || m.eras != nil && m.eras.holds(session)
}

// Busy returns how many sessions and requests handed on are left here.
func (m *Mount) Busy() int {
	busy := m.Sessions()
	if m.past != nil {
		busy += m.past.Active()
	}
	if m.eras != nil {
		busy += m.eras.own()
	}
	return busy
}

// Shutdown ends the endpoint: it stops taking requests, gives running calls
// until ctx to finish, then ends every session and closes the upstream.
func (m *Mount) Shutdown(ctx context.Context) error {
	var relayed error
	if m.past != nil {
		m.past.Drain()
	}
	err := m.HTTP.Shutdown(ctx)
	if m.past != nil {
		relayed = m.past.Shutdown(ctx)
	}
	m.release()
	return errors.Join(err, relayed)
}

// Close ends the endpoint at once.
func (m *Mount) Close() {
	if m.past != nil {
		m.past.Close()
	}
	m.HTTP.Close()
	m.release()
}

func (m *Mount) release() {
	if m.handover != nil {
		m.handover.relay.Close()
	}
	if m.servers != nil {
		m.servers.Close()
	}
	if m.children != nil {
		m.children.close()
	}
	m.Bridge.Close()
	_ = m.Upstream.Close() // it has nothing to report but what its calls did
}
