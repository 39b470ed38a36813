package config

import (
	"cmp"
	"maps"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/mcpbridge/bridge/internal/hop"
	"github.com/mcpbridge/bridge/internal/http1"
)

// unused reports settings of the single upstream beside a list of upstreams.
func (p *problems) unused(m *Mount) {
	for key, set := range map[string]bool{
		"upstream":        m.Upstream != "",
		"command":         len(m.Command) > 0,
		"command-env":     len(m.CommandEnv) > 0,
		"headers":         len(m.Headers) > 0,
		"upstream-tls":    m.UpstreamTLS != ClientTLS{},
		"upstream-socket": m.UpstreamSocket != "",
	} {
		if set {
			p.add(key, "cannot be set beside %s; set it in the entry that it belongs to", upstreamsKey)
		}
	}
	slices.SortFunc(*p, func(a, b Problem) int { return cmp.Compare(a.Key, b.Key) })
}

func (p *problems) mount(m *Mount, label string, proxied bool) {
	p.path(m.Path, label)
	switch {
	case m.Upstream == "" && len(m.Command) == 0:
		p.add(label+"upstream", "is missing; give the URL of the server's MCP endpoint, or a command")
	case m.Upstream != "" && len(m.Command) > 0:
		p.add(label+"command", "cannot be set beside upstream; keep one of the two")
	case m.Upstream != "":
		p.upstream(m.Upstream, label)
	case m.Command[0] == "":
		p.add(label+"command", "begins with nothing; name the program first, as in [my-server, --verbose]")
	}
	if m.Draft == "off" && m.DraftAnswers == "wrapped" {
		p.add(label+"draft-answers", "has no effect while draft is off; remove it, or set draft to auto or on")
	}
	p.publicURL(m.PublicURL, label)
	p.socket(m, label)
	p.environment(m, label)
	p.headers(m, label)
	switch m.Auth.Mode {
	case "agent":
		p.agent(m, label+"auth.")
	case "terminate":
		p.terminate(m, label+"auth.")
	}
	if m.UpstreamTLS.CA != "" && m.UpstreamTLS.CAOnly != "" {
		p.add(label+"upstream-tls.ca-only", "cannot be set beside upstream-tls.ca; keep one of the two")
	}
	p.questions(&m.Policy, label)
	p.roots(&m.Roots, label, proxied)
	p.rates(&m.Rates, label, proxied)
	p.pair(label+"upstream-tls.cert", m.UpstreamTLS.Cert, label+"upstream-tls.key", m.UpstreamTLS.Key)
}

func (p *problems) path(endpoint, label string) {
	key := label + "path"
	switch {
	case endpoint == "":
		p.add(key, "is missing; give the path of the endpoint, like /mcp")
	case !strings.HasPrefix(endpoint, "/"):
		p.add(key, "%s must begin with a slash", shown(endpoint))
	case strings.ContainsAny(endpoint, "?#%{} \t\r\n"):
		p.add(key, "%s must be a plain path, without a query, escapes, braces or spaces", shown(endpoint))
	case endpoint != path.Clean(endpoint): // to net/http another path, or all below this one
		p.add(key, "%s must be written %s: without empty parts, . and .., or a slash at the end", shown(endpoint), shown(path.Clean(endpoint)))
	case endpoint == "/healthz" || endpoint == "/readyz":
		p.add(key, "%s is where the bridge tells its health; choose another", shown(endpoint))
	}
}

// upstream judges the URL. Messages show nothing of it: it may hold a password or a token, and of a password that is not escaped a part
// looks like the host.
func (p *problems) upstream(text, label string) {
	key := label + "upstream"
	u, err := url.Parse(text)
	switch {
	case err != nil:
		p.add(key, "is no URL; write it like https://mcp.example.com/mcp")
	case u.Scheme != "http" && u.Scheme != "https":
		p.add(key, "must begin with http:// or https://, like https://mcp.example.com/mcp")
	case u.Host == "":
		p.add(key, "names no host; write it like https://mcp.example.com/mcp")
	case u.User != nil:
		p.add(key, "carries a user name or password; set an Authorization header under headers instead")
	case u.Fragment != "":
		p.add(key, "has a fragment (#…), which no server ever sees; remove it")
	}
}

func (p *problems) socket(m *Mount, label string) {
	switch key := label + "upstream-socket"; {
	case m.UpstreamSocket == "":
	case len(m.Command) > 0:
		p.add(key, "cannot be set beside command, which is spoken with over its standard input and output")
	case m.Upstream == "":
		p.add(key, "needs upstream to name the path, like http://localhost/mcp")
	}
}

func (p *problems) environment(m *Mount, label string) {
	key := label + "command-env"
	if len(m.CommandEnv) > 0 && m.Upstream != "" {
		p.add(key, "has no effect beside upstream: only a command has an environment")
	}
	for i, entry := range m.CommandEnv {
		name, _, _ := strings.Cut(entry, "=")
		switch {
		case name == "":
			p.add(key, "entry %d has no name", i+1)
		case strings.HasPrefix(strings.ToUpper(name), "BRIDGE_"):
			p.add(key, "%s is the bridge's own and never handed on; remove it", shown(name))
		}
	}
}

func (p *problems) headers(m *Mount, label string) {
	key := label + "headers"
	if len(m.Headers) > 0 && len(m.Command) > 0 {
		p.add(key, "cannot be sent to a command; pass it arguments or environment variables")
	}
	for _, name := range slices.Sorted(maps.Keys(m.Headers)) {
		switch {
		case !http1.IsToken(name):
			p.add(key, "%s is no header name", shown(name))
		case hop.Reserved(http.CanonicalHeaderKey(name)):
			p.add(key, "%s is set by the bridge itself; remove it", shown(name))
		case !http1.IsValue(m.Headers[name]):
			p.add(key, "the value of %s holds a character that headers cannot carry", shown(http.CanonicalHeaderKey(name)))
		}
	}
}
