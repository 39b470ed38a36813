package relay

import (
	"encoding/json"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/clip"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/observe"
	"github.com/mcpbridge/bridge/rawjson"
)

// Bounds of what is kept.
const (
	maxName     = 100 // bytes, of a client's name, and of a capability
	maxDeclared = 16
)

// whoseOf reads what initialize declares.
func whoseOf(params []byte) whose {
	info, declared := map[string]string{}, map[string]struct{}{}
	for _, member := range []string{"name", "version"} {
		text, _ := rawjson.Text(rawjson.Get(rawjson.Get(params, "clientInfo"), member))
		info[member] = clip.Text(text, maxName)
	}
	for name := range rawjson.Members(rawjson.Get(params, "capabilities")) {
		if len(declared) == maxDeclared {
			break
		}
		declared[clip.Text(string(name), maxName)] = struct{}{}
	}
	var w whose
	w.info, _ = json.Marshal(info) // maps of texts are JSON
	w.declared, _ = json.Marshal(declared)
	return w
}

// Look implements downstream.Conversation.
func (c *conversation) Look() observe.Conversation {
	seen := observe.Conversation{Version: c.Version(), Relayed: true, ClientInfo: c.whose.info, Declared: c.whose.declared, Effective: c.whose.declared}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, k := range c.calls {
		if k.method != mcp.MethodInitialize {
			seen.Flows = append(seen.Flows, c.sightLocked(k))
		}
	}
	return seen
}

// sightLocked describes a call. Of a question nobody here knows how long it may take: the call may take so long.
func (c *conversation) sightLocked(k *pendingCall) observe.Flow {
	name, _ := rawjson.Text(k.name)
	f := observe.Flow{
		ID: observe.CallID(k.number), Method: clip.Text(k.method, maxName), Name: clip.Text(name, maxName), Waits: observe.ForServer,
		Began: k.began, Since: k.sign, Deadline: k.began.Add(c.relay.opt.Call), Reachable: k.out.Reachable(),
	}
	for _, q := range k.open {
		if f.Waits == observe.ForServer {
			f.Waits, f.Since = observe.ForClient, q.at
		}
		f.Questions = append(f.Questions, observe.Open{ID: observe.QuestionID(string(q.id)), Method: q.kind.Method(), Kind: q.kind, Asked: true, Proven: c.proven})
	}
	return f
}

// EndCall implements downstream.Conversation.
func (c *conversation) EndCall(id string) bool {
	c.mu.Lock()
	for call, k := range c.calls {
		if k.method == mcp.MethodInitialize || observe.CallID(k.number) != id {
			continue
		}
		why := downstream.ErrCallEnded
		if k.leave != nil {
			why = downstream.Unknown(why)
		}
		end := c.dismissLocked(call, k, "ended by who runs the bridge")
		c.mu.Unlock()
		end(why)
		return true
	}
	c.mu.Unlock()
	return false
}
