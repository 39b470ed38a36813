// Package vouch knows whose credentials a server vouches for. The bridge does not read
// credentials: whoever likes can make up as many as they like, so that bringing some proves
// nothing. That the server has accepted them proves something where it is known to refuse
// others the same thing. Whoever is vouched for has shares of what is scarce of its own; of
// all others those of one address have them together.
package vouch

import (
	"hash/maphash"
	"sync"
	"sync/atomic"

	"github.com/mcpbridge/bridge/mcp"
)

// What credentials are accepted for, and refused. A server may tell everybody what it is, and
// let only some call its tools.
type What uint32

// The kinds that are told apart. Of what is no kind nothing is learnt.
const (
	Nothing  What = 0
	Discover What = 1 << iota
	Lists
	Calls
	Reads
	Prompts
	Opening // of a session with a legacy server
	Session // whatever is asked in one
)

// Of returns what a request of this method asks for.
func Of(method string) What {
	switch method {
	case mcp.MethodDiscover:
		return Discover
	case mcp.MethodToolsList, mcp.MethodPromptsList, mcp.MethodResourcesList, mcp.MethodResourcesTemplatesList:
		return Lists
	case mcp.MethodToolsCall:
		return Calls
	case mcp.MethodResourcesRead:
		return Reads
	case mcp.MethodPromptsGet:
		return Prompts
	}
	return Nothing
}

// remembered is how many credentials are remembered at least, of those that were accepted
// last; at most it is twice as many.
const remembered = 16 << 10

// Credentials are those that one server was shown. They are kept as digests under a key of
// the process. The methods are safe for concurrent use. Those of the nil Credentials do
// nothing, and nobody is vouched for.
type Credentials struct {
	seed   maphash.Seed
	guards atomic.Uint32 // of What: what somebody was refused

	mu      sync.RWMutex
	newer   map[uint64]What // what they were accepted for
	earlier map[uint64]What
}

// New returns Credentials of a server of which nothing is known.
func New() *Credentials {
	return &Credentials{seed: maphash.MakeSeed(), newer: make(map[uint64]What)}
}

// Accepted notes that the server has done what a request with these credentials asked for.
func (c *Credentials) Accepted(authorization string, what What) {
	if c == nil || authorization == "" || what == Nothing {
		return
	}
	key := maphash.String(c.seed, authorization)
	c.mu.RLock()
	known := c.newer[key]
	c.mu.RUnlock()
	if known&what != 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.newer) >= remembered {
		c.earlier, c.newer = c.newer, make(map[uint64]What)
	}
	c.newer[key] |= c.earlier[key] | what
}

// guarded returns what a server does not do for everybody that refused somebody this. Who is
// not even told what it is gets nothing of it.
func guarded(what What) What {
	switch what {
	case Discover:
		return Discover | guarded(Lists)
	case Lists:
		return Lists | Calls | Reads | Prompts
	case Opening:
		return Opening | Session
	}
	return what
}

// Refused notes that the server wants other credentials than these for something; "": that
// it wants some.
func (c *Credentials) Refused(authorization string, what What) {
	if c == nil || what == Nothing {
		return
	}
	c.guards.Or(uint32(guarded(what)))
	if authorization == "" {
		return
	}
	key := maphash.String(c.seed, authorization)
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.newer, key)
	delete(c.earlier, key)
}

// Vouched reports whether the server has accepted these credentials for something that it
// does not do for everybody.
func (c *Credentials) Vouched(authorization string) bool {
	if c == nil || authorization == "" {
		return false
	}
	guards := What(c.guards.Load())
	if guards == Nothing {
		return false
	}
	key := maphash.String(c.seed, authorization)
	c.mu.RLock()
	defer c.mu.RUnlock()
	return (c.newer[key]|c.earlier[key])&guards != 0
}
