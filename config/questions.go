package config

import (
	"maps"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/mcpbridge/bridge/internal/http1"
)

// questions checks how questions are answered that a client cannot be asked.
func (p *problems) questions(m *Policy, label string) {
	if m.Questions.URL != "" {
		u, err := url.Parse(m.Questions.URL)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
			p.add(label+"questions.url", "is no address of a page; write it like https://bridge.example.com/questions")
		} else if u.Path == "" || u.Path == "/" {
			p.add(label+"questions.url", "needs a path of its own, like %s://%s/questions", u.Scheme, u.Host)
		}
	}
	if strings.TrimSpace(m.Questions.Open) == "" {
		p.add(label+"questions.open", "is empty; write auto, off or a command")
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
	p.roots(&m.Roots, label)
}

// pages finds endpoints that no client could reach, since a page for questions stands there.
func (p *problems) pages(mounts []Mount) {
	for i := range mounts {
		u, err := url.Parse(mounts[i].Questions.URL)
		if err != nil || strings.Trim(u.Path, "/") == "" {
			continue
		}
		page := strings.TrimSuffix(u.Path, "/")
		for j := range mounts {
			if mounts[j].Path == page || strings.HasPrefix(mounts[j].Path, page+"/") {
				p.add("questions.url", "%s would hide the endpoint %s; give the page a path of its own", shown(u.Path), shown(mounts[j].Path))
			}
		}
	}
}

func (p *problems) roots(r *Roots, label string) {
	p.folders(r.List, label+"roots")
	for _, who := range slices.Sorted(maps.Keys(r.By)) {
		p.folders(strings.Fields(r.By[who]), label+"roots.by")
	}
	switch {
	case len(r.By) > 0 && r.Header == "":
		p.add(label+"roots.header", "is missing; roots.by needs the name of a header, like X-User")
	case r.Header != "" && !http1.IsToken(r.Header):
		p.add(label+"roots.header", "%s is no name of a header", shown(r.Header))
	}
}

// folders checks that roots are folders which exist.
func (p *problems) folders(roots []string, key string) {
	for _, root := range roots {
		u, err := url.Parse(root)
		if err != nil || u.Scheme != "file" || u.Host != "" || u.Path == "" || u.RawQuery != "" || u.Fragment != "" {
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
