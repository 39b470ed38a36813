package subscriptions

import (
	"strings"
	"sync"
)

// credentials are what a listen is opened with. Two are known: sessions of one principal may
// come with different ones, an older token among them, and which of two the server takes is
// found out by asking. The zero credentials are none.
type credentials struct {
	fresh signal

	mu            sync.Mutex
	newer, before string
}

// offer makes these the ones that are tried next; empty: none are.
func (c *credentials) offer(authorization string) {
	c.mu.Lock()
	known := authorization == "" || c.newer == authorization
	if !known {
		c.newer, c.before = strings.Clone(authorization), c.newer // it is a part of all of a request's head
	}
	c.mu.Unlock()
	if !known {
		c.fresh.send()
	}
}

// newest returns what to open a listen with.
func (c *credentials) newest() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.newer
}

// refused says that the server does not take these. It returns what is closed when newer ones
// have come, and what ends waiting for that.
func (c *credentials) refused(authorization string) (fresh <-chan struct{}, done func()) {
	fresh, done = c.fresh.wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.newer != authorization { // since they were tried
		return already, done
	}
	if c.before != "" {
		c.newer, c.before = c.before, c.newer
	}
	return fresh, done
}

// already is closed.
var already = func() chan struct{} { c := make(chan struct{}); close(c); return c }()
