package config

import (
	"fmt"
	"net/netip"
)

// unixProxies stands, among the trusted proxies, for the peers of a Unix socket.
const unixProxies = "unix"

// ProxyNetworks returns TrustedProxies as networks, and whether the peers of a
// Unix socket are among them. It passes over what Validate reports.
func (c *Config) ProxyNetworks() (networks []netip.Prefix, unix bool) {
	for _, text := range c.TrustedProxies {
		if prefix, ok := network(text); ok {
			networks = append(networks, prefix)
		}
		unix = unix || text == unixProxies
	}
	return networks, unix
}

// ProxyNotes tells of TrustedProxies that are hardly meant: nobody's proxies have so many addresses, so
// clients are among them.
func (c *Config) ProxyNotes() (notes []string) {
	for _, text := range c.TrustedProxies {
		if prefix, ok := network(text); ok && whole(prefix) {
			notes = append(notes, fmt.Sprintf("trusted-proxies: %s holds everybody: whoever reaches the bridge is believed to be whom and where a header says (X-Auth-Request-User, X-Forwarded-For); name the proxies only", text))
		}
	}
	return notes
}

// public is where all addresses of IPv6 are that anybody on the internet has.
var public = netip.MustParsePrefix("2000::/3")

// whole reports whether a network is a large part of the internet. No private one is: the largest are
// 10.0.0.0/8 and fc00::/7.
func whole(network netip.Prefix) bool {
	return network.Bits() < 8 && (network.Addr().Is4() || network.Overlaps(public))
}

// network reads a CIDR block, or an address as the block that holds only it.
func network(text string) (netip.Prefix, bool) {
	if prefix, err := netip.ParsePrefix(text); err == nil {
		return prefix.Masked(), true
	}
	addr, err := netip.ParseAddr(text)
	if err != nil || addr.Zone() != "" {
		return netip.Prefix{}, false
	}
	return netip.PrefixFrom(addr.Unmap(), addr.Unmap().BitLen()), true
}
