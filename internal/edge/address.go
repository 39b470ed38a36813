package edge

import (
	"maps"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/rs/zerolog"

	"github.com/mcpbridge/bridge/internal/hop"
	"github.com/mcpbridge/bridge/internal/logfield"
)

// addresses settles, before anything else sees a request, whom it comes from.
// What a proxy says about that is believed only of proxies that the operator
// trusts; after that the headers that say it are gone, so that nobody further
// in, and no server, can believe them by mistake (H-12).
type addresses struct {
	next    http.Handler
	log     zerolog.Logger
	trusted atomic.Pointer[Proxies]
}

// Proxies are the peers whose word on a client's address is believed. The zero
// value trusts nobody.
type Proxies struct {
	Networks []netip.Prefix
	Unix     bool // whoever comes over a Unix socket
	Protocol bool // their connections begin with a header of the PROXY protocol
}

func newAddresses(trusted Proxies, next http.Handler, log zerolog.Logger) *addresses {
	a := &addresses{next: next, log: log}
	a.trusted.Store(&trusted)
	return a
}

// ServeHTTP implements http.Handler.
func (a *addresses) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	proxies := a.trusted.Load()
	trusted := proxies.include(r.RemoteAddr)
	header := withoutClient(r.Header, trusted)
	if client := proxies.client(r); client.IsValid() {
		r.RemoteAddr = client.String()
	} else if trusted || len(header) < len(r.Header) {
		r.RemoteAddr = withoutPort(r.RemoteAddr)
	}
	r.Header = header
	if line := logfield.Each(a.log.Debug()); line.Enabled() {
		line.Str(logfield.Remote, r.RemoteAddr).Str(logfield.HTTPMethod, r.Method).Str(logfield.Path, logfield.PathOf(r)).Msg("request")
	}
	if r.ProtoMajor == 2 {
		serveStream(a.next, w, r)
		return
	}
	a.next.ServeHTTP(w, r)
}

// withoutPort is an address of a proxy, whose connections are many clients': their port,
// by which others know a connection of one client, is 0.
func withoutPort(peer string) string {
	at, err := netip.ParseAddrPort(peer)
	if err != nil {
		return peer // a Unix socket has none
	}
	return netip.AddrPortFrom(at.Addr(), 0).String()
}

// withoutClient returns a header without those fields; of a trusted peer, with what it
// says of a user. The connection's further requests share it, so it is not changed itself.
func withoutClient(h http.Header, trusted bool) http.Header {
	shared := true
	for name := range h {
		if !hop.SpeaksOfClient(name, trusted) {
			continue
		}
		if shared {
			h, shared = maps.Clone(h), false
		}
		delete(h, name)
	}
	return h
}

// client returns the address that trusted proxies give for the sender of a
// request; invalid when none is known but the peer's own. A proxy that knows one
// header may hand the client's own spelling of the other on: when both are there
// and differ, neither is believed.
func (p *Proxies) client(r *http.Request) netip.AddrPort {
	if !p.include(r.RemoteAddr) {
		return netip.AddrPort{}
	}
	listed := p.walk(r.Header["X-Forwarded-For"], asIs)
	standard := p.walk(r.Header["Forwarded"], forwardedFor)
	switch {
	case !listed.IsValid():
		return standard
	case standard.IsValid() && standard.Addr() != listed.Addr():
		return netip.AddrPort{}
	}
	return listed
}

// include reports whether a peer is to be believed; one without an IP address came
// over a Unix socket.
func (p *Proxies) include(peer string) bool {
	if len(p.Networks) == 0 && !p.Unix {
		return false
	}
	at, isIP := parseAddress(peer)
	return isIP && p.contain(at.Addr()) || !isIP && p.Unix
}

func (p *Proxies) contain(addr netip.Addr) bool {
	return slices.ContainsFunc(p.Networks, func(n netip.Prefix) bool { return n.Contains(addr) })
}

// walk reads a list to which each proxy has appended whom it spoke with, from
// its end to the first one that is not trusted: what stands before that could be
// anybody's invention.
func (p *Proxies) walk(values []string, address func(string) string) (client netip.AddrPort) {
	elements := strings.Split(strings.Join(values, ","), ",")
	for _, element := range slices.Backward(elements) {
		next, ok := parseAddress(address(strings.TrimSpace(element)))
		if !ok {
			return client
		}
		client = next
		if !p.contain(client.Addr()) {
			return client
		}
	}
	return client
}

func asIs(element string) string { return element }

// forwardedFor returns the node of `for=` in one element of Forwarded (RFC 7239).
func forwardedFor(element string) string {
	for pair := range strings.SplitSeq(element, ";") {
		name, value, _ := strings.Cut(pair, "=")
		if strings.EqualFold(strings.TrimSpace(name), "for") {
			return strings.Trim(strings.TrimSpace(value), `"`)
		}
	}
	return ""
}

// parseAddress reads an IP address with or without a port; IPv6 with a port, and
// in Forwarded without one too, stands in brackets.
func parseAddress(text string) (netip.AddrPort, bool) {
	if at, err := netip.ParseAddrPort(text); err == nil {
		return netip.AddrPortFrom(at.Addr().Unmap(), at.Port()), true
	}
	host := strings.TrimSuffix(strings.TrimPrefix(text, "["), "]")
	if name, _, err := net.SplitHostPort(text); err == nil {
		host = name // its port is no number: an obfuscated one
	}
	addr, err := netip.ParseAddr(host)
	return netip.AddrPortFrom(addr.Unmap(), 0), err == nil
}
