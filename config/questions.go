package config

import (
	"maps"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/mcpbridge/bridge/internal/hop"
	"github.com/mcpbridge/bridge/internal/http1"
)

// questions checks how questions are answered that a client cannot be asked.
func (p *problems) questions(m *Policy, label string) {
	if m.Questions.URL != "" {
		u, err := url.Parse(m.Questions.URL)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || hasUser(m.Questions.URL) || u.RawQuery != "" || u.Fragment != "" {
			p.add(label+"questions.url", "is no address of a page; write it like https://bridge.example.com/questions")
		} else if clean := path.Clean("/" + u.Path); clean == "/" {
			p.add(label+"questions.url", "needs a path of its own, like %s://%s/questions", u.Scheme, u.Host)
		} else if !isASCII(u.Host) {
			p.add(label+"questions.url", "has a host that must be written as browsers send it, like xn--bcher-kva.example")
		} else if u.EscapedPath() != u.Path || strings.Contains(u.Path, ";") { // the path of its cookies would be another
			p.add(label+"questions.url", "has a path with characters that cookies cannot have; use letters, digits and hyphens")
		} else if strings.TrimSuffix(u.Path, "/") != clean { // links are clean
			p.add(label+"questions.url", "has a path that must be written %s: without empty parts, . and ..", shown(clean))
		}
	}
	p.opens(m.Questions.Open, label+"questions.open")
	if m.Questions.URL != "" && !m.asksOnPage() {
		p.add(label+"questions.url", "is the address of a page, and nothing is asked on one; add questions: page")
	}
	for _, name := range slices.Sorted(maps.Keys(m.Questions.Patience)) {
		if _, err := parseDuration(m.Questions.Patience[name]); err != nil {
			p.add(label+"questions.patience", "%s: %v", shown(name), err)
		}
	}
	if m.Sampling.Provider != "off" && m.Sampling.Model == "" {
		p.add(label+"sampling.model", "is missing; sampling.provider needs it")
	}
	if m.Sampling.URL != "" {
		if u, err := url.Parse(m.Sampling.URL); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil {
			p.add(label+"sampling.url", "is no address of an API; write it like http://127.0.0.1:11434/v1")
		}
	}
}

func isASCII(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r > unicode.MaxASCII })
}

// opens checks what opens pages by itself: a command that is there.
func (p *problems) opens(command, key string) {
	switch fields := strings.Fields(command); {
	case len(fields) == 0:
		p.add(key, "is empty; write auto, off or a command")
	case command == "auto" || command == "off":
	default:
		if _, whole := exec.LookPath(command); whole == nil { // a path with spaces
			return
		}
		if _, err := exec.LookPath(fields[0]); err != nil {
			p.add(key, "%s is no command of this machine", shown(fields[0]))
		}
	}
}

// pages finds endpoints that nobody could reach, since a page for questions stands there.
func (p *problems) pages(mounts []Mount) {
	endpoints := []string{"/healthz", "/readyz", "/.well-known"}
	for i := range mounts {
		events, messages := SSEPaths(mounts[i].Path)
		endpoints = append(endpoints, mounts[i].Path, events, messages)
	}
	if len(mounts) == 1 { // which is found there, too
		events, messages := SSEPaths("/")
		endpoints = append(endpoints, events, messages)
	}
	for i := range mounts {
		u, err := url.Parse(mounts[i].Questions.URL)
		if err != nil || strings.Trim(u.Path, "/") == "" {
			continue
		}
		page := strings.TrimSuffix(u.Path, "/")
		for _, endpoint := range endpoints {
			if endpoint == page || strings.HasPrefix(endpoint, page+"/") {
				p.add("questions.url", "%s would hide the endpoint %s; give the page a path of its own", shown(u.Path), shown(endpoint))
			}
		}
	}
}

// roots checks the roots of a mount; proxied says that there are proxies whose word on users is believed.
func (p *problems) roots(r *Roots, label string, proxied bool) {
	p.folders(r.List, label+"roots")
	for _, who := range slices.Sorted(maps.Keys(r.By)) {
		p.folders(strings.Fields(r.By[who]), label+"roots.by")
	}
	switch {
	case r.Header == "" && len(r.By) == 0:
	case r.Header == "":
		p.add(label+"roots.header", "is missing; roots.by needs the name of a header, like X-User")
	default:
		p.header(r.Header, label+"roots.header", proxied)
	}
}

// header checks the name of a header in which something in front says who or what a client is: one that the bridge
// takes out before it looks would say nothing, and nobody would know.
func (p *problems) header(text, key string, proxied bool) {
	name := http.CanonicalHeaderKey(text)
	switch {
	case !http1.IsToken(text):
		p.add(key, "%s is no name of a header", shown(text))
	case hop.Reserved(name) || hop.SpeaksOfClient(name, true):
		p.add(key, "%s is taken out of every request, and says nothing of a client; have the proxy in front use another one, like X-Auth-Request-User", shown(text))
	case !proxied && hop.SpeaksOfClient(name, false):
		p.add(key, "%s is taken out of every request but those of trusted-proxies, and there are none", shown(text))
	}
}

// folders checks that roots are folders which exist.
func (p *problems) folders(roots []string, key string) {
	for _, root := range roots {
		u, err := url.Parse(root)
		if err != nil || u.Scheme != "file" || u.Host != "" || u.User != nil || u.Path == "" || u.RawQuery != "" || u.Fragment != "" {
			p.add(key, "%s is no root; write it like file:///home/me/project", shown(root))
		} else if info, err := os.Stat(u.Path); err != nil || !info.IsDir() {
			p.add(key, "%s is no folder of this machine", shown(u.Path))
		}
	}
}

// Any reports whether there are roots for anybody.
func (r *Roots) Any() bool { return len(r.List)+len(r.By) > 0 }

// For returns the roots of a request by what its headers say.
func (r *Roots) For(header http.Header) []string {
	if r.Header != "" {
		if own, ok := r.By[header.Get(r.Header)]; ok {
			return strings.Fields(own)
		}
	}
	return r.List
}

// Local reports whether the page is for people at this machine alone.
func (q *Questions) Local() bool {
	u, err := url.Parse(q.URL)
	return q.URL == "" || err == nil && isLoopback(u.Hostname())
}

// knownPatience is how long clients are known to wait for a call.
var knownPatience = map[string]time.Duration{
	"claude-ai":            240 * time.Second,
	"Java SDK MCP Client":  20 * time.Second,
	"spring-ai-mcp-client": 20 * time.Second,
}

// Known returns how long a call of a client may wait for its person, by the beginning
// of the client's name: a little less than the client waits for the call.
func (q *Questions) Known() map[string]time.Duration {
	known := maps.Clone(knownPatience)
	for name, text := range q.Patience {
		known[name], _ = parseDuration(text) // judged before
	}
	for name, whole := range known {
		known[name] = whole - min(whole/8, 10*time.Second)
	}
	return known
}

// Questions say what becomes of a question of the server that a client cannot be asked.
type Questions struct {
	// What answers for the client: page asks a person in a browser, decline says no for everybody, default accepts
	// with the defaults of the question's form where it has them all, error ends the call and says what the client lacks.
	Policy string `key:"policy" named:"section" oneof:"page|decline|default|error"`
	// The address under which people reach the page, as their browsers see it; its path is then the bridge's. Empty: the
	// page is on a port of the loopback interface, for people at this machine.
	URL string `key:"url" url:"true"`
	// What opens the page by itself when a question comes: auto the browser of the person at this machine, where there is one
	// and the page and its clients are on this machine; off nothing; anything else is a command, which gets the address as its
	// last argument. There is at most one tab for a question, and none while another one waits.
	Open string `key:"open"`
	// How long a call waits for the person before it is answered with the page's link. The same call again picks the
	// answer up. Shorter than the time that the client gives a call.
	Wait time.Duration `key:"wait" min:"0s" max:"24h"`
	// How long clients wait for a call before they give it up, by the beginning of the name that they give themselves.
	// Shortly before, a call whose person has not answered yet is answered with what is pending, and the same call
	// again goes on from there. 0s takes a client out that is known: claude-ai (240s), Java SDK MCP Client and
	// spring-ai-mcp-client (20s).
	Patience map[string]string `key:"patience" like:"{claude-ai: 240s}"`
}

// Roots are the folders that servers are told of for clients that have no roots of their own. A reload of the configuration
// counts from the next call on, in open sessions too.
type Roots struct {
	// Everybody's roots, as file:// URIs of folders that exist.
	List []string `key:"list" named:"section" like:"[file:///home/me/project]"`
	// The header of a request that says whose roots it gets. Something in front of the bridge must set it, and keep clients from
	// setting it themselves. It cannot be X-Forwarded-User or the like, which go no further than the listener; those by which a
	// proxy is known to say who has signed in, like X-Auth-Request-User, need trusted-proxies.
	Header string `key:"header"`
	// Other roots by the value of that header: file:// URIs, with spaces between them. They take the place of everybody's.
	By map[string]string `key:"by" like:"{ada: \"file:///home/ada/project\"}"`
}

// Sampling is the model that answers for clients without one.
type Sampling struct {
	// The API that it speaks, be it the vendor's or that of a server of one's own; off: there is no model.
	Provider string `key:"provider" oneof:"off|openai|anthropic"`
	// Where the API is: of openai with the version, like http://127.0.0.1:11434/v1, of anthropic without. Empty: the vendor's.
	URL string `key:"url" url:"true"`
	// The name of the model.
	Model string `key:"model"`
	// Other models for the hints of servers: a part of a hint's name, and the model that it stands for.
	Models map[string]string `key:"models" like:"{sonnet: some-model}"`
	// A file with the key for the API.
	KeyFile string `key:"key-file"`
	// Whether a person must approve each request, on the page of questions.
	Approve string `key:"approve" oneof:"off|on"`
	// Tokens that one answer may have.
	MaxTokens int `key:"max-tokens" min:"1" max:"10000000"`
	// Requests of one session.
	PerSession int `key:"per-session" min:"1" max:"1000000"`
	// Requests of all sessions in 24 hours. Who has had an eighth of them or more, with the same credentials or from one
	// address, does not get the last eighth.
	PerDay int `key:"per-day" min:"1" max:"100000000"`
	// How long the model may take.
	Timeout time.Duration `key:"timeout" min:"1s" max:"1h"`
}
