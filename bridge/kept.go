package bridge

import (
	"slices"
	"sync"
	"time"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/mrtr"
)

// keptCall is the Reply of a call that may outlive its request: a person takes
// longer to answer than the client waits. It is
//
//	attached   a request waits for the answer, and what is sent goes to it
//	detached   that request was answered with what is pending; answers are held back,
//	           so that nothing runs for which nobody waits
//	over       the call ended
//
// From attached to detached it goes when the request's time is over while a
// question is open; back, when the same call comes again: same session and principal,
// same method, same params. Then open questions are shown again, and held answers count.
type keptCall struct {
	conv     *conversation
	call     *call
	key      string        // of the same call
	patience time.Duration // of the client; 0: none is known

	mu    sync.Mutex
	out   downstream.Reply // of the request that waits; nil: detached or over
	id    jsonrpc.ID       // of that request
	token []byte           // of its progress, raw; nil: it wants none
	first bool             // it is the request that the flow began with
	since time.Time        // when that request came
	over  bool
	open  []pendingQuestion
	held  []mrtr.Event
	timer *time.Timer // of the request, from the first question on; nil before
}

// newKeptCall is newCall for a request that the call may outlive, where there is
// such a thing.
func (c *conversation) newKeptCall(caller downstream.Caller, req downstream.Request, out downstream.Reply) *call {
	patience := c.patience()
	if c.asks() == nil && patience == 0 || !mayAsk(req.Method) {
		return c.newCall(caller, req, out)
	}
	p := &keptCall{conv: c, key: c.sameCall(&req), patience: patience, out: out, id: req.ID, token: req.ProgressToken, first: true, since: time.Now()}
	p.call = c.newCall(caller, req, p)
	p.call.kept = p
	return p.call
}

// mayAsk reports whether a server may ask something before it answers (D-I1).
func mayAsk(method string) bool {
	return method == mcp.MethodToolsCall || method == mcp.MethodPromptsGet || method == mcp.MethodResourcesRead
}

// patience is how long the client waits for a call; 0: for as long as it takes.
func (c *conversation) patience() time.Duration {
	if c.b.opt.Patience == nil || c.clientInfo == nil {
		return 0
	}
	return c.b.opt.Patience(c.clientInfo)
}

// rejoin gives a request to the kept call that it repeats, and reports whether there
// is one.
func (c *conversation) rejoin(caller downstream.Caller, req *downstream.Request, out downstream.Reply) bool {
	kept := c.keptCalls().find(c, req)
	if kept == nil || !kept.call.of(caller) {
		return false
	}
	open, held, ok := kept.attach(req, out)
	if !ok {
		return false
	}
	c.ended(req.ID)
	kept.call.renew(caller)
	for i := range open {
		if open[i].msg.Method != "" && !open[i].met {
			out.Send(open[i].msg)
		}
	}
	if len(open) > 0 {
		kept.tell()
	}
	for _, ev := range held {
		kept.call.drive(ev)
	}
	kept.call.drive(mrtr.Tick(true)) // what came due while nobody waited
	return true
}

// attach gives a detached call a request that waits. It returns what is open and what
// was held back.
func (p *keptCall) attach(req *downstream.Request, out downstream.Reply) (open []pendingQuestion, held []mrtr.Event, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over || p.out != nil {
		return nil, nil, false
	}
	p.out, p.id, p.token, p.first, p.since = out, req.ID, req.ProgressToken, false, time.Now()
	held, p.held = p.held, nil
	p.waitLocked()
	return slices.Clone(p.open), held, true
}

// waitLocked sets the clock of the request by what is open: for a page a call waits for
// a while, for the client itself no longer than that waits.
func (p *keptCall) waitLocked() {
	if p.timer != nil {
		p.timer.Stop()
		p.timer = nil
	}
	linked := slices.ContainsFunc(p.open, func(q pendingQuestion) bool { return q.link != "" && !q.met })
	switch {
	case p.out == nil || len(p.open) == 0:
	case linked:
		p.timer = time.AfterFunc(p.conv.b.opt.Wait, p.expire)
	case p.patience > 0:
		p.timer = time.AfterFunc(time.Until(p.since.Add(p.patience)), p.expire)
	}
}

// hold keeps an event for the request that is to come, and reports whether there is
// none that waits.
func (p *keptCall) hold(ev mrtr.Event) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.out != nil || p.over {
		return false
	}
	p.held = append(p.held, ev)
	return true
}

// reply returns the request that waits, or nil.
func (p *keptCall) reply() downstream.Reply {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out
}

// end takes the last request that waits, or nil.
func (p *keptCall) end() (out downstream.Reply, id jsonrpc.ID, first bool) {
	p.conv.keptCalls().forget(p)
	p.mu.Lock()
	defer p.mu.Unlock()
	out, id, first = p.out, p.id, p.first
	p.out, p.over, p.open, p.held = nil, true, nil, nil
	p.waitLocked()
	return out, id, first
}
