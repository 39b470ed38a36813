package metrics

import (
	"strings"
	"sync"
	"time"
	"unicode"
)

// clientele counts the clients of one mount by the names that they declare. It serves
// the question when the bridge is no longer needed. Names are the one label that peers
// write, so there are at most maxClients of them.
type clientele struct {
	count func(client, version, era string, at time.Time)

	mu    sync.Mutex
	names map[string]bool
}

const (
	maxClients    = 50
	maxClientName = 48 // bytes
)

func newClientele(r *Registry, path string) *clientele {
	return &clientele{names: map[string]bool{}, count: func(client, version, era string, at time.Time) {
		r.counter(clients).WithLabelValues(path, client, version, era).Inc()
		r.gauge(clientSeen).WithLabelValues(path, client, version, era).Set(float64(at.Unix()))
	}}
}

// seen counts a session that a client opened.
func (c *clientele) seen(name, version, era string, at time.Time) {
	c.count(c.word(name), version, era, at)
}

// word returns the label for a declared name.
func (c *clientele) word(name string) string {
	name = clean(name)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.names[name] {
		return name
	}
	if len(c.names) >= maxClients || name == "" {
		return other
	}
	c.names[name] = true
	return name
}

// clean makes a declared name short and printable.
func clean(name string) string {
	name = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) && r != unicode.ReplacementChar {
			return r
		}
		return -1
	}, name[:min(len(name), maxClientName)])
	return strings.TrimSpace(strings.ToValidUTF8(name, ""))
}
