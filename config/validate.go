package config

import (
	"cmp"
	"fmt"
	"net"
	"net/url"
	"path"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Validate returns an *Error with everything that is wrong, or nil.
func (c *Config) Validate() error { return errorOf(c.problems()) }

func (c *Config) problems() []Problem {
	var found problems
	root := reflect.ValueOf(c).Elem()
	for _, o := range rootSchema.options {
		found.bounds(o, o.in(root), "")
	}
	found.listener(c)
	found.store(&c.Store)
	found.replica(&c.Replica, &c.Store)
	found.admin(&c.Admin, &c.Metrics)
	found.listeners(c)
	found.times(&c.Timeouts, "")
	found.memory(c)
	if len(c.Upstreams) == 0 {
		found.mount(&c.Mount, "", len(c.TrustedProxies) > 0)
		found.idle(&c.Mount, &Mount{Policy: defaultPolicy()}, "")
		found.sharing(&c.Mount, c, "")
		found.itself(&c.Mount, c.Listen, "")
		found.pages([]Mount{c.Mount})
		return found
	}
	found.unused(&c.Mount)
	found.headers(&c.Mount, "") // wrong in the entry, too
	found.upstreams(c)
	return found
}

type problems []Problem

func (p *problems) add(key, text string, args ...any) {
	*p = append(*p, Problem{Key: key, Text: fmt.Sprintf(text, args...)})
}

func (p *problems) upstreams(c *Config) {
	p.publicURLs(c.Upstreams)
	paths := map[string]int{}
	for i := range c.Upstreams {
		mount, label := &c.Upstreams[i], fmt.Sprintf("%s[%d].", upstreamsKey, i)
		p.mount(mount, label, len(c.TrustedProxies) > 0)
		p.idle(mount, &c.Mount, label)
		p.sharing(mount, c, label)
		p.itself(mount, c.Listen, label)
		p.policy(mount, &c.Mount, label)
		if first, taken := paths[mount.Path]; taken {
			p.add(label+"path", "%s is the path of %s[%d] already; every upstream needs its own", shown(mount.Path), upstreamsKey, first)
		}
		paths[mount.Path] = i
	}
	p.pages(c.Upstreams)
	for i := range c.Upstreams {
		events, messages := SSEPaths(c.Upstreams[i].Path)
		for _, below := range []string{events, messages} {
			if other, taken := paths[below]; taken {
				p.add(fmt.Sprintf("%s[%d].path", upstreamsKey, other), "%s is where clients of %s[%d] find HTTP+SSE; choose another", shown(below), upstreamsKey, i)
			}
		}
	}
}

// SSEPaths returns where clients of the endpoint at a path find HTTP+SSE: the
// path of its event stream, and the one to which they post messages.
func SSEPaths(endpoint string) (events, messages string) {
	return path.Join(endpoint, "sse"), path.Join(endpoint, "messages")
}

// policy checks what an entry sets differently from the top level; what it took
// over was checked there.
func (p *problems) policy(mount, top *Mount, label string) {
	own, shared := reflect.ValueOf(mount).Elem(), reflect.ValueOf(top).Elem()
	for _, o := range mountSchema.options {
		if field := o.in(own); field.Comparable() && !field.Equal(o.in(shared)) {
			p.bounds(o, field, label)
		}
	}
	if mount.Timeouts != top.Timeouts {
		p.times(&mount.Timeouts, label)
	}
}

// bounds checks the tags min, max and oneof of one option.
func (p *problems) bounds(o Option, field reflect.Value, label string) {
	tag := o.field.Tag
	if choices := tag.Get("oneof"); choices != "" && !slices.Contains(strings.Split(choices, "|"), field.String()) {
		p.add(label+o.Key, "%s is unknown; use one of %s%s", shown(field.String()), o.Form(),
			Suggest(field.String(), strings.Split(choices, "|")))
	}
	if tag.Get("min") != "" && !within(field, tag.Get("min"), tag.Get("max")) {
		p.add(label+o.Key, "%s is out of range; use %s", format(field), o.Form())
	}
}

// within compares a field with bounds that are spelled like its values.
func within(field reflect.Value, low, high string) bool {
	bound := reflect.New(field.Type()).Elem()
	for _, side := range []struct {
		text string
		sign int
	}{{low, -1}, {high, 1}} {
		if err := assign(bound, []string{side.text}); err != nil {
			panic(fmt.Sprintf("config: bound %q: %v", side.text, err)) // a typo in config.go; every run of the tests meets it
		}
		if cmp.Compare(field.Int(), bound.Int()) == side.sign {
			return false
		}
	}
	return true
}

func (p *problems) listener(c *Config) {
	if err := checkListen(c.Listen); err != "" {
		p.add("listen", "%s %s", shown(c.Listen), err)
	}
	p.pair("tls.cert", c.TLS.Cert, "tls.key", c.TLS.Key)
	for _, origin := range c.AllowedOrigins {
		u, err := url.Parse(origin)
		if origin != "*" && strings.Contains(origin, "*") {
			p.add("allowed-origins", "%s is no origin; a wildcard stands for any origin when it is alone, and for nothing within one: name each", shown(origin))
		} else if origin != "*" && (err != nil || u.Scheme == "" || u.Host == "" || u.Scheme+"://"+u.Host != origin) {
			p.add("allowed-origins", "%s is no origin; write SCHEME://HOST[:PORT] without a path, like https://app.example.com", shown(origin))
		}
	}
	for _, host := range c.AllowedHosts {
		if host != "*" && strings.Contains(host, "*") {
			p.add("allowed-hosts", "%s is no host; a wildcard stands for any host when it is alone, and for nothing within one: name each", shown(host))
		} else if host == "" || strings.ContainsAny(host, "/@ ") {
			p.add("allowed-hosts", "%s is no host; write HOST or HOST:PORT, like bridge.example.com", shown(host))
		}
	}
	if c.ProxyProtocol == "on" && len(c.TrustedProxies) == 0 {
		p.add("proxy-protocol", "needs trusted-proxies: from anyone else such a header is not believed")
	}
	for _, proxy := range c.TrustedProxies {
		if _, ok := network(proxy); !ok && proxy != unixProxies {
			p.add("trusted-proxies", "%s is no network; write an IP address, a CIDR block like 10.0.0.0/8, or unix", shown(proxy))
		}
	}
}

func checkListen(listen string) string {
	if path, ok := strings.CutPrefix(listen, "unix:"); ok {
		if path == "" {
			return "names no socket; write unix:/run/bridge.sock"
		}
		return ""
	}
	_, port, err := net.SplitHostPort(listen)
	if err != nil {
		return "is no address; write HOST:PORT, like 127.0.0.1:8080, or unix:PATH"
	}
	if n, err := strconv.Atoi(port); err != nil || n < 0 || n > 65535 {
		return "has no port from 0 to 65535 after the colon"
	}
	return ""
}

// store judges where sessions are kept. Messages never quote the URL: it may hold a
// password.
func (p *problems) store(s *Store) {
	kind, rest := s.Kind()
	switch kind {
	case "memory":
		if rest != "" {
			p.add("store.url", "has something after memory:, which takes nothing")
		}
		if s.Keys != "" {
			p.add("store.keys", "has no effect with memory:, where nothing is sealed; remove it, or set store.url")
		}
		if s.Size != 0 {
			p.add("store.size", "has no effect with memory:, where nothing is kept; remove it, or set store.url")
		}
	case "file":
		if rest == "" {
			p.add("store.url", "names no file; write it like file:/var/lib/mcp-bridge/sessions.db")
		}
	case "redis":
		if s.Keys == "" {
			p.add("store.keys", "is missing: what is kept in Redis is sealed; make a key with `openssl rand -base64 32 > FILE` and name the file")
		}
	default:
		p.add("store.url", "is unknown; write memory:, file:PATH, redis://, rediss://, redis+sentinel:// or redis+cluster://")
	}
	p.idleStore(s, kind)
}

// pair reports a certificate without its key, or the reverse.
func (p *problems) pair(certKey, cert, keyKey, key string) {
	switch {
	case cert != "" && key == "":
		p.add(keyKey, "is missing; %s needs it", certKey)
	case cert == "" && key != "":
		p.add(certKey, "is missing; %s belongs to it", keyKey)
	}
}
