package bridge

import (
	"time"

	"github.com/mcpbridge/bridge/bridge/again"
	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/budget"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/mrtr"
	"github.com/mcpbridge/bridge/translate"
)

// newKeptCall is newCall for a request that the call may outlive, where there is
// such a thing.
func (c *conversation) newKeptCall(caller downstream.Caller, req downstream.Request, out downstream.Reply) *call {
	patience := c.patience()
	if c.asks() == nil && patience == 0 || !again.MayAsk(req.Method) {
		return c.newCall(caller, req, out)
	}
	p := again.New(again.Options{
		Session: c, Calls: c.repeats(), Stranger: c.stranger, Version: c.rules.Version, Wait: c.b.opt.Wait, Patience: patience,
	}, req, out)
	k := c.newCall(caller, req, p)
	k.kept = p
	p.Bind(k)
	return k
}

// patience is how long the client waits for a call; 0: for as long as it takes.
func (c *conversation) patience() time.Duration {
	if c.b.opt.Patience == nil || c.clientInfo == nil {
		return 0
	}
	return c.b.opt.Patience(c.clientInfo)
}

func (c *conversation) newCall(caller downstream.Caller, req downstream.Request, out downstream.Reply) *call {
	k := &call{conv: c, name: req.Name, http: caller.HTTP, caller: caller, out: out, serial: c.b.serial.Add(1)}
	k.own.choose(k.serial, c.b.opt.Watch)
	k.held.hold = budget.On(c.account)
	k.flow = mrtr.Flow{
		ID: req.ID, Method: req.Method, Params: req.Params, Principal: caller.Principal, Limits: &c.b.flows, Home: mrtr.Address{Session: caller.Session},
		ListsAsk: c.b.opt.Draft != nil && c.b.opt.Draft(), TasksDeclared: c.server.Tasks && req.Method == mcp.MethodToolsCall,
	}
	k.flow.Capabilities, k.flow.Level = c.declares()
	if out.Interactive() {
		k.flow.Progress.Token = req.ProgressToken
	} else { // nothing can reach the client before the response
		k.flow.Capabilities, k.flow.Level = emptyObject, ""
	}
	k.asking = asker{call: k, own: k.flow.Capabilities}
	k.saving = saving{call: k, safe: out.Safe()}
	if room := c.asks(); room != nil {
		k.roots = room.Roots(caller.Header)
		k.flow.Capabilities = c.b.catalog.Share(room.Capabilities(k.asking.own, k.asking.reach()))
	}
	if k.flow.TasksDeclared {
		k.flow.Capabilities = translate.WithTasks(k.flow.Capabilities)
	}
	return k
}

// start registers the call, for a cancellation to find, and makes its requests. It
// returns when the call is over or waits.
func (k *call) start() {
	if !k.conv.enter(k) { // over before it began
		k.out.Abandon()
		return
	}
	k.Drive(mrtr.Started())
}
