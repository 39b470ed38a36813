package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"github.com/mcpbridge/bridge/config"
	"github.com/mcpbridge/bridge/internal/edge"
	"github.com/mcpbridge/bridge/internal/fleet"
	"github.com/mcpbridge/bridge/internal/gctune"
	"github.com/mcpbridge/bridge/internal/resource"
	"github.com/mcpbridge/bridge/internal/vouch"
)

func newServe(env surroundings) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "serve [flags] (--upstream URL | -- COMMAND [ARGUMENT…])",
		Short: "Serve clients over HTTP",
		Long: `serve accepts legacy clients over HTTP and connects them to a modern server: one
that listens at a URL, or one that it starts as a command. Clients come over
Streamable HTTP, HTTP+SSE or WebSocket.

Every setting of the configuration is a flag: besides those listed below there
are --timeouts.… and --limits.…, which ` + "`bridge config docs`" + ` lists.`,
		Example: "  bridge serve --upstream https://mcp.example.com/mcp\n  bridge serve --config bridge.yaml --listen :8080\n  bridge serve -- my-server --verbose",
		Args:    commandOnly,

		Annotations: map[string]string{takesCommand: "bridge serve -- my-server"},
	}
	settings := addSettings(cmd, env.environ, func(key string) bool { return key != "command" })
	settings.addConfigFile(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		load := func() (config.Config, error) { return settings.load(args) }
		cfg, err := reading(load)
		if err != nil {
			return err
		}
		if settings.file == "" && isTerminal(env.err) {
			load = nil // there is nothing to read again, and a closed terminal should end the program
		}
		return serve(cmd.Context(), &cfg, load, env)
	}
	return cmd
}

// serve runs until ctx ends and everything has stopped, or until something
// fails for good. On SIGHUP it obeys what load then returns; load may be nil.
func serve(ctx context.Context, cfg *config.Config, load func() (config.Config, error), env surroundings) error {
	gctune.Floor(uint64(cfg.HeapFloor), cfg.HugePages == "on")
	outliveReaders()
	log := newLogger(env.err, cfg.Log, env.environ)
	hangUp := obeysHangUp(env.hangUp, load != nil)
	defer signal.Stop(hangUp)
	s, err := reading(func() (*service, error) { return newService(ctx, cfg, env.environ, log) })
	if err != nil {
		return explained(append(looks(cfg, env.environ), storeLook(cfg.Store)), err)
	}
	defer s.with.close()
	noteHosts(cfg, &log)
	s.load, s.hangUp = load, hangUp
	banner(env.err, cfg, s.edge.Addr(), s.with.admin, &log)
	if env.started != nil {
		env.started(s.edge.Addr().String())
	}
	return s.run(ctx)
}

// service is a listener and the mounts behind it.
type service struct {
	edge  *edge.Edge
	fleet *fleet.Fleet
	with  common
	log   zerolog.Logger

	// What a reload needs; cfg is what is obeyed at present.
	cfg    config.Config
	load   func() (config.Config, error)
	hangUp chan os.Signal
	// reading counts the reloads that have not ended, those that nobody waits for among them.
	reading atomic.Int32
}

func newService(ctx context.Context, cfg *config.Config, environ []string, log zerolog.Logger) (*service, error) {
	admin, err := newAdministration(ctx, cfg, environ, log)
	if err != nil {
		return nil, err
	}
	with := common{admin: admin, pages: newDesks(edge.IsLoopback(cfg.Listen), environ, log), memory: memory(cfg, log), endless: endless()}
	if with.kept, err = openKeeping(ctx, cfg, log); err != nil {
		with.close()
		return nil, err
	}
	with.servers, with.keys = vouch.NewServers(with.kept.store, log), resource.NewKeys()
	with.pages.others = pagesElsewhere{with.kept.replica, with.kept.id, with.memory}
	mounts, err := fleet.Open(specs(cfg, with, log), fleetOptions(cfg, &with.kept, log))
	if err != nil {
		with.close()
		return nil, err
	}
	door, err := edge.Open(ctx, with.pages.before(mounts), edge.Options{
		Listen: cfg.Listen, TLS: edge.Files(cfg.TLS), Proxies: proxies(cfg, log), StandardHTTP: standardHTTP(cfg),
		Memory: with.memory, Log: log,
	})
	if err != nil {
		mounts.Close()
		with.close()
		return nil, err
	}
	return &service{edge: door, fleet: mounts, with: with, log: log, cfg: *cfg}, nil
}

func proxies(cfg *config.Config, log zerolog.Logger) edge.Proxies {
	for _, note := range cfg.ProxyNotes() {
		log.Warn().Msg(note)
	}
	networks, unix := cfg.ProxyNetworks()
	return edge.Proxies{Networks: networks, Unix: unix, Protocol: cfg.ProxyProtocol == "on"}
}

func (s *service) run(ctx context.Context) error {
	s.fleet.Watch()
	s.with.admin.serve(s.fleet, s.with.memory, &s.with.kept)
	s.with.kept.serve(s.fleet, s.with.pages)
	failed := make(chan error, 1)
	go func() { failed <- s.edge.Serve() }()
	var err error
	var under *reloading // nil: none is under way
	for ctx.Err() == nil && err == nil {
		// A reload may hang on a file: nothing here waits for it, and once it has taken long, neither does the next one.
		hangUp := s.hangUp
		if under.slow() != nil {
			hangUp = nil
		}
		select {
		case err = <-failed:
			err = fmt.Errorf("the listener failed: %w", err)
		case <-hangUp:
			under.abandon()
			under = s.reload()
		case r := <-under.outcome():
			s.obey(r)
			under = nil
		case <-under.slow():
			under.takesLong = nil
			s.log.Warn().Msg("the reload takes long: one of the files that it reads hangs, perhaps; nothing has changed yet, and the next SIGHUP begins anew")
		case <-ctx.Done():
		}
	}
	given := under.abandon()
	err = errors.Join(err, s.stop())
	select {
	case <-given:
	case <-time.After(atLeast): // it hangs, and ends with the process
	}
	return err
}

// linger is how long a replica that stops, and has nothing to do any more, goes on handing
// requests on: for balancers that look now and then whether it is ready, and that have
// connections to it which they may be about to use.
const linger = 2 * time.Second

// stop drains: new requests are refused, running ones get the time that the
// configuration allows, then everything ends.
func (s *service) stop() error {
	drain := s.cfg.Timeouts.Drain
	s.log.Info().Dur("drain", drain).Msg("stopping: running calls may finish; a second signal ends them at once")
	ctx, cancel := context.WithTimeout(context.Background(), drain)
	defer cancel()
	err := s.fleet.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		s.log.Warn().Msg("the time to drain was over: running calls were cut off")
		err = nil
	}
	if s.with.kept.others() {
		s.edge.Leave(context.Background(), linger, s.with.kept.replica.EndStreams)
	}
	s.hangUpOn(ctx)
	s.log.Info().Msg("stopped")
	return err
}

// Calls that the end of the drain has ended are answered by then, but what is written leaves with
// the end of its handler, which may have yet to run. lastWords is how long after the drain that may
// take at most; atLeast is for a machine that has much to do.
const (
	lastWords = time.Second
	atLeast   = 250 * time.Millisecond
)

// hangUpOn ends the connections of clients, those that are used when their response is over: within the
// time to drain, and a moment more.
func (s *service) hangUpOn(drain context.Context) {
	until := time.Now().Add(atLeast)
	if over, bounded := drain.Deadline(); bounded && over.Add(lastWords).After(until) {
		until = over.Add(lastWords)
	}
	ctx, cancel := context.WithDeadline(context.Background(), until)
	defer cancel()
	s.edge.Shutdown(ctx)
}
