package config

import (
	"net"
	"net/netip"
	"strings"
)

// admin reports an admin listener that others than the users of this machine could
// reach without encryption and a token of the operator's choice.
func (p *problems) admin(a *Admin, m *Metrics) {
	p.pair("admin.tls.cert", a.TLS.Cert, "admin.tls.key", a.TLS.Key)
	if a.Listen == "" {
		for key, set := range map[string]bool{"admin.token-file": a.TokenFile != "", "admin.tls.cert": a.TLS.Cert != "", "admin.actions": a.Actions == "on",
			"metrics.tools": m.Tools == "on"} {
			if set {
				p.add(key, "has no effect without admin.listen")
			}
		}
		return
	}
	if err := checkListen(a.Listen); err != "" {
		p.add("admin.listen", "%s %s", shown(a.Listen), err)
		return
	}
	if !private(a.Listen) && (a.TLS.Cert == "" || a.TokenFile == "") {
		p.add("admin.listen", "%s can be reached from other machines; use 127.0.0.1:PORT or unix:PATH, or set admin.tls.cert, admin.tls.key and admin.token-file",
			shown(a.Listen))
	}
}

// private reports whether only this machine can reach an address.
func private(listen string) bool {
	if strings.HasPrefix(listen, "unix:") {
		return true
	}
	host, _, _ := net.SplitHostPort(listen)
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && addr.IsLoopback()
}
