package main

import (
	"cmp"
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/rs/zerolog"

	"github.com/mcpbridge/bridge/bridge"
	"github.com/mcpbridge/bridge/config"
	"github.com/mcpbridge/bridge/internal/logfield"
	"github.com/mcpbridge/bridge/internal/passthrough"
	"github.com/mcpbridge/bridge/legacy"
	"github.com/mcpbridge/bridge/mrtr"
	"github.com/mcpbridge/bridge/negotiate"
	"github.com/mcpbridge/bridge/sessions"
	"github.com/mcpbridge/bridge/translate"
	"github.com/mcpbridge/bridge/upstream"
)

// front is one mount at work: the server that clients see, the bridge behind it
// and the client of the real server.
type front struct {
	mount  config.Mount
	log    zerolog.Logger
	caller upstream.Caller
	prober *negotiate.Prober
	bridge *bridge.Bridge
	server *legacy.HTTP
	state  health
	idle   func() // closes the idle connections of the pass-through
}

func newFront(cfg *config.Config, mount config.Mount, log zerolog.Logger) (*front, error) {
	f := &front{mount: mount, prober: negotiate.NewProber(negotiate.Options{})}
	f.log = log.With().Str(logfield.Path, mount.Path).Str(logfield.Upstream, target(&mount)).Logger()
	options, err := upstreamOptions(&mount, f.log)
	if err != nil {
		return nil, err
	}
	caller, err := upstream.NewHTTP(options)
	if err != nil {
		return nil, err
	}
	f.caller = caller
	f.bridge = bridge.New(bridge.Options{
		Upstream: caller,
		Prober:   f.prober,
		Modern:   f.modern(&options),
		Profile:  profile(mount.Profile),
		Limits:   bridgeLimits(&mount),
		Log:      f.log,
	})
	f.server = legacy.NewHTTP(legacyOptions(cfg, &mount, f.log), f.bridge)
	return f, nil
}

// shutdown lets calls under way finish until ctx ends, then closes everything.
func (f *front) shutdown(ctx context.Context) error {
	err := f.server.Shutdown(ctx)
	f.bridge.Close()
	f.idle()
	return errors.Join(err, f.caller.Close())
}

// close ends everything at once.
func (f *front) close() {
	f.server.Close()
	f.bridge.Close()
	f.idle()
	_ = f.caller.Close()
}

// modern returns the handler of modern requests, nil when they are refused.
func (f *front) modern(o *upstream.HTTPOptions) http.Handler {
	f.idle = func() {}
	if f.mount.Modern != "pass" {
		return nil
	}
	endpoint, err := url.Parse(o.URL)
	if err != nil {
		return nil // upstream.NewHTTP has refused such a URL
	}
	transport := &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         (&net.Dialer{Timeout: o.DialTimeout}).DialContext,
		TLSClientConfig:     o.TLS,
		TLSHandshakeTimeout: o.DialTimeout,
		MaxIdleConnsPerHost: upstream.DefaultMaxIdle,
		IdleConnTimeout:     upstream.DefaultIdleTimeout,
		DisableCompression:  true,
		ForceAttemptHTTP2:   true,
	}
	f.idle = transport.CloseIdleConnections
	return passthrough.New(passthrough.Options{URL: endpoint, Header: o.Header, Transport: transport, Log: f.log})
}

// target names a mount's server for logs and messages: the URL without its
// query, or the name of the command.
func target(m *config.Mount) string {
	if m.Upstream == "" {
		return filepath.Base(strings.Join(m.Command[:min(1, len(m.Command))], ""))
	}
	u, err := url.Parse(m.Upstream)
	if err != nil {
		return "(invalid URL)"
	}
	return u.Scheme + "://" + u.Host + cmp.Or(u.EscapedPath(), "/")
}

func upstreamOptions(m *config.Mount, log zerolog.Logger) (upstream.HTTPOptions, error) {
	tlsConfig, err := clientTLS(&m.UpstreamTLS)
	if err != nil {
		return upstream.HTTPOptions{}, err
	}
	header := http.Header{}
	for name, value := range m.Headers {
		header.Set(name, value)
	}
	return upstream.HTTPOptions{
		URL:         m.Upstream,
		Header:      header,
		TLS:         tlsConfig,
		MaxResponse: int(m.Limits.ResponseSize),
		DialTimeout: m.Timeouts.Connect,
		UserAgent:   "mcp-bridge/" + versionText(),
		Log:         log,
	}, nil
}

func bridgeLimits(m *config.Mount) bridge.Limits {
	return bridge.Limits{
		Flow: mrtr.Limits{
			Rounds:    m.Limits.Rounds,
			StateOnly: m.Limits.StateOnlyRounds,
			State:     int(m.Limits.RequestState),
		},
		FlowsPerSession: m.Limits.Flows,
		Subscriptions:   m.Limits.Subscriptions,
		ServerRequest:   m.Timeouts.ServerRequest,
		Round:           m.Timeouts.Round,
		Call:            m.Timeouts.Flow,
		Heartbeat:       m.Timeouts.Heartbeat,
	}
}

func legacyOptions(cfg *config.Config, m *config.Mount, log zerolog.Logger) legacy.Options {
	return legacy.Options{
		AllowedHosts:   allowedHosts(cfg),
		AllowedOrigins: cfg.AllowedOrigins,
		MaxBody:        int64(m.Limits.MessageSize),
		MaxBatch:       m.Limits.Batch,
		MaxSessions:    m.Limits.Sessions,
		MaxStreams:     m.Limits.Streams,
		MaxPending:     m.Limits.Pending,
		Log:            sessions.Limits{Events: m.Limits.Events, Bytes: int(m.Limits.EventBytes)},
		CommitDelay:    m.Timeouts.Commit,
		KeepAlive:      m.Timeouts.KeepAlive,
		IdleTimeout:    m.Timeouts.SessionIdle,
		Retention:      m.Timeouts.Retention,
		WriteTimeout:   m.Timeouts.Write,
		RequireSession: m.Session == "required",
		Logger:         log,
	}
}

// allowedHosts opens a bridge that does not listen on loopback to any host
// name, unless the configuration names some: DNS rebinding is an attack on
// servers that only the victim's own machine can reach.
func allowedHosts(cfg *config.Config) []string {
	if len(cfg.AllowedHosts) > 0 || isLoopback(cfg.Listen) {
		return cfg.AllowedHosts
	}
	return []string{"*"}
}

func profile(name string) translate.Profile {
	if name == "minimal" {
		return translate.Minimal
	}
	return translate.Strict
}
