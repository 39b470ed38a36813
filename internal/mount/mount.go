// Package mount puts one upstream behind one client-facing endpoint: it joins
// the client-facing server, the bridge and the upstream client, and owns their
// lifetimes. The command, the demo, the benchmarks and the tests all mount the
// same way.
package mount

import (
	"context"
	"net/url"
	"time"

	"github.com/mcpbridge/bridge/bridge"
	"github.com/mcpbridge/bridge/internal/dialect"
	"github.com/mcpbridge/bridge/internal/passthrough"
	"github.com/mcpbridge/bridge/legacy"
	"github.com/mcpbridge/bridge/negotiate"
	"github.com/mcpbridge/bridge/upstream"
)

// Options says what to mount. Only Upstream.URL, or Caller, is required.
type Options struct {
	Upstream upstream.HTTPOptions
	Caller   upstream.Caller // instead of Upstream, for servers that are not HTTP
	// Draft says how to speak to servers of a draft; nil: as they say that they
	// speak. Whoever brings a Caller gives it the same one.
	Draft    *dialect.Dialect
	Probe    negotiate.Options
	Legacy   legacy.Options
	Bridge   bridge.Options // Upstream, Prober, Draft and Modern are filled in
	// RefuseModern answers modern requests as a legacy server would, instead
	// of relaying them (Q1).
	RefuseModern bool
}

// Mount is one running endpoint. It is an http.Handler for the MCP path.
type Mount struct {
	*legacy.HTTP
	Bridge   *bridge.Bridge
	Prober   *negotiate.Prober
	Upstream upstream.Caller

	relay *passthrough.Relay // nil when modern requests are refused
}

// New mounts an upstream. Nothing is sent before the first request.
func New(opt Options) (*Mount, error) {
	if opt.Draft == nil {
		opt.Draft = dialect.New(dialect.Options{Log: opt.Bridge.Log})
	}
	opt.Upstream.Drafts = opt.Draft
	m := &Mount{Upstream: opt.Caller, Prober: negotiate.NewProber(probeOptions(&opt))}
	if m.Upstream == nil {
		if err := m.dial(&opt); err != nil {
			return nil, err
		}
	}
	if m.relay != nil {
		opt.Bridge.Modern = m.relay
	}
	m.Upstream = opt.Draft.Caller(m.Upstream)
	opt.Bridge.Upstream, opt.Bridge.Prober, opt.Bridge.Draft = m.Upstream, m.Prober, opt.Draft.Active
	m.Bridge = bridge.New(opt.Bridge)
	m.HTTP = legacy.NewHTTP(opt.Legacy, m.Bridge)
	return m, nil
}

// dial makes what speaks to a server over HTTP.
func (m *Mount) dial(opt *Options) error {
	caller, err := upstream.NewHTTP(opt.Upstream)
	if err != nil {
		return err
	}
	m.Upstream = caller
	if opt.RefuseModern {
		return nil
	}
	endpoint, err := url.Parse(opt.Upstream.URL)
	if err != nil {
		return err // impossible: NewHTTP has parsed it
	}
	m.relay = passthrough.New(passthrough.Options{
		URL: endpoint, Header: opt.Upstream.Header, TLS: opt.Upstream.TLS, Dial: opt.Upstream.Dial, Log: opt.Upstream.Log,
	})
	return nil
}

// defaultMinTTL serves sessions that open in a burst from one discover, whatever
// its ttlMs says: clients that open a session per call would else double the
// upstream's load.
const defaultMinTTL = 5 * time.Second

// commandTimeout is how long a server that is a command may take to its first
// answer: many are fetched by a package runner at their start.
const commandTimeout = 25 * time.Second

// probeOptions fills in what Options leaves to the mount.
func probeOptions(opt *Options) negotiate.Options {
	probe := opt.Probe
	probe.Draft = opt.Draft.Version
	if probe.MinTTL == 0 {
		probe.MinTTL = defaultMinTTL
	}
	if probe.Timeout == 0 && opt.Caller != nil {
		probe.Timeout = commandTimeout
	}
	return probe
}

// Shutdown ends the endpoint: it stops taking requests, gives running calls
// until ctx to finish, then ends every session and closes the upstream.
func (m *Mount) Shutdown(ctx context.Context) error {
	err := m.HTTP.Shutdown(ctx)
	m.release()
	return err
}

// Close ends the endpoint at once.
func (m *Mount) Close() {
	m.HTTP.Close()
	m.release()
}

func (m *Mount) release() {
	m.Bridge.Close()
	_ = m.Upstream.Close() // it has nothing to report but what its calls did
	if m.relay != nil {
		m.relay.Close()
	}
}
