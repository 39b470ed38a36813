// Package catalog is what the bridge knows of one server: what it offers, its
// lists as clients of each revision see them, the few facts about its tools that
// later calls depend on, and results that need not be asked for again. It owns for
// whom and how long each of these may be used, their bounds, and their one
// invalidation ([Catalog.Invalidate]). It sends nothing: what it learns passes by.
//
// What calls need to know of tools, the facts and the headers, outlives an invalidation,
// until a newer list replaces it: a call that knows nothing would be told wrong, while one
// that knows too little is refused by the server before it runs, and repaired (B-24, B-25).
//
//	Discover ──▶ Server          what the server offers to a principal; Join for a session
//	Lookup   ──▶ result or Slot  a result that is still fresh, or where to keep one
//	AppendList                   a list as a client sees it; learns its tools
//	Tool                         what a call needs to know of its tool
//	Headers                      which of its arguments headers repeat
//	Declare  ──▶ Declaration     what a client says of itself, one for all who say the same
package catalog

import (
	"bytes"
	"context"
	"hash/maphash"
	"sync/atomic"

	"github.com/mcpbridge/bridge/internal/budget"
	"github.com/mcpbridge/bridge/internal/ttlcache"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/negotiate"
	"github.com/mcpbridge/bridge/upstream/mirror"
)

// Catalog is safe for concurrent use.
type Catalog struct {
	prober  *negotiate.Prober
	server  atomic.Pointer[Server] // of the latest discover
	results *ttlcache.Cache[question, []byte]
	lists   *lists
	tools   *toolbox
	headers mirror.Tools
	joined  joined

	declared shared[*Declaration]
	texts    shared[[]byte]
}

// New returns a catalogue of the server that the prober judges. An account, which may be nil, is
// charged with what it keeps for all; what there is no memory for is not kept.
func New(prober *negotiate.Prober, account *budget.Account) *Catalog {
	results, lists, words := budget.On(account), budget.On(account), budget.On(account)
	return &Catalog{
		prober:  prober,
		results: ttlcache.New[question, []byte](ttlcache.Limits{Entries: maxResults, Bytes: maxResultBytes, Held: &results}),
		lists:   newLists(lists),
		tools:   newToolbox(),
		joined:  joined{seed: maphash.MakeSeed(), known: make(map[uint64]*Server), held: words},
	}
}

// Declare returns the declaration of a client that says this of itself.
func (c *Catalog) Declare(v mcp.Version, clientInfo, capabilities []byte) *Declaration {
	said := bytes.Join([][]byte{[]byte(v), clientInfo, capabilities}, []byte{0}) // which no JSON has
	return c.declared.share(said, func() *Declaration { return declarationOf(v, clientInfo, capabilities) })
}

// Share returns a copy of a text that is the same for many calls; nil for nil. Nobody may change it.
func (c *Catalog) Share(text []byte) []byte {
	return c.texts.share(text, func() []byte { return bytes.Clone(text) })
}

// Tool returns the facts about the tool with this raw name, as the lists of an audience (hop.Audience) said.
func (c *Catalog) Tool(audience string, raw []byte) Tool { return c.tools.about(audience, raw) }

// Knows reports whether any list of tools came for an audience.
func (c *Catalog) Knows(audience string) bool { return c.tools.knowsOf(audience) }

// Wrapped returns the names of the tools that an audience is shown wrapped, for a session to remember: it may go on in another process.
func (c *Catalog) Wrapped(audience string) []string {
	if !c.Wraps() {
		return nil
	}
	return c.tools.wrapped(audience)
}

// Wraps reports whether any tool was ever shown wrapped, to anybody, here or, after WrapsElsewhere, in another process: few servers have one.
func (c *Catalog) Wraps() bool { return c.tools.wraps.Load() }

// WrapsElsewhere is described with Wraps.
func (c *Catalog) WrapsElsewhere() { c.tools.wraps.Store(true) }

// Headers is what tools' schemas say of HTTP headers. Who sends requests to the server, and
// who checks those of others, learn it from the lists that pass by and look it up here.
func (c *Catalog) Headers() *mirror.Tools { return &c.headers }

// Discover returns what the server offers to principal, asking peer where that is
// not known. The error is that of the verdict.
func (c *Catalog) Discover(ctx context.Context, principal string, peer negotiate.Peer) (*Server, error) {
	verdict := c.prober.Probe(ctx, principal, peer)
	if !verdict.Usable() {
		return nil, verdict.Err
	}
	if known := c.server.Load(); known != nil && known.generation == verdict.Generation {
		return known, nil // its sessions share what was read
	}
	server := readServer(&verdict)
	c.server.Store(server)
	return server, nil
}

// Join returns what a session is to keep of what a server said of itself, until Leave: that of a
// session that was told the same, where there is one. The error is one of budget.
func (c *Catalog) Join(s *Server) (*Server, error) { return c.joined.add(s) }

// Leave says that a session keeps no longer what Join returned.
func (c *Catalog) Leave(s *Server) { c.joined.remove(s) }

// Latest returns what the latest discover said, Unknown when nobody asked yet.
func (c *Catalog) Latest() *Server {
	if known := c.server.Load(); known != nil {
		return known
	}
	return Unknown
}
