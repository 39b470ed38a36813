package stdio

import (
	"context"
	"errors"
	"slices"
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
//	it is silent ──▶ it is asked initialize as well, and given as long again
//	   ├─ it answers both ──▶ it was slow: it is ended, and the next one is given more time
//	   ├─ it answers initialize alone, for a quarter of that ──▶ it is ended, and is a legacy server
//	   └─ it answers neither ──▶ it hangs: it is ended, and the next one is given more time
type greetings struct {
	ended    int           // processes in a row that ended at server/discover
	offered  []string      // the versions that one has offered meanwhile
	until    time.Time     // until when the command counts as a legacy server that offers those
	patience time.Duration // with one that is silent, until it is asked initialize as well
}

const (
	endsAtDiscover = 2
	believed       = 15 * time.Second // it takes a few processes to learn it again
	evident        = time.Hour        // how long it waits for somebody who asks, what a silent one has shown
	// lateness is how much later than the one a server may answer the other of the two that it is asked.
	lateness = time.Second
	// maxPatience bounds what processes are given that hang each time.
	maxPatience = 10 * time.Minute
)

// shakesHands reports whether the next process is to be asked initialize.
func (g *greetings) shakesHands() bool { return g.ended == endsAtDiscover && g.offered == nil }

// over learns from the end of a process that was asked first.
func (g *greetings) over(c *child) {
	switch {
	case len(c.offered) > 0 && c.handshake:
		g.offered = c.offered
	case len(c.offered) > 0 && time.Since(c.judged) < evident:
		g.offered, g.until = c.offered, time.Now().Add(believed)
	case c.handshake:
		g.forget()
		g.ended = 1
	case c.served.Load():
		g.forget()
	case c.ours.Load(): // which shows nothing
	case g.offered != nil:
		g.until = time.Now().Add(believed)
	default:
		g.ended++
	}
}

// forget drops what is known but for how long processes take.
func (g *greetings) forget() { *g = greetings{patience: g.patience} }

// known returns what the command offers as a legacy server, nil if it is not known to be one.
func (g *greetings) known() []string {
	if time.Now().Before(g.until) {
		return g.offered
	}
	if !g.until.IsZero() {
		g.forget()
	}
	return nil
}

// least is the patience to begin with: as long as a command may take for its first answer.
func (o *Options) least() time.Duration { return max(o.Ping, o.Start) }

// waits returns how long a child may be silent.
func (s *Client) waits() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.greetings.patience
}

// learns has the next children be given twice the time that one took.
func (s *Client) learns(took time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.greetings.patience = max(s.opt.least(), min(2*took, maxPatience))
}

// greet asks a child whether it has come up: until it has answered that it is given nothing else,
// which could end it and look like a crash at its start, or be executed by a server of another era.
func (s *Client) greet(c *child) {
	defer close(c.ready)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	patience, begun := s.waits(), time.Now()
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
		s.learns(time.Since(begun))
	case <-c.ended:
	case <-silent.C:
		s.press(ctx, c, discovered, begun, patience)
	}
}

// press asks a child that is silent at server/discover initialize as well. It is ended if it may speak both eras: there are
// servers that are of the one which asks first.
func (s *Client) press(ctx context.Context, c *child, discovered <-chan struct{}, begun time.Time, patience time.Duration) {
	shaken := make(chan []string, 1)
	go func() { shaken <- c.shakeHands(ctx) }()
	slow, heard, offered := c.both(discovered, shaken, patience)
	if slow {
		s.learns(time.Since(begun))
	}
	switch {
	case !c.alive(): // perhaps it was that
		s.learns(patience)
		return
	case slow && heard && len(offered) == 0: // it speaks this era alone
		return
	case slow && (!heard || c.speaks()):
	case len(offered) > 0:
		c.offered, c.judged = offered, time.Now()
	default:
		s.learns(patience)
		c.endStuck(time.Since(begun), "does not come up", "did not come up")
	}
	c.dismiss()
}

// both waits for what a child answers to server/discover and to initialize: whether to the one, whether to the other, and which
// versions it offers then. Where it has answered only one it has a little time for the other; one that is not slow has the whole.
func (c *child) both(discovered <-chan struct{}, shaken <-chan []string, whole time.Duration) (slow, heard bool, offered []string) {
	over := time.NewTimer(whole)
	defer over.Stop()
	for {
		select {
		case offered = <-shaken:
			if heard = true; len(offered) > 0 {
				over.Reset(whole / 4)
			}
		case <-discovered:
			if !heard {
				select {
				case offered = <-shaken:
					heard = true
				case <-time.After(lateness):
				}
			}
			return true, heard, offered
		case <-over.C:
			if len(offered) > 0 {
				slow = c.await(discovered, lateness)
			}
			return slow, heard, offered
		case <-c.ended:
			return false, heard, offered
		}
	}
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
	ans, err := c.ask(ctx, req)
	if err == nil {
		c.served.Store(true)
		c.introduced(ans)
		return true
	}
	return c.alive() && ctx.Err() == nil
}

// ask asks a child something of the bridge's own, again and again while there is no memory for that.
func (c *child) ask(ctx context.Context, req *request) (*upstream.Answer, error) {
	for {
		ans, err := c.do(ctx, req, sink{})
		if f, ok := errors.AsType[*upstream.Failure](err); !ok || f.Cause != upstream.NoMemory {
			return ans, err
		}
		req.call.Link.Pass()
		select {
		case <-time.After(lateness):
		case <-ctx.Done():
			return nil, err
		case <-c.ended:
			return nil, err
		}
	}
}

// shakeHands asks a child initialize, and returns the versions that it offers as a legacy server, nil for none. Whatever it
// answers, the session that it is in by now is nobody's.
func (c *child) shakeHands(ctx context.Context) []string {
	ans, err := c.ask(ctx, &request{call: &upstream.Call{Method: mcp.MethodInitialize}, params: []byte(upstream.LegacyInitialize)})
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
