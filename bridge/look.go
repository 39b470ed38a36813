package bridge

import (
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/observe"
	"github.com/mcpbridge/bridge/translate"
)

// Server tells what the server says of itself, as the answer to server/discover; nil
// when nobody asked yet.
func (b *Bridge) Server() []byte { return b.catalog.Latest().Discover }

// Tools returns the lists of tools that clients were shown lately, as the server gave
// them, and the rules by which clients are shown them.
func (b *Bridge) Tools() (lists [][]byte, rules translate.Rules) {
	return b.catalog.Lists(mcp.MethodToolsList), b.opt.Rules
}

// Cached tells of the results that need not be asked for again.
func (b *Bridge) Cached() []observe.CachedResults { return b.catalog.Cached() }

// Listens returns how many subscriptions at the server are at work, and how many of them
// wait before they are opened again.
func (b *Bridge) Listens() (all, waiting int) { return b.listens.Listens() }

// Omissions returns the entries of the server's lists that clients do not get to see.
func (b *Bridge) Omissions() []observe.Omission { return b.rules.omitted.all() }

// Omit notes that a tool is not shown to clients, as the upstream's client decided.
func (b *Bridge) Omit(tool, reason string) {
	b.rules.omitted.note(translate.Omission{Method: mcp.MethodToolsList, Name: tool, Reason: reason})
}
