package bridge

import (
	"crypto/sha256"
	"slices"
	"sync"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/mrtr"
	"github.com/mcpbridge/bridge/rawjson"
)

// keptCalls are the calls that wait for the same one to come again, by what makes it
// the same. A session has its own. Requests without a session find theirs by their
// principal; whoever has neither a session nor a name cannot come back.
type keptCalls struct {
	mu    sync.Mutex
	calls map[string]*keptCall // nil until there is one
	order []*keptCall          // of those without a session, oldest first
}

// keptCalls returns where the calls of the conversation wait; nil: nowhere.
func (c *conversation) keptCalls() *keptCalls {
	switch {
	case c.capable != nil:
		return &c.kept
	case c.stranger != "":
		return &c.b.kept
	}
	return nil
}

// comesBack reports whether the same call can be made again and be known.
func (c *conversation) comesBack() bool { return c.keptCalls() != nil }

// sameCall is what two requests for the same have in common.
func (c *conversation) sameCall(req *downstream.Request) string {
	params := rawjson.Compact(nil, rawjson.Apply(nil, req.Params, rawjson.Edit{Name: "_meta"}))
	sum := sha256.Sum256(slices.Concat([]byte(c.stranger+"\x00"+string(c.rules.Version)+"\x00"+req.Method+"\x00"), params))
	return string(sum[:])
}

// find returns the call that a request repeats, or nil.
func (t *keptCalls) find(c *conversation, req *downstream.Request) *keptCall {
	if t == nil || !mayAsk(req.Method) {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.calls) == 0 {
		return nil
	}
	return t.calls[c.sameCall(req)]
}

// remember keeps a call for the same one to find. Of two the newer counts. It returns
// the one that must make room: a principal without a session has as many as a session.
func (t *keptCalls) remember(p *keptCall) (evicted *keptCall) {
	if t == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.calls == nil {
		t.calls = map[string]*keptCall{}
	}
	t.calls[p.key] = p
	if p.conv.stranger == "" {
		return nil // the session's own limit holds
	}
	t.order = append(t.order, p)
	own := 0
	for i := len(t.order) - 1; i >= 0; i-- {
		if t.order[i].conv.stranger != p.conv.stranger {
			continue
		}
		if own++; own > p.conv.b.limits.FlowsPerSession {
			return t.order[i]
		}
	}
	return nil
}

// forget is idempotent.
func (t *keptCalls) forget(p *keptCall) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.calls[p.key] == p {
		delete(t.calls, p.key)
	}
	t.order = slices.DeleteFunc(t.order, func(other *keptCall) bool { return other == p })
}

// close ends all that wait.
func (t *keptCalls) close(cause error) {
	t.mu.Lock()
	all := slices.Clone(t.order)
	t.mu.Unlock()
	for _, p := range all {
		p.call.drive(mrtr.Failed(cause))
	}
}
