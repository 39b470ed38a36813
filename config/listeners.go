package config

import (
	"cmp"
	"net"
	"net/netip"
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
