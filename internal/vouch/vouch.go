// Package vouch knows whose credentials a server vouches for. The bridge does not read
// credentials: whoever likes can make up as many as they like, so that bringing some proves
// nothing. That the server has accepted them for something proves something where it has
// refused others the very same thing: servers have tools for everybody beside those that
// they guard. Whoever is vouched for has shares of what is scarce of its own; of all others
// those of one address have them together.
package vouch

import (
	"hash/maphash"
	"sync"
	"sync/atomic"

	"github.com/mcpbridge/bridge/internal/bearer"
	"github.com/mcpbridge/bridge/mcp"
)

// Thing is what a request asks for. The zero Thing is nothing that anything is learnt of.
type Thing struct {
	Method string
	Name   []byte // of the tool or the prompt, or the resource's URI; it is not kept
}

// Of returns what a request asks for by its method, and the name in it.
func Of(method string, name []byte) Thing {
	switch method {
	case mcp.MethodToolsCall, mcp.MethodResourcesRead, mcp.MethodPromptsGet:
		return Thing{method, name}
	case mcp.MethodDiscover, mcp.MethodInitialize, mcp.MethodToolsList, mcp.MethodPromptsList,
		mcp.MethodResourcesList, mcp.MethodResourcesTemplatesList:
		return Thing{Method: method}
	}
	return Thing{}
}

// opens reports whether who is refused the thing gets nothing else of the server either.
func (t Thing) opens() bool {
	return t.Method == mcp.MethodDiscover || t.Method == mcp.MethodInitialize
}

// How many digests are remembered at least, of those that were used last.
const (
	credentials = 16 << 10
	things      = 1 << 10
)

// Credentials are those that one server was shown. They are kept as digests under a key of
// the process, and so is what it guards. The methods are safe for concurrent use. Those of
// the nil Credentials do nothing, and nobody is vouched for.
type Credentials struct {
	seed   maphash.Seed
	guards atomic.Bool // it has refused somebody something

	mu       sync.RWMutex
	all      bool   // it guards everything
	refused  recent // things; a stranger can fill it, with names of things that are not there
	proven   recent // of these, those that somebody was accepted for since: strangers add none
	accepted recent // credentials, for something that it guards
	told     refusals

	news   chan struct{} // there is something that others do not know of
	record *record       // where they are told; nil: there are none
}

// New returns Credentials of a server of which nothing is known.
func New() *Credentials {
	return &Credentials{seed: maphash.MakeSeed(), refused: newRecent(things), proven: newRecent(things), accepted: newRecent(credentials), news: make(chan struct{}, 1)}
}

// Guards reports whether the server has refused anybody anything: as long as it has not,
// nothing is learnt from whom it accepts.
func (c *Credentials) Guards() bool { return c != nil && c.guards.Load() }

func (c *Credentials) digest(t Thing) uint64 {
	var h maphash.Hash
	h.SetSeed(c.seed)
	_, _ = h.WriteString(t.Method)
	_ = h.WriteByte(0)
	_, _ = h.Write(t.Name)
	return h.Sum64()
}

// Learns reports whether something would be learnt from a server that accepts these credentials
// for something. Nothing is learnt of a header in which servers may find what they like: one token
// that is good would be vouched for under as many headers as somebody makes of it.
func (c *Credentials) Learns(authorization string, what Thing) bool {
	if !c.Guards() || !bearer.Single(authorization) || what.Method == "" {
		return false
	}
	key, thing := maphash.String(c.seed, authorization), c.digest(what)
	c.mu.RLock()
	defer c.mu.RUnlock()
	guarded := c.all || c.proven.has(thing) || c.refused.has(thing)
	known := c.accepted.fresh(key) && (c.all || c.proven.fresh(thing))
	return guarded && !known
}

// Accepted notes that the server has done what a request with these credentials asked for.
func (c *Credentials) Accepted(authorization string, what Thing) {
	if !c.Learns(authorization, what) {
		return
	}
	key, thing := maphash.String(c.seed, authorization), c.digest(what)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.accepted.use(key)
	if !c.all {
		c.proven.use(thing)
		c.noteLocked(what, true)
	}
}

// Refused notes that the server wants other credentials than these for something. That it
// wants some says nothing of whom it takes: a server may refuse only who brings none.
func (c *Credentials) Refused(authorization string, what Thing) {
	if c == nil || authorization == "" || what.Method == "" {
		return
	}
	key, thing := maphash.String(c.seed, authorization), c.digest(what)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all = c.all || what.opens()
	c.refused.use(thing)
	c.accepted.remove(key)
	c.guards.Store(true)
	c.noteLocked(what, false)
}

// Vouched reports whether the server has accepted these credentials for something that it
// has refused others.
func (c *Credentials) Vouched(authorization string) bool {
	if !c.Guards() || authorization == "" {
		return false
	}
	key := maphash.String(c.seed, authorization)
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.accepted.has(key)
}

// Singled reports whether the server has accepted these credentials for the very thing that it
// has refused others. Vouched may say so of a server, too, that has refused others to say what it is.
func (c *Credentials) Singled(authorization string) bool {
	if !c.Vouched(authorization) {
		return false
	}
	c.mu.RLock()
	defer c.mu.RUnlock()
	return !c.all
}
