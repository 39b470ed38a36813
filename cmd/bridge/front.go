package main

import (
	"cmp"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/rs/zerolog"

	"github.com/mcpbridge/bridge/bridge"
	"github.com/mcpbridge/bridge/config"
	"github.com/mcpbridge/bridge/internal/dialect"
	"github.com/mcpbridge/bridge/internal/logfield"
	"github.com/mcpbridge/bridge/internal/mount"
	"github.com/mcpbridge/bridge/legacy"
	"github.com/mcpbridge/bridge/mrtr"
	"github.com/mcpbridge/bridge/sessions"
	"github.com/mcpbridge/bridge/translate"
	"github.com/mcpbridge/bridge/upstream"
)

// front is one mount at work, and what is known of its upstream.
type front struct {
	*mount.Mount
	settings config.Mount
	log      zerolog.Logger
	state    health
}

func newFront(cfg *config.Config, settings config.Mount, log zerolog.Logger) (*front, error) {
	f := &front{settings: settings}
	f.log = log.With().Str(logfield.Path, settings.Path).Str(logfield.Upstream, target(&settings)).Logger()
	options := mount.Options{
		Draft:        newDialect(&settings, f.log),
		Legacy:       legacyOptions(cfg, &settings, f.log),
		Bridge:       bridge.Options{Rules: translate.Rules{Profile: profile(settings.Profile)}, Limits: bridgeLimits(&settings), Log: f.log},
		RefuseModern: settings.Modern == "refuse",
	}
	var err error
	if len(settings.Command) > 0 {
		options.Caller, err = newCaller(&settings, options.Draft, f.log)
	} else {
		options.Upstream, err = upstreamOptions(&settings, f.log)
	}
	if err != nil {
		return nil, err
	}
	f.Mount, err = mount.New(options)
	return f, err
}

// newCaller makes the client of a mount's server, whichever way that is reached.
func newCaller(m *config.Mount, draft *dialect.Dialect, log zerolog.Logger) (upstream.Caller, error) {
	if len(m.Command) > 0 {
		return upstream.NewStdio(upstream.StdioOptions{
			Command: m.Command[0], Args: m.Command[1:], MaxLine: int(m.Limits.ResponseSize), Drafts: draft, Log: log,
		})
	}
	options, err := upstreamOptions(m, log)
	if err != nil {
		return nil, err
	}
	options.Drafts = draft
	return upstream.NewHTTP(options)
}

// newDialect makes what speaks to a mount's server if that speaks a draft.
func newDialect(m *config.Mount, log zerolog.Logger) *dialect.Dialect {
	return dialect.New(dialect.Options{
		Mode: dialect.Mode(m.Draft), WrapAnswers: m.DraftAnswers == "wrapped", Log: log,
	})
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
		MaxInFlight:    m.Limits.InFlight,
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
