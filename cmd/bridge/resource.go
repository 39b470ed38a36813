package main

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/url"

	"github.com/rs/zerolog"

	"github.com/mcpbridge/bridge/config"
	"github.com/mcpbridge/bridge/internal/resource"
	"github.com/mcpbridge/bridge/internal/smallfile"
	"github.com/mcpbridge/bridge/legacy/web"
	"github.com/mcpbridge/bridge/observe"
)

// protected is a mount's endpoint as clients see it that sign in; nil: they cannot,
// for their tokens would reach nobody.
func protected(cfg *config.Config, m *config.Mount, watch observe.Watcher, with common, log zerolog.Logger) (*resource.Resource, error) {
	if m.Auth.Mode == "terminate" {
		return checked(m, with.keys, log)
	}
	if m.Auth.Mode != "relay" || m.Authorization != "relay" || m.Upstream == "" || hasAuthorization(m.Headers) {
		return nil, nil
	}
	tlsConfig, err := clientTLS(&m.UpstreamTLS)
	if err != nil {
		return nil, err
	}
	return resource.Relay(resource.RelayOptions{
		Server: m.Upstream, Path: m.Path, Public: m.PublicURL, Log: log,
		Servers: resourceClient(m, tlsConfig), Issuers: issuerClient(m, tlsConfig),
		Admit: web.NewGuard(allowedHosts(cfg), cfg.AllowedOrigins, watch, log).Admit,
		Party: func(r *http.Request) string { return web.Stranger(r.RemoteAddr) }, Memory: with.memory,
	}), nil
}

// checked is an endpoint at which clients' tokens end.
func checked(m *config.Mount, keys *resource.Keys, log zerolog.Logger) (*resource.Resource, error) {
	tlsConfig, err := clientTLS(&m.UpstreamTLS)
	if err != nil {
		return nil, err
	}
	return resource.Check(resource.CheckOptions{
		Path: m.Path, Public: m.PublicURL, Issuer: m.Auth.Clients.Issuer, Audience: m.Auth.Clients.Audience, Scopes: m.Auth.Clients.Scopes,
		Issuers: issuerClient(m, tlsConfig), Keys: keys, Trust: trustOf(&m.UpstreamTLS), Log: log,
	}), nil
}

// trustOf names the certificates that a mount trusts.
func trustOf(c *config.ClientTLS) string {
	digest := sha256.New()
	for _, name := range []string{c.CA, c.CAOnly} {
		text, _ := smallfile.Read(name) // without them there is no mount
		fmt.Fprintf(digest, "%q %d ", name, len(text))
		digest.Write(text)
	}
	return string(digest.Sum(nil))
}

func hasAuthorization(headers map[string]string) bool {
	for name := range headers {
		if http.CanonicalHeaderKey(name) == "Authorization" {
			return true
		}
	}
	return false
}

// publicHosts are the names under which clients know the mounts.
func publicHosts(cfg *config.Config) []string {
	var hosts []string
	for _, m := range cfg.Mounts() {
		if u, err := url.Parse(m.PublicURL); err == nil && u.Host != "" {
			hosts = append(hosts, u.Host, u.Hostname())
		}
	}
	return hosts
}
