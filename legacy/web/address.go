package web

import (
	"net/http"
	"net/netip"
	"strings"
)

// Address returns where a request comes from, as far as that tells clients apart: an
// IPv4 address, or the /64 network of an IPv6 one, since whoever has one of its
// addresses has them all. It is "" over a Unix socket whose peers say nothing.
func Address(r *http.Request) string { return address(r.RemoteAddr) }

// Stranger names whose share of what is scarce clients take that nobody vouches for: that of
// their address. It is "" where that tells nobody apart.
func Stranger(remote string) string {
	if from := address(remote); from != "" {
		return "address " + from // no principal is called so: it has a space
	}
	return ""
}

func address(remote string) string {
	at, err := netip.ParseAddrPort(remote)
	if err != nil {
		return ""
	}
	addr := at.Addr()
	if addr.Is4() { // as it is spelled: there is one way only
		return remote[:strings.LastIndexByte(remote, ':')]
	}
	if addr = addr.Unmap(); addr.Is4() {
		return addr.String()
	}
	network, err := addr.WithZone("").Prefix(64)
	if err != nil {
		return ""
	}
	return network.String()
}
