package config

import (
	"net"
	"net/netip"
	"strings"
)

// replica judges how replicas reach each other.
func (p *problems) replica(r *Replica, s *Store) {
	switch {
	case r.Listen == "" && r.Address == "":
		return
	case !s.Shared():
		p.add("replica.listen", "has an effect with a store in Redis only, which replicas can share; remove it, or set store.url")
	case r.Listen == "":
		p.add("replica.listen", "is missing; replica.address belongs to it")
	case unreachable(r.Listen) != "":
		p.add("replica.listen", "%s", unreachable(r.Listen))
	case r.Address != "" && (unreachable(r.Address) != "" || wildcard(r.Address)):
		p.add("replica.address", "is no address that others can reach; write HOST:PORT, like 10.0.0.7:8091")
	case r.Address == "" && wildcard(r.Listen):
		p.add("replica.address", "is missing; replica.listen names no host under which others could reach it")
	}
}

// unreachable says what is wrong with an address that other machines are to reach.
func unreachable(address string) string {
	if strings.HasPrefix(address, "unix:") {
		return "is no address; write HOST:PORT, like 10.0.0.7:8091"
	}
	return strings.Replace(checkListen(address), ", or unix:PATH", "", 1)
}

// wildcard reports an address that names no host.
func wildcard(address string) bool {
	host, _, _ := net.SplitHostPort(address)
	ip, err := netip.ParseAddr(host)
	return host == "" || err == nil && ip.IsUnspecified()
}
