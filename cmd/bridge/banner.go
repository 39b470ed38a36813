package main

import (
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/rs/zerolog"

	"github.com/mcpbridge/bridge/config"
)

// banner tells a person where the bridge listens, what it fronts, and what to
// paste into a client. Machines that read the log are spared of it.
func banner(w io.Writer, cfg *config.Config, at net.Addr, admin *administration, log *zerolog.Logger) {
	if cfg.Log.Format == "json" || cfg.Log.Format == "auto" && !isTerminal(w) {
		log.Info().Strs("urls", urls(cfg, at)).Msg("listening")
		if admin != nil && admin.aside != nil {
			log.Info().Str("url", admin.address).Msg("the admin listener is open")
		}
		return
	}
	fmt.Fprintf(w, "\n  MCP Bridge %s\n\n", versionText())
	for i, url := range urls(cfg, at) {
		fmt.Fprintf(w, "  clients connect to  %s\n  and are served by   %s\n\n", url, target(&cfg.Mounts()[i]))
	}
	if admin != nil && admin.aside != nil {
		fmt.Fprintf(w, "  see what goes on at %s\n\n", admin.address)
	}
	fmt.Fprintf(w, "  Ctrl-C stops it.\n\n")
}

// urls returns the URL of each mount, as a client on this machine spells it.
func urls(cfg *config.Config, at net.Addr) []string {
	scheme := "http"
	if cfg.TLS.Cert != "" {
		scheme = "https"
	}
	var list []string
	for _, m := range cfg.Mounts() {
		if strings.HasPrefix(cfg.Listen, "unix:") {
			list = append(list, fmt.Sprintf("%s://localhost%s over the socket %s", scheme, m.Path, at))
			continue
		}
		list = append(list, scheme+"://"+reachable(at.String())+m.Path)
	}
	return list
}

// reachable puts a name that works on this machine for "every interface".
func reachable(address string) string {
	host, port, err := net.SplitHostPort(address)
	if ip := net.ParseIP(host); err == nil && ip.IsUnspecified() {
		return net.JoinHostPort("localhost", port)
	}
	return address
}
