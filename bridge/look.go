package bridge

import (
	"slices"
	"time"

	"github.com/mcpbridge/bridge/bridge/call"
	"github.com/mcpbridge/bridge/bridge/ends"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/mrtr"
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

// Kept tells of the results that need not be asked for again.
func (b *Bridge) Kept() []observe.Kept { return b.catalog.Kept() }

// Listens returns how many subscriptions at the server are at work, and how many of them
// wait before they are opened again.
func (b *Bridge) Listens() (all, waiting int) { return b.listens.Listens() }

// EndCall ends the call that [observe.Flow] names, with an error for its client. It
// reports whether there was one.
func (b *Bridge) EndCall(id string) bool {
	b.mu.Lock()
	open := b.conversations.All()
	b.mu.Unlock()
	for _, c := range open {
		c.mu.Lock()
		at := slices.IndexFunc(c.calls, func(k *call.Call) bool { return k.Name() == id })
		var found *call.Call
		if at >= 0 {
			found = c.calls[at]
		}
		c.mu.Unlock()
		if found != nil {
			found.Resume(mrtr.Failed(ends.ErrOperator))
			return true
		}
	}
	return false
}

// Look implements downstream.Conversation.
func (c *conversation) Look() observe.Conversation {
	c.mu.Lock()
	seen := observe.Conversation{Version: c.Rules.Version, ClientInfo: c.ClientInfo, Declared: c.declared, Effective: c.capabilitiesLocked()}
	if c.breaker != nil {
		now := time.Now()
		for k, until := range c.breaker {
			if now.Before(until) {
				seen.Distrusted = append(seen.Distrusted, call.CapabilityOf[k])
			}
		}
	}
	served := c.served
	calls := append([]*call.Call(nil), c.calls...)
	c.mu.Unlock()
	for _, k := range calls {
		if flow, alive := k.Sight(served); alive {
			seen.Flows = append(seen.Flows, flow)
		}
	}
	return seen
}
