package stdio

import (
	"context"
	"fmt"
	"time"

	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/upstream"
)

// ownParams are those of a request that concerns nobody but the bridge.
const ownParams = `{"_meta":{"` + mcp.MetaProtocolVersion + `":"` + string(mcp.V20260728) + `","` + mcp.MetaClientCapabilities + `":{},"` +
	mcp.MetaClientInfo + `":{"name":"mcp-bridge","version":"1"}}}`

func ownDiscover() *request {
	return &request{call: &upstream.Call{Method: mcp.MethodDiscover}, params: []byte(ownParams)}
}

// attend greets a child, if that is to be, and guards it from then on: how long it may be silent before is for the greeting to say.
func (s *Client) attend(c *child) {
	if c.ready != nil {
		s.greet(c)
	}
	c.guard(s.opt.Ping)
}

// guard asks a child that is silent whether it still lives, and has it replaced
// when it does not even answer that. The clock of this is the guard's own, not
// that of any call. It returns when the child ends.
func (c *child) guard(every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	heard := c.heard.Load()
	for {
		select {
		case <-tick.C:
		case <-c.ended:
			return
		}
		if now := c.heard.Load(); now != heard {
			heard = now
			continue
		}
		if c.stuck(tick.C, heard) {
			c.endStuck(every, "does not answer a ping", "did not answer a ping")
			return
		}
	}
}

// endStuck ends a child that has been silent for so long: what it does is for the log, what it did for whose calls end with it.
func (c *child) endStuck(silent time.Duration, does, did string) {
	c.process.log.Warn().Int("pid", c.cmd.Process.Pid).Dur("silent", silent).
		Msg("the upstream process is stuck: it " + does + "; it is ended, and started anew for the next call")
	c.blame(fmt.Sprintf("the upstream process was stuck: it %s for %s, and was ended", did, silent))
	if !c.served.Load() { // nobody can tell whether it would have come up
		c.ours.Store(true)
	}
	c.stop()
}

// stuck pings a child and reports whether it left that unanswered from one tick
// to the next. A server that does one thing at a time answers nothing while a
// tool runs, so calls that it was given before the ping excuse it for as long as
// they may take.
func (c *child) stuck(tick <-chan time.Time, heard uint64) bool {
	before := c.calls()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	answered := make(chan struct{})
	go func() { // any answer will do
		defer close(answered)
		_, _ = c.do(ctx, ownDiscover(), sink{})
	}()
	defer func() { cancel(); <-answered }()
	for {
		select {
		case <-answered:
			return false
		case <-c.ended:
			return false
		case <-tick:
		}
		if c.heard.Load() != heard {
			return false
		}
		if !c.anyWaits(before) {
			return true
		}
	}
}

// calls returns the requests under way that will have an end.
func (p *pipe) calls() (all []*waiter) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, w := range p.waiting {
		if !w.listen {
			all = append(all, w)
		}
	}
	return all
}

// anyWaits reports whether one of these requests is still under way.
func (p *pipe) anyWaits(calls []*waiter) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, w := range calls {
		if p.waiting[w.id] == w {
			return true
		}
	}
	return false
}
