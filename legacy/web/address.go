package web

import (
	"net/http"
	"net/netip"
)

// Address returns where a request comes from, as far as that tells clients apart: an
// IPv4 address, or the /64 network of an IPv6 one, since whoever has one of its
// addresses has them all. It is "" over a Unix socket whose peers say nothing.
func Address(r *http.Request) string {
	at, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return ""
	}
	addr := at.Addr().Unmap()
	if addr.Is4() {
		return addr.String()
	}
	network, err := addr.WithZone("").Prefix(64)
	if err != nil {
		return ""
	}
	return network.String()
}
