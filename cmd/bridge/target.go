package main

import (
	"cmp"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mcpbridge/bridge/config"
	"github.com/mcpbridge/bridge/observe"
)

// target names a mount's server for logs and messages: the URL without its
// query, or what can be said of the command.
func target(m *config.Mount) string {
	if m.Upstream == "" {
		return commandName(m.Command)
	}
	u, err := url.Parse(m.Upstream)
	if err != nil {
		return "(invalid URL)"
	}
	return u.Scheme + "://" + u.Host + cmp.Or(u.EscapedPath(), "/")
}

// launchers run other programs: their names alone say nothing.
var launchers = []string{"node", "npx", "bun", "bunx", "deno", "npm", "pnpm", "yarn", "python", "python3", "uv", "uvx", "pipx", "java", "dotnet", "ruby", "php"}

// subcommands of launchers come before what they run.
var subcommands = []string{"run", "exec", "x", "dlx", "tool"}

// commandName names a command by its program and, if that only launches others, by
// what it launches. Other arguments may hold secrets.
func commandName(command []string) string {
	if len(command) == 0 {
		return ""
	}
	name := filepath.Base(command[0])
	if !slices.Contains(launchers, strings.TrimSuffix(strings.ToLower(name), ".exe")) {
		return name
	}
	for _, word := range command[1:] {
		switch {
		case strings.HasPrefix(word, "-"), slices.Contains(subcommands, word):
			continue
		case strings.ContainsAny(word, "=:?"): // the value of a flag, perhaps
			return name
		case strings.HasPrefix(word, "@"): // a package with its scope
			return name + " " + word
		}
		return name + " " + filepath.Base(word)
	}
	return name
}

// serverOf says where a mount's server is, for metrics and traces.
func serverOf(m *config.Mount) observe.Server {
	u, err := url.Parse(m.Upstream)
	switch {
	case m.Upstream == "":
		return observe.Server{Transport: "pipe"}
	case m.UpstreamSocket != "":
		return observe.Server{Address: m.UpstreamSocket, Transport: "unix"}
	case err != nil:
		return observe.Server{Transport: "tcp"}
	}
	port := map[string]string{"http": "80", "https": "443"}[u.Scheme]
	return observe.Server{Address: u.Hostname(), Port: cmp.Or(u.Port(), port), Transport: "tcp"}
}
