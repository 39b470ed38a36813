package stdio

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/mcpbridge/bridge/internal/inorder"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/upstream"
)

// greetings is what a client knows of a command that has answered server/discover, whose processes are therefore asked
// that first, each as it starts. One that keeps ending at it, or leaves it unanswered, may be an older version by now: there are legacy
// servers that end at a method which they do not know, or say nothing (E-45). It is guarded by the client's lock.
//
//	it ends at server/discover, twice ──▶ the next one is asked initialize, and is ended
//	   ├─ it offers no legacy version ──▶ the next one is asked server/discover again
//	   └─ it offers one ──▶ the next one is asked server/discover once more
//	        ├─ it answers ──▶ it had not been well
//	        └─ it ends ──▶ it is a legacy server, for as long as that is believed, or until who judges was told
//	it is silent ──▶ it is asked initialize as well, and is ended when it answers that
//	   ├─ and server/discover, too ──▶ it was slow: the next one is given twice the time
//	   └─ that alone ──▶ it is a legacy server
type greetings struct {
	ended   int       // processes in a row that ended at server/discover
	offered []string  // the versions that one has offered meanwhile
	until   time.Time // until when the command counts as a legacy server that offers those
}

const (
	endsAtDiscover = 2
	believed       = 15 * time.Second // it takes a few processes to learn it again
	// lateness is how much later than initialize a server may answer the server/discover that it was asked before.
	lateness = time.Second
	// maxPatience bounds how long a process may be silent that comes up slowly each time.
	maxPatience = 10 * time.Minute
)

// shakesHands reports whether the next process is to be asked initialize.
func (g *greetings) shakesHands() bool { return g.ended == endsAtDiscover && g.offered == nil }

// over learns from the end of a process that was asked first.
func (g *greetings) over(c *child) {
	switch {
	case len(c.offered) > 0 && c.handshake:
		g.offered = c.offered
	case len(c.offered) > 0:
		g.offered, g.until = c.offered, time.Now().Add(believed)
	case c.handshake:
		*g = greetings{ended: 1}
	case c.served.Load():
		*g = greetings{}
	case g.offered != nil:
		g.until = time.Now().Add(believed)
	default:
		g.ended++
	}
}

// known returns what the command offers as a legacy server, nil if it is not known to be one.
func (g *greetings) known() []string {
	if time.Now().Before(g.until) {
		return g.offered
	}
	if !g.until.IsZero() {
		*g = greetings{}
	}
	return nil
}

// greet asks a child whether it has come up: until it has answered that it is given nothing else,
// which could end it and look like a crash at its start, or be executed by a server of another era.
func (s *Client) greet(c *child) {
	defer close(c.ready)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	s.mu.Lock()
	patience := s.patience
	s.mu.Unlock()
	if c.handshake {
		within, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		c.offered = c.shakeHands(within)
		c.dismiss()
		return
	}
	discovered := make(chan struct{})
	go func() {
		if c.discovers(ctx, ownDiscover()) {
			close(discovered)
		}
	}()
	silent := time.NewTimer(patience)
	defer silent.Stop()
	select {
	case <-discovered:
	case <-c.ended:
	case <-silent.C:
		s.press(ctx, c, discovered, patience)
	}
}

// press asks a child that is silent at server/discover initialize, too. Who waited before excuses its silence. When it speaks both eras
// it is ended: there are servers that are of the one which asks first.
func (s *Client) press(ctx context.Context, c *child, discovered <-chan struct{}, patience time.Duration) {
	excuse := c.awaited.Swap(new(atomic.Int64)) // for as long as they may take; who comes now does not
	shaken := make(chan []string, 1)
	go func() { shaken <- c.shakeHands(ctx) }()
	look := time.NewTicker(patience)
	defer look.Stop()
	for {
		select {
		case <-discovered:
			select {
			case offered := <-shaken:
				if len(offered) > 0 {
					s.waitsLonger(c)
				}
			case <-time.After(lateness):
			}
			return
		case offered := <-shaken:
			if len(offered) == 0 {
				continue
			}
			if c.await(discovered, lateness) {
				s.waitsLonger(c)
				return
			}
			c.offered = offered
			c.dismiss()
			return
		case <-look.C:
			if excuse.Load() == 0 {
				c.endStuck(patience)
				<-c.ended
				return
			}
		case <-c.ended:
			return
		}
	}
}

// waitsLonger ends a child that was asked initialize while it was only slow, and has the next ones be given more time.
func (s *Client) waitsLonger(c *child) {
	s.mu.Lock()
	s.patience = min(2*s.patience, maxPatience)
	s.mu.Unlock()
	c.dismiss()
}

// askedAgain asks a child that has left server/discover unanswered once more, right before it is asked initialize: it may have been
// slow to come up. What it returns is called after that, and reports whether the child speaks this era after all.
func (c *child) askedAgain(ctx context.Context) (late func() bool) {
	if !c.silent.Load() {
		return func() bool { return false }
	}
	var order inorder.Chain
	this, that := new(inorder.Link), new(inorder.Link)
	order.Add(this)
	order.Add(that)
	req, answered := ownDiscover(), make(chan struct{})
	req.call.Link = this
	go func() {
		defer close(answered)
		defer this.Pass()
		c.discovers(ctx, req)
	}()
	<-that.Time()
	return func() bool {
		c.await(answered, lateness)
		return c.speaks()
	}
}

// discovers asks a child what it is, and reports whether it has answered, in whatever way.
func (c *child) discovers(ctx context.Context, req *request) bool {
	ans, err := c.do(ctx, req, sink{})
	if err == nil {
		c.served.Store(true)
		c.introduced(ans)
		return true
	}
	return c.alive() && ctx.Err() == nil
}

// shakeHands asks a child initialize, and returns the versions that it offers as a legacy server, nil for none. Whatever it
// answers, the session that it is in by now is nobody's.
func (c *child) shakeHands(ctx context.Context) []string {
	ans, err := c.do(ctx, &request{call: &upstream.Call{Method: mcp.MethodInitialize}, params: []byte(upstream.LegacyInitialize)}, sink{})
	if err != nil {
		return nil
	}
	c.served.Store(true)
	return slices.DeleteFunc(upstream.Offered(ans), func(v string) bool { return !mcp.Version(v).IsLegacy() })
}

// dismiss ends a child in which the bridge is in a session, and waits for that.
func (c *child) dismiss() {
	c.ours.Store(true)
	c.stop()
	<-c.ended
}
