package main

import (
	"context"
	"errors"
	"fmt"
	stdlog "log"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/mcpbridge/bridge/config"
	"github.com/mcpbridge/bridge/internal/gctune"
	"github.com/mcpbridge/bridge/legacy"
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
	}
	settings := addSettings(cmd, env.environ, func(key string) bool { return key != "command" })
	settings.addConfigFile(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		cfg, err := settings.load(args)
		if err != nil {
			return err
		}
		return serve(cmd.Context(), &cfg, env)
	}
	return cmd
}

// heapFloor is what the heap may grow to before it is collected, in bytes.
const heapFloor = 32 << 20

// serve runs until ctx ends and everything has stopped, or until something
// fails for good.
func serve(ctx context.Context, cfg *config.Config, env surroundings) error {
	gctune.Floor(heapFloor)
	log := newLogger(env.err, cfg.Log, env.environ)
	fronts, err := newFronts(cfg, log)
	if err != nil {
		return err
	}
	listener, err := listen(ctx, cfg)
	if err != nil {
		closeAll(fronts)
		return err
	}
	s := newService(cfg, fronts, log)
	banner(env.err, cfg, listener, &log)
	if env.started != nil {
		env.started(listener.Addr().String())
	}
	return s.run(ctx, listener)
}

func newFronts(cfg *config.Config, log zerolog.Logger) ([]*front, error) {
	var fronts []*front
	for _, mount := range cfg.Mounts() {
		f, err := newFront(cfg, mount, log)
		if err != nil {
			closeAll(fronts)
			return nil, fmt.Errorf("%s: %w", mount.Path, err)
		}
		fronts = append(fronts, f)
	}
	return fronts, nil
}

func closeAll(fronts []*front) {
	for _, f := range fronts {
		f.Close()
	}
}

// service is a listener's HTTP server and the fronts behind it.
type service struct {
	http   *http.Server
	fronts []*front
	ready  *readiness
	drain  time.Duration
	log    zerolog.Logger
}

// Bounds of the HTTP server that no setting changes: how long a client may take
// to send a request's head, and how long an unused connection is kept.
const (
	headTimeout = 10 * time.Second
	idleTimeout = 2 * time.Minute
)

func newService(cfg *config.Config, fronts []*front, log zerolog.Logger) *service {
	ready := &readiness{fronts: fronts}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", healthy)
	mux.Handle("GET /readyz", ready)
	for path, handler := range routes(fronts) {
		mux.Handle(path, handler)
	}
	return &service{
		fronts: fronts, ready: ready, drain: cfg.Timeouts.Drain, log: log,
		http: &http.Server{
			Handler:           mux,
			ReadHeaderTimeout: headTimeout,
			IdleTimeout:       idleTimeout,
			ConnContext:       legacy.ConnContext, // quiet streams give their goroutines up
			ErrorLog:          stdlog.New(connectionLog{log}, "", 0),
		},
	}
}

// routes gives each front its path and, unless another front has it, the paths
// of HTTP+SSE below it; a single front has those of the old servers, too.
func routes(fronts []*front) map[string]http.Handler {
	all := map[string]http.Handler{}
	for _, f := range fronts {
		all[f.settings.Path] = f
	}
	offer := func(base string, f *front) {
		events, messages := base+"/sse", base+"/messages"
		if all[events] == nil && all[messages] == nil {
			all[events], all[messages] = f.SSE(messages), f.Messages()
		}
	}
	for _, f := range fronts {
		offer(strings.TrimSuffix(f.settings.Path, "/"), f)
	}
	if len(fronts) == 1 {
		offer("", fronts[0])
	}
	return all
}

func (s *service) run(ctx context.Context, listener net.Listener) error {
	watching, stopWatching := context.WithCancel(ctx)
	var watchers errgroup.Group
	for _, f := range s.fronts {
		watchers.Go(func() error { f.watch(watching); return nil })
	}
	failed := make(chan error, 1)
	go func() { failed <- s.http.Serve(listener) }()
	var err error
	select {
	case err = <-failed:
		err = fmt.Errorf("the listener failed: %w", err)
	case <-ctx.Done():
	}
	stopWatching()
	return errors.Join(err, watchers.Wait(), s.stop())
}

// stop drains: new requests are refused, running ones get the time that the
// configuration allows, then everything ends.
func (s *service) stop() error {
	s.ready.stopping.Store(true)
	s.log.Info().Dur("drain", s.drain).Msg("stopping: running calls may finish; a second signal ends them at once")
	ctx, cancel := context.WithTimeout(context.Background(), s.drain)
	defer cancel()
	var fronts errgroup.Group
	for _, f := range s.fronts {
		fronts.Go(func() error { return f.Shutdown(ctx) })
	}
	err := fronts.Wait()
	if errors.Is(err, context.DeadlineExceeded) {
		s.log.Warn().Msg("the time to drain was over: running calls were cut off")
		err = nil
	}
	// The exchanges are over, so what is left are idle connections and health probes.
	if closing := s.http.Shutdown(ctx); closing != nil {
		_ = s.http.Close()
	}
	s.log.Info().Msg("stopped")
	return err
}

// connectionLog takes what net/http says about single connections, which is of
// interest only to somebody who looks for a fault.
type connectionLog struct{ log zerolog.Logger }

func (c connectionLog) Write(line []byte) (int, error) {
	c.log.Debug().Msg(strings.TrimSpace(string(line)))
	return len(line), nil
}
