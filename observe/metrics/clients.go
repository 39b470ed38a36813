package metrics

import (
	"strings"
	"sync"
	"time"
	"unicode"
)

// clientele counts the clients of one mount by the names that they declare. It serves
// the question when the bridge is no longer needed. Peers write
// these names, so there are at most maxClients of them.
type clientele struct {
	count func(client, version, era string, at time.Time)
	names names
}

const (
	maxClients = 50 // of one mount
	maxName    = 48 // bytes
)

func newClientele(r *Registry, path string) *clientele {
	return &clientele{names: names{most: maxClients}, count: func(client, version, era string, at time.Time) {
		r.counter(clients).WithLabelValues(path, client, version, era).Inc()
		r.gauge(clientSeen).WithLabelValues(path, client, version, era).Set(float64(at.Unix()))
	}}
}

// seen counts a session that a client opened.
func (c *clientele) seen(name, version, era string, at time.Time) {
	c.count(c.names.word(name), version, era, at)
}

// names are labels that peers write: the first so many, shortened.
type names struct {
	most int

	mu    sync.Mutex
	known map[string]bool
}

// word returns the label for a declared name.
func (n *names) word(name string) string {
	name = clean(name)
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.known[name] {
		return name
	}
	if len(n.known) >= n.most || name == "" {
		return other
	}
	if n.known == nil {
		n.known = map[string]bool{}
	}
	n.known[name] = true
	return name
}

// clean makes a declared name short and printable.
func clean(name string) string { return printable(name[:min(len(name), maxName)]) }

// printable leaves out what cannot be read.
func printable(name string) string {
	name = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) && r != unicode.ReplacementChar {
			return r
		}
		return -1
	}, name)
	return strings.TrimSpace(strings.ToValidUTF8(name, ""))
}
