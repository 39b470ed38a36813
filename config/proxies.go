package config

import "net/netip"

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
