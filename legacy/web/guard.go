package web

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"github.com/rs/zerolog"

	"github.com/mcpbridge/bridge/internal/clip"
	"github.com/mcpbridge/bridge/internal/logfield"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/observe"
)

// Guard keeps foreign web pages out (E-11). A page can make a browser send
// requests to a local server: by DNS rebinding, which shows in Host, or across
// origins, which shows in Origin, or where the page wants no answer that it may read
// and so sends none, in Sec-Fetch-Site.
type Guard struct {
	hosts, origins map[string]bool
	watch          observe.Watcher // may be nil
	log            zerolog.Logger  // of those who were kept out
}

// NewGuard returns a guard that admits these hosts and origins, as legacy.Options names
// them. watch is told that somebody was kept out, log who was; nil: nobody watches.
func NewGuard(hosts, origins []string, watch observe.Watcher, log zerolog.Logger) Guard {
	return Guard{hosts: lowerSet(hosts), origins: originSet(origins), watch: watch, log: logfield.Seldom(log)}
}

// Refused tells who watches that a request was turned away.
func (g Guard) Refused(why observe.Refusal) {
	if g.watch != nil {
		g.watch.Refused(why)
	}
}

func lowerSet(list []string) map[string]bool {
	set := make(map[string]bool, len(list))
	for _, v := range list {
		set[strings.ToLower(strings.TrimSuffix(v, "/"))] = true
	}
	return set
}

func originSet(list []string) map[string]bool {
	set := make(map[string]bool, len(list))
	for v := range lowerSet(list) {
		set[originOf(v)] = true
	}
	return set
}

// originOf writes an origin as browsers do: in lower case, without the port that its scheme has
// by default.
func originOf(origin string) string {
	origin = strings.ToLower(origin)
	scheme, host, _ := strings.Cut(origin, "://")
	if host == "" {
		return origin
	}
	return scheme + "://" + withoutDefaultPort(scheme, host)
}

func withoutDefaultPort(scheme, host string) string {
	return strings.TrimSuffix(host, defaultPorts[scheme])
}

var defaultPorts = map[string]string{"http": ":80", "https": ":443"}

// Admit checks Host and Origin, answers 403 when they are not allowed, and sets
// the CORS headers when they are.
func (g Guard) Admit(w http.ResponseWriter, r *http.Request) bool {
	if !g.host(r.Host) {
		g.refuse(w, r, observe.BadHost, r.Host)
		return false
	}
	origins := r.Header["Origin"]
	if len(origins) == 0 && (!foreign(r) || g.origins["*"]) {
		return true
	}
	if len(origins) != 1 || !g.origin(origins[0], r.Host) {
		g.refuse(w, r, observe.BadOrigin, strings.Join(origins, ", "))
		return false
	}
	h := w.Header()
	h["Access-Control-Allow-Origin"] = origins
	h["Access-Control-Expose-Headers"] = exposed
	h.Add("Vary", "Origin")
	return true
}

// refuse tells the client, and the log, which of its hosts or origins is not allowed: it is most often one that
// whoever runs the bridge has forgotten to list. named is "" where the request names none.
func (g Guard) refuse(w http.ResponseWriter, r *http.Request, why observe.Refusal, named string) {
	g.Refused(why)
	what := why.String() // as the settings are called, too
	text := what
	if named = clip.Line(named); named != "" {
		text += " " + named
	}
	g.log.Info().Str(what, named).Str(logfield.Remote, r.RemoteAddr).Msg("refused a request: its " + what + " is not allowed; see the setting allowed-" + what + "s")
	WriteError(w, http.StatusForbidden, "", jsonrpc.CodeInvalidRequest, text+" is not allowed; see the setting allowed-"+what+"s")
}

// foreign reports whether a browser says that a page of another origin sends a request.
func foreign(r *http.Request) bool {
	for _, site := range r.Header["Sec-Fetch-Site"] {
		if site != "same-origin" && site != "none" {
			return true
		}
	}
	return false
}

// exposed lists what a page may read. Browsers want it on the real responses,
// not on the preflight.
var exposed = []string{"Mcp-Session-Id, WWW-Authenticate"}

func (g Guard) host(host string) bool {
	if len(g.hosts) == 0 {
		return isLoopback(hostname(host))
	}
	return g.hosts["*"] || g.listed(host)
}

func (g Guard) listed(host string) bool {
	host = strings.ToLower(host)
	return g.hosts[host] || g.hosts[hostname(host)] || g.hosts[host+defaultPorts["http"]] || g.hosts[host+defaultPorts["https"]]
}

func (g Guard) origin(origin, host string) bool {
	if g.origins["*"] || g.origins[originOf(origin)] {
		return true
	}
	u, err := url.Parse(origin)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return false
	}
	if len(g.origins) == 0 && isLoopback(u.Hostname()) {
		return true
	}
	// The same origin is only trusted when its host was named: under a
	// wildcard a rebound name would vouch for itself.
	same := strings.EqualFold(withoutDefaultPort(u.Scheme, u.Host), withoutDefaultPort(u.Scheme, host))
	return same && (g.listed(host) || isLoopback(u.Hostname()))
}

// hostname strips the port and the brackets of an IPv6 address.
func hostname(host string) string {
	if i := strings.LastIndexByte(host, ':'); i >= 0 && strings.IndexByte(host[i:], ']') < 0 {
		if name, _, err := net.SplitHostPort(host); err == nil {
			return name
		}
	}
	return strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
}

func isLoopback(name string) bool {
	if name == "127.0.0.1" || strings.EqualFold(name, "localhost") {
		return true
	}
	addr, err := netip.ParseAddr(name)
	return err == nil && addr.IsLoopback()
}

// maxPreflight bounds the header names that a preflight may ask for.
const maxPreflight = 1 << 10

// Preflight answers OPTIONS.
func Preflight(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Allow", "GET, POST, DELETE, OPTIONS")
	if r.Header.Get("Origin") != "" {
		h.Set("Access-Control-Allow-Methods", "GET, POST, DELETE, OPTIONS")
		h.Set("Access-Control-Max-Age", "600")
		// The origin was admitted, so whatever it wants to send is fine. Names
		// cannot be listed: Mcp-Param-* has as many as there are tools.
		if want := r.Header.Get("Access-Control-Request-Headers"); want != "" && len(want) <= maxPreflight {
			h.Set("Access-Control-Allow-Headers", want)
		}
	}
	w.WriteHeader(http.StatusNoContent)
}

// HostAllowed returns what reports whether requests may be addressed to a host,
// when allowed are the hosts that legacy.Options names.
func HostAllowed(allowed []string) func(host string) bool {
	return NewGuard(allowed, nil, nil, zerolog.Nop()).host
}
