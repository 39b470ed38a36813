package main

import (
	"crypto/sha256"

	"github.com/rs/zerolog"

	"github.com/mcpbridge/bridge/config"
	"github.com/mcpbridge/bridge/internal/budget"
	"github.com/mcpbridge/bridge/internal/fleet"
	"github.com/mcpbridge/bridge/internal/logfield"
	"github.com/mcpbridge/bridge/internal/mount"
	"github.com/mcpbridge/bridge/internal/resource"
	"github.com/mcpbridge/bridge/internal/smallfile"
	"github.com/mcpbridge/bridge/internal/vouch"
	"github.com/mcpbridge/bridge/legacy/web"
)

// common is what all mounts of a process share.
type common struct {
	admin  *administration // nil without one
	pages  *desks
	kept   keeping
	memory *budget.Budget // nil: without bounds
	// servers and keys are what the process has learnt of servers and issuers, which a reload does not
	// change; nil: each mount learns for itself.
	servers *vouch.Servers
	keys    *resource.Keys
	// endless is what all that is at servers without a turn shares; nil: without bounds.
	endless *budget.Places
	sole    bool // there is one client, over standard input and output
}

// close ends what the mounts shared, after them.
func (c *common) close() {
	c.pages.stop()
	c.admin.stop()
	c.kept.close()
}

// specs say how to make the mounts of a configuration.
func specs(cfg *config.Config, with common, log zerolog.Logger) []fleet.Spec {
	var list []fleet.Spec
	for _, m := range cfg.Mounts() {
		list = append(list, spec(cfg, m, with, log))
	}
	return list
}

func spec(cfg *config.Config, m config.Mount, with common, log zerolog.Logger) fleet.Spec {
	log = logfield.Apart(log.With().Str(logfield.Path, m.Path).Str(logfield.Upstream, target(&m)).Logger())
	return fleet.Spec{
		Path: m.Path, Target: target(&m), Identity: identify(cfg, &m), Callers: callers{m.UpstreamSocket, m.Authorization, m.Auth}, Log: log,
		Open: func() (*mount.Mount, error) { return open(cfg, &m, with, log) },
	}
}

func fleetOptions(cfg *config.Config, kept *keeping, log zerolog.Logger) fleet.Options {
	return fleet.Options{SSE: config.SSEPaths, Host: web.HostAllowed(allowedHosts(cfg)), Degraded: kept.degraded, Log: log}
}

// identity is everything that a mount was made from: one with an equal identity
// need not be made anew.
type identity struct {
	settings config.Mount
	hosts    []string
	origins  []string
	files    [sha256.Size]byte // the contents of those that settings name
}

// callers is by what a mount knows who calls, and what becomes of their credentials. Which server on a socket
// answers is told by nothing else.
type callers struct {
	socket        string
	authorization string
	auth          config.Auth
}

func identify(cfg *config.Config, m *config.Mount) identity {
	settings := *m
	// These are the process's, and obeyed at once.
	settings.Timeouts.Drain, settings.Timeouts.Handover, settings.Limits.Memory = 0, 0, 0
	if settings.Roots.Any() { // which they are does not matter here: cmd/bridge/roots.go
		settings.Roots = config.Roots{List: []string{""}}
	}
	digest := sha256.New()
	for _, name := range []string{m.UpstreamTLS.CA, m.UpstreamTLS.CAOnly, m.UpstreamTLS.Cert, m.UpstreamTLS.Key, m.Sampling.KeyFile, m.Auth.ClientSecretFile, m.Auth.ClientKey} {
		text, _ := smallfile.Read(name) // a missing file fails the front itself
		sum := sha256.Sum256(text)
		digest.Write(sum[:])
	}
	return identity{settings, allowedHosts(cfg), cfg.AllowedOrigins, [sha256.Size]byte(digest.Sum(nil))}
}
