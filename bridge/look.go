package bridge

import (
	"slices"
	"time"

	"github.com/mcpbridge/bridge/internal/fault"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/mrtr"
	"github.com/mcpbridge/bridge/observe"
	"github.com/mcpbridge/bridge/rawjson"
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
		at := slices.IndexFunc(c.calls, func(k *call) bool { return k.id() == id })
		var found *call
		if at >= 0 {
			found = c.calls[at]
		}
		c.mu.Unlock()
		if found != nil {
			found.resume(mrtr.Failed(errOperator))
			return true
		}
	}
	return false
}

// Look implements downstream.Conversation.
func (c *conversation) Look() observe.Conversation {
	c.mu.Lock()
	seen := observe.Conversation{Version: c.rules.Version, ClientInfo: c.clientInfo, Declared: c.declared, Effective: c.capabilitiesLocked()}
	if c.breaker != nil {
		now := time.Now()
		for k, until := range c.breaker {
			if now.Before(until) {
				seen.Distrusted = append(seen.Distrusted, capabilityOf[k])
			}
		}
	}
	served := c.served
	calls := append([]*call(nil), c.calls...)
	c.mu.Unlock()
	for _, k := range calls {
		if flow, alive := (reporter{k}).sight(served); alive {
			seen.Flows = append(seen.Flows, flow)
		}
	}
	return seen
}

// sight describes the call as it stands; alive is false when it has ended. served has
// the kinds that its client has answered.
func (k reporter) sight(served uint8) (flow observe.Flow, alive bool) {
	reachable := k.out.Reachable()
	k.mu.Lock()
	defer k.mu.Unlock()
	limits, clock := &k.conv.b.flows, &k.flow.Clock
	flow = observe.Flow{
		ID: k.id(), Method: k.flow.Method, Name: nameOf(k.flow.Method, k.name), Reachable: reachable,
		Began: clock.Began, Deadline: clock.Deadline, Until: clock.Due,
		Round: k.flow.Round, StateOnly: k.flow.StateOnly, StateMost: limits.StateOnly,
	}
	switch k.flow.State {
	case mrtr.Sending:
		flow.Waits, flow.Since = observe.ForServer, clock.Due.Add(-limits.Round)
	case mrtr.Gathering:
		flow.Waits, flow.Since, flow.Until = observe.ForClient, clock.AnswerBy.Add(-limits.ServerRequest), clock.AnswerBy
	case mrtr.Pausing:
		flow.Waits, flow.Since = observe.ForTime, time.Now()
	case mrtr.Polling:
		flow.Waits, flow.Since = observe.ForTask, time.Now()
		if !clock.AnswerBy.IsZero() {
			flow.Waits, flow.Since, flow.Until = observe.ForClient, clock.AnswerBy.Add(-limits.ServerRequest), clock.AnswerBy
		}
	}
	for i := range k.flow.Inputs {
		flow.Questions = append(flow.Questions, k.open(&k.flow.Inputs[i], served))
	}
	return flow, !k.flow.Over()
}

// open describes a question of the round.
func (k reporter) open(in *mrtr.Input, served uint8) observe.Open {
	message, _ := rawjson.Text(rawjson.Get(in.Params, "message"))
	return observe.Open{
		Kind: questionKind(in), Asked: in.Asked, Answered: in.Response != nil,
		Proven: served&(1<<kindOf(in.Method)) != 0, Message: fault.Clip(message),
	}
}
