package main

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"

	"github.com/rs/zerolog"

	"github.com/mcpbridge/bridge/config"
	"github.com/mcpbridge/bridge/internal/edge"
	"github.com/mcpbridge/bridge/internal/fleet"
	"github.com/mcpbridge/bridge/observe"
	"github.com/mcpbridge/bridge/observe/admin"
	"github.com/mcpbridge/bridge/observe/metrics"
)

// administration is the listener for the people who run the bridge, and what is shown
// there. Without one nothing is counted: the nil administration.
type administration struct {
	metrics *metrics.Registry
	aside   *edge.Aside
	guard   admin.Options
	address string // to open in a browser; holds the token if that was made here
	log     zerolog.Logger
}

// newAdministration opens the admin listener, and returns nil when none is wanted.
// Nothing is served before serve.
func newAdministration(ctx context.Context, cfg *config.Admin, log zerolog.Logger) (*administration, error) {
	if cfg.Listen == "" {
		return nil, nil
	}
	token, err := admin.NewToken(cfg.TokenFile)
	if err != nil {
		return nil, err
	}
	aside, err := edge.OpenAside(ctx, "admin", cfg.Listen, edge.Files(cfg.TLS), log)
	if err != nil {
		return nil, err
	}
	return &administration{
		metrics: metrics.NewRegistry(versionText()), aside: aside, log: log, address: adminAddress(cfg, aside.Addr(), &token),
		guard: admin.Options{Token: token, Cookie: cookieName(aside.Addr()), TLS: cfg.TLS.Cert != "", Named: aside.Names},
	}, nil
}

// watcher returns what takes the reports of the mount at a path; nil when nobody wants them.
func (a *administration) watcher(path string) observe.Watcher {
	if a == nil {
		return nil
	}
	return a.metrics.Mount(path)
}

// serve shows what the mounts of a fleet do, until stop.
func (a *administration) serve(mounts *fleet.Fleet) {
	if a == nil {
		return
	}
	a.metrics.Look(func() []metrics.State { return states(mounts) })
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", a.metrics.Handler())
	a.guard.Inside = mux
	go func() {
		if err := a.aside.Serve(admin.NewGuard(a.guard)); !errors.Is(err, http.ErrServerClosed) {
			a.log.Error().Err(err).Msg("the admin listener failed")
		}
	}()
}

// stop ends the listener.
func (a *administration) stop() {
	if a != nil {
		a.aside.Shutdown()
	}
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

// cookieName tells the listeners of one machine apart, whose cookies browsers mix.
func cookieName(at net.Addr) string {
	_, port, _ := net.SplitHostPort(at.String())
	return "mcp_bridge_admin_" + port
}
