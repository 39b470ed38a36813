package config

import (
	"cmp"
	"net"
	"net/netip"
	"net/url"
	"path/filepath"
	"strings"
)

// listeners reports addresses of which only one can be opened.
func (p *problems) listeners(c *Config) {
	type door struct{ key, at string }
	doors := []door{{"listen", c.Listen}, {"replica.listen", c.Replica.Listen}, {"admin.listen", c.Admin.Listen}}
	for i, door := range doors {
		for _, other := range doors[:i] {
			if collide(door.at, other.at) {
				p.add(door.key, "%s is what %s has already (%s); choose another port", shown(door.at), other.key, shown(other.at))
			}
		}
	}
}

// collide reports whether two listeners cannot both be there. Port 0 is a free one.
func collide(a, b string) bool {
	at, isSocket := strings.CutPrefix(a, "unix:")
	bt, both := strings.CutPrefix(b, "unix:")
	if isSocket || both {
		return isSocket && both && filepath.Clean(at) == filepath.Clean(bt)
	}
	_, port, err := net.SplitHostPort(a)
	_, second, err2 := net.SplitHostPort(b)
	if cmp.Or(err, err2) != nil || port != second || port == "0" {
		return false
	}
	return wildcard(a) || wildcard(b) || hostOf(a) == hostOf(b)
}

// itself reports a mount whose server would be the mount: each request would become another one, until descriptors run out.
// Only what the configuration shows can be told; names are not asked for.
func (p *problems) itself(m *Mount, listen, label string) {
	u, err := url.Parse(m.Upstream)
	if err != nil || m.UpstreamSocket != "" || u.Path != m.Path || strings.HasPrefix(listen, "unix:") {
		return
	}
	at := net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), map[string]string{"http": "80", "https": "443"}[u.Scheme]))
	if collide(at, listen) && (!wildcard(listen) || loopback(hostOf(at))) {
		p.add(label+"upstream", "is the bridge's own endpoint (%s); give the URL of the server's", shown(listen+m.Path))
	}
}

func loopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback()
}

// hostOf returns the host of an address, as far as that can be told without asking anybody.
func hostOf(address string) string {
	host, _, _ := net.SplitHostPort(address)
	if ip, err := netip.ParseAddr(host); err == nil {
		return ip.Unmap().String()
	}
	if strings.EqualFold(host, "localhost") {
		return "127.0.0.1"
	}
	return strings.ToLower(host)
}
