package main

import (
	"context"
	"errors"
	"fmt"
	stdlog "log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/mcpbridge/bridge/config"
	"github.com/mcpbridge/bridge/internal/gctune"
	"github.com/mcpbridge/bridge/legacy"
	"github.com/mcpbridge/bridge/legacy/h1"
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
		load := func() (config.Config, error) { return settings.load(args) }
		cfg, err := load()
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

// heapFloor is what the heap may grow to before it is collected, in bytes.
const heapFloor = 32 << 20

// serve runs until ctx ends and everything has stopped, or until something
// fails for good. On SIGHUP it obeys what load then returns; load may be nil.
func serve(ctx context.Context, cfg *config.Config, load func() (config.Config, error), env surroundings) error {
	gctune.Floor(heapFloor)
	log := newLogger(env.err, cfg.Log, env.environ)
	fronts, err := newFronts(cfg, log)
	if err != nil {
		return err
	}
	s := newService(cfg, fronts, log)
	listener, certificate, err := listen(ctx, cfg, log, func(l net.Listener) net.Listener { return &proxied{l, s.addresses, log} })
	if err != nil {
		closeAll(fronts)
		return err
	}
	s.certificate, s.load = certificate, load
	if load != nil {
		signal.Notify(s.hangUp, syscall.SIGHUP)
		defer signal.Stop(s.hangUp)
	}
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
			return nil, mountError(mount.Path, err)
		}
		fronts = append(fronts, f)
	}
	return fronts, nil
}

func mountError(path string, err error) error { return fmt.Errorf("%s: %w", path, err) }

func closeAll(fronts []*front) {
	for _, f := range fronts {
		f.Close()
	}
}

// service is a listener's HTTP server and the fronts behind it.
type service struct {
	http        *http.Server
	lean        *h1.Server // in front of http, but for TLS
	board       *board
	addresses   *addresses
	certificate *reloader // nil for plain HTTP
	unused      unused
	log         zerolog.Logger

	// What a reload needs; cfg is what is obeyed at present.
	cfg    config.Config
	load   func() (config.Config, error)
	hangUp chan os.Signal
}

// Bounds of the HTTP server that no setting changes: how long a client may take
// to send a request's head, and how long an unused connection is kept.
const (
	headTimeout = 10 * time.Second
	idleTimeout = 2 * time.Minute
)

func newService(cfg *config.Config, fronts []*front, log zerolog.Logger) *service {
	s := &service{board: newBoard(fronts, log), log: log, cfg: *cfg, hangUp: make(chan os.Signal, 1)}
	s.addresses = newAddresses(cfg, s.board, log)
	s.http = &http.Server{
		ReadHeaderTimeout: headTimeout,
		IdleTimeout:       idleTimeout,
		ErrorLog:          stdlog.New(connectionLog{log}, "", 0),
		ConnContext:       legacy.ConnContext, // quiet streams give their goroutines up
		ConnState:         s.unused.note,
		Protocols:         new(http.Protocols),
	}
	s.http.Protocols.SetHTTP1(true)
	s.http.Protocols.SetHTTP2(true)
	s.http.Protocols.SetUnencryptedHTTP2(true) // as proxies in a pod speak it
	s.lean = h1.New(s.addresses, s.http)
	return s
}

func (s *service) run(ctx context.Context, listener net.Listener) error {
	for _, f := range s.board.fronts() {
		f.watch()
	}
	failed := make(chan error, 1)
	serve := s.lean.Serve
	if s.certificate != nil {
		serve = s.http.Serve
	}
	go func() { failed <- serve(listener) }()
	var err error
	for ctx.Err() == nil && err == nil {
		select {
		case err = <-failed:
			err = fmt.Errorf("the listener failed: %w", err)
		case <-s.hangUp:
			s.reload()
		case <-ctx.Done():
		}
	}
	return errors.Join(err, s.stop())
}

// stop drains: new requests are refused, running ones get the time that the
// configuration allows, then everything ends.
func (s *service) stop() error {
	drain := s.cfg.Timeouts.Drain
	s.board.ready.stopping.Store(true)
	s.log.Info().Dur("drain", drain).Msg("stopping: running calls may finish; a second signal ends them at once")
	ctx, cancel := context.WithTimeout(context.Background(), drain)
	defer cancel()
	var fronts errgroup.Group
	for _, f := range s.board.all() {
		fronts.Go(func() error { return f.Shutdown(ctx) })
	}
	err := fronts.Wait()
	if errors.Is(err, context.DeadlineExceeded) {
		s.log.Warn().Msg("the time to drain was over: running calls were cut off")
		err = nil
	}
	// The exchanges are over, so what is left are modern ones, idle connections and health probes.
	s.unused.close()
	if closing := s.lean.Shutdown(ctx); closing != nil {
		_ = s.lean.Close()
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
