package main

import (
	"cmp"
	"context"
	"net"
	"net/http"
	"os"
	"slices"
	"time"

	"github.com/rs/zerolog"

	"github.com/mcpbridge/bridge/bridge"
	"github.com/mcpbridge/bridge/config"
	"github.com/mcpbridge/bridge/internal/budget"
	"github.com/mcpbridge/bridge/internal/connlimit"
	"github.com/mcpbridge/bridge/internal/dialect"
	"github.com/mcpbridge/bridge/internal/edge"
	"github.com/mcpbridge/bridge/internal/mount"
	"github.com/mcpbridge/bridge/internal/rates"
	"github.com/mcpbridge/bridge/legacy"
	"github.com/mcpbridge/bridge/mrtr"
	"github.com/mcpbridge/bridge/negotiate"
	"github.com/mcpbridge/bridge/sessions"
	"github.com/mcpbridge/bridge/translate"
	"github.com/mcpbridge/bridge/upstream/stdio"
	"github.com/mcpbridge/bridge/upstream/streamable"
)

// open makes a mount as the settings say.
func open(cfg *config.Config, settings *config.Mount, with common, log zerolog.Logger) (*mount.Mount, error) {
	answers, err := with.pages.room(settings)
	if err != nil {
		return nil, err
	}
	options := mount.Options{
		Draft:  dialect.New(draftOptions(settings, log)),
		Legacy: legacyOptions(cfg, settings, log),
		Bridge: bridge.Options{Rules: rules(&settings.Policy), Limits: bridgeLimits(settings), Log: log,
			Ask: answers, Wait: settings.Questions.Wait, Patience: waitsFor(settings.Questions.Known())},
		Concurrency:       settings.Limits.Concurrency,
		Relay:             relayPolicy(settings),
		RefuseModern:      settings.Modern == "refuse",
		DropAuthorization: settings.Authorization == "drop",
	}
	with.admin.watch(settings, &options)
	with.kept.give(&options.Legacy, settings.Path)
	options.Bridge.Shared, options.Bridge.Peers = with.kept.up != nil, with.kept.replica != nil
	options.Legacy.Memory, options.Servers = with.memory, with.servers
	options.Probe.Timeout, options.Probe.Setting = firstAnswer(settings)
	if len(settings.Command) > 0 {
		options.Command = command(settings, log)
		options.Command.Stdio.Sole, options.Command.Stdio.Tell = with.sole, with.sole
	} else if options.Upstream, err = upstreamOptions(settings, log); err != nil {
		return nil, err
	} else {
		options.Legacy.Endless, options.Bridge.Endless = with.endless, with.endless
		options.Upstream.MaxIdle = idle(connlimit.Descriptors(), servers(cfg))
		options.Concurrency = atServer(settings, connlimit.Descriptors(), servers(cfg), log)
	}
	options.Upstream.StandardTransport = standardHTTP(cfg)
	if options.SignIn, err = signIn(settings, options.Watch, log); err != nil {
		return nil, err
	}
	if options.Behalf, err = onBehalf(settings, options.Watch, log); err != nil {
		return nil, err
	}
	if options.Resource, err = protected(cfg, settings, options.Watch, with, log); err != nil {
		return nil, err
	}
	return mount.New(options)
}

// standardHTTP reports whether net/http speaks on both hops.
func standardHTTP(cfg *config.Config) bool { return cfg.HTTP == "standard" }

// memory is the budget of the process.
func memory(cfg *config.Config, log zerolog.Logger) *budget.Budget {
	size := cmp.Or(int64(cfg.Limits.Memory), budget.Available())
	if size == 0 {
		log.Warn().Msg("how much memory there is cannot be found out; set limits.memory")
	}
	return budget.Of(size)
}

// endless is how many connections to servers there may be that last as long as a client or its
// session likes: a third of the file descriptors. The others are for clients, and for calls.
func endless() *budget.Places { return budget.NewPlaces(max(1, connlimit.Descriptors()/3)) }

// atServer is how many requests may be at a mount's server at the same time. Each may take a
// connection, and so a file descriptor, of its own, and they come over few connections: with
// as many turns as the table has descriptors one client takes them all, and nobody is
// accepted, heard or answered any more. So all mounts together have a third of the table, as
// what is endless has one, and the last third is for clients, files and listeners. Of the
// turns one principal, or one address, gets half at most.
func atServer(m *config.Mount, descriptors, servers int, log zerolog.Logger) int {
	room := max(1, descriptors/3/max(1, servers))
	if room < m.Limits.Concurrency {
		log.Warn().Int("limit", m.Limits.Concurrency).Int("room", room).
			Msg("this process has too few file descriptors (ulimit -n) for limits.concurrency: fewer requests are at the server at the same time")
	}
	return min(room, m.Limits.Concurrency)
}

// idle is how many connections to a mount's server may wait for the next request, on each of the three
// ways there (translated, passed through, relayed). One client can have each of them busy, one after the other.
func idle(descriptors, servers int) int {
	return min(streamable.DefaultMaxIdle, max(1, descriptors/24/max(1, servers)))
}

// servers is how many mounts reach their servers over connections.
func servers(cfg *config.Config) (n int) {
	for _, m := range cfg.Mounts() {
		if len(m.Command) == 0 {
			n++
		}
	}
	return n
}

// command is how a mount's server is run.
func command(m *config.Mount, log zerolog.Logger) *mount.Command {
	c := &mount.Command{Stdio: stdio.Options{
		Command: m.Command[0], Args: m.Command[1:], Environ: environment(os.Environ(), m.CommandEnv),
		MaxLine: int(m.Limits.ResponseSize), Ping: m.Timeouts.Ping, Log: log,
	}, Children: m.Limits.Children}
	if m.CommandMode == "per-session" {
		c.PerSession = m.Limits.Children
	}
	return c
}

func relayPolicy(m *config.Mount) negotiate.RelayPolicy {
	switch m.LegacyRelay {
	case "always":
		return negotiate.RelayAlways
	case "never":
		return negotiate.RelayNever
	}
	return negotiate.RelayAuto
}

// draftOptions say how to speak to a mount's server if that speaks a draft.
func draftOptions(m *config.Mount, log zerolog.Logger) dialect.Options {
	return dialect.Options{Mode: dialect.Mode(m.Draft), WrapAnswers: m.DraftAnswers == "wrapped", Log: log}
}

func upstreamOptions(m *config.Mount, log zerolog.Logger) (streamable.Options, error) {
	tlsConfig, err := clientTLS(&m.UpstreamTLS)
	if err != nil {
		return streamable.Options{}, err
	}
	header := http.Header{}
	for name, value := range m.Headers {
		header.Set(name, value)
	}
	return streamable.Options{
		URL:         m.Upstream,
		Header:      header,
		TLS:         tlsConfig,
		Dial:        dialer(m),
		MaxResponse: int(m.Limits.ResponseSize),
		DialTimeout: m.Timeouts.Connect,
		UserAgent:   "mcp-bridge/" + versionText(),
		Log:         log,
	}, nil
}

// dialer connects to the Unix socket that a mount names, whatever its URL says;
// nil when it names none.
func dialer(m *config.Mount) func(ctx context.Context, network, address string) (net.Conn, error) {
	if m.UpstreamSocket == "" {
		return nil
	}
	dialer := &net.Dialer{Timeout: m.Timeouts.Connect}
	return func(ctx context.Context, _, _ string) (net.Conn, error) {
		return dialer.DialContext(ctx, "unix", m.UpstreamSocket)
	}
}

func bridgeLimits(m *config.Mount) bridge.Limits {
	return bridge.Limits{
		Flow: mrtr.Limits{
			Rounds:    m.Limits.Rounds,
			StateOnly: m.Limits.StateOnlyRounds,
			State:     int(m.Limits.RequestState),

			Call:          m.Timeouts.Flow,
			Round:         m.Timeouts.Round,
			ServerRequest: m.Timeouts.ServerRequest,
			Heartbeat:     m.Timeouts.Heartbeat,
			Grace:         m.Timeouts.Grace,
		},
		FlowsPerSession: m.Limits.Flows,
		Declaration:     int(m.Limits.Declaration),
		Subscriptions:   m.Limits.Subscriptions,
		Listens:         m.Limits.Listens,
	}
}

func legacyOptions(cfg *config.Config, m *config.Mount, log zerolog.Logger) legacy.Options {
	claim, tierHeader := m.Rates.TierBy()
	return legacy.Options{
		AllowedHosts:   allowedHosts(cfg),
		AllowedOrigins: cfg.AllowedOrigins,
		Rates:          rates.New(rateOptions(m)),
		TierClaim:      claim,
		TierHeader:     tierHeader,
		MaxBody:        int64(m.Limits.MessageSize),
		MaxBatch:       m.Limits.Batch,
		MaxSessions:    m.Limits.Sessions,
		MaxStreams:     m.Limits.Streams,
		MaxPending:     m.Limits.Pending,
		MaxInFlight:    m.Limits.InFlight,
		Log:            sessions.Limits{Events: m.Limits.Events, Bytes: int(m.Limits.EventBytes)},
		CommitDelay:    m.Timeouts.Commit,
		Poll:           m.Timeouts.Poll,
		PollPause:      m.Timeouts.PollPause,
		Unload:         cfg.Store.Unload,
		MaxUnloaded:    m.Limits.Flows,
		KeepAlive:      m.Timeouts.KeepAlive,
		IdleTimeout:    m.Timeouts.SessionIdle,
		Retention:      m.Timeouts.Retention,
		WriteTimeout:   m.Timeouts.Write,
		RequireSession: m.Session == "required",
		AlwaysStream:   m.Legacy.AlwaysStream == "on",
		NoPark:         cfg.Park == "off",
		Logger:         log,
	}
}

// rateOptions are the rates of a mount, which were found right.
func rateOptions(m *config.Mount) rates.Options {
	r := &m.Rates
	rate := func(text string) rates.Rate {
		perSecond, burst, _ := config.ParseRate(text)
		return rates.Rate{PerSecond: perSecond, Burst: burst}
	}
	factors, _ := r.Factors()
	return rates.Options{
		Session: rate(r.Session), Principal: rate(r.Principal), Address: rate(r.Address), Factor: factors,
		AtOnce: rates.AtOnce{Principal: m.Limits.InFlightPrincipal, Address: m.Limits.InFlightAddress},
	}
}

// noteHosts says, once at the start, that requests are taken whatever they call the bridge.
func noteHosts(cfg *config.Config, log *zerolog.Logger) {
	if len(cfg.AllowedHosts) == 0 && !edge.IsLoopback(cfg.Listen) {
		log.Info().Str("listen", cfg.Listen).
			Msg("any host name is taken, since allowed-hosts is empty and the bridge does not listen on loopback: list the names that clients use to have requests with others refused")
	}
}

// allowedHosts opens a bridge that does not listen on loopback to any host
// name, unless the configuration names some: DNS rebinding is an attack on
// servers that only the victim's own machine can reach.
func allowedHosts(cfg *config.Config) []string {
	public := publicHosts(cfg)
	switch {
	case len(cfg.AllowedHosts) > 0:
		return slices.Concat(cfg.AllowedHosts, public)
	case !edge.IsLoopback(cfg.Listen):
		return []string{"*"}
	case len(public) > 0:
		return append(public, "localhost", "127.0.0.1", "::1")
	}
	return nil
}

// rules says how results are brought down for the clients of a mount.
func rules(p *config.Policy) translate.Rules {
	return translate.Rules{
		Profile:           profile(p.Profile),
		DropNonObject:     p.NonObject == "drop",
		CancelMultiSelect: p.MultiSelect == "cancel",
		HostTasks:         p.Tasks == "host",
	}
}

func profile(name string) translate.Profile {
	if name == "minimal" {
		return translate.Minimal
	}
	return translate.Strict
}

// firstAnswer is how long a server may take to say what it is, and the setting that says so.
func firstAnswer(m *config.Mount) (time.Duration, string) {
	if len(m.Command) > 0 {
		return m.Timeouts.Start, "timeouts.start"
	}
	return m.Timeouts.Discover, "timeouts.discover"
}
