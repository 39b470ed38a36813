package stdio

import (
	"context"
	"slices"
	"time"

	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/upstream"
)

// greetings is what a client knows of a command that has answered server/discover, whose processes are therefore asked
// that first, each as it starts. One that keeps ending at it may be an older version by now: there are legacy servers that
// end at a method which they do not know (E-45). It is guarded by the client's lock.
//
//	it ends at server/discover, twice ──▶ the next one is asked initialize, and is ended
//	   ├─ it offers no legacy version ──▶ the next one is asked server/discover again
//	   └─ it offers one ──▶ the next one is asked server/discover once more
//	        ├─ it answers ──▶ it had not been well
//	        └─ it ends ──▶ it is a legacy server, for as long as that is believed, or until who judges was told
type greetings struct {
	ended   int       // processes in a row that ended at server/discover
	offered []string  // the versions that one has offered meanwhile
	until   time.Time // until when the command counts as a legacy server that offers those
}

const (
	endsAtDiscover = 2
	believed       = 15 * time.Second // it takes a few processes to learn it again
)

// shakesHands reports whether the next process is to be asked initialize.
func (g *greetings) shakesHands() bool { return g.ended == endsAtDiscover && g.offered == nil }

// over learns from the end of a process that was asked first.
func (g *greetings) over(c *child) {
	switch {
	case c.handshake && len(c.offered) > 0:
		g.offered = c.offered
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
// which could end it and look like a crash at its start. One that leaves that unanswered
// for too long gets its requests all the same. No child is asked both: there are servers of both eras that are of the one which
// asks first.
func (c *child) greet(limit time.Duration) {
	defer close(c.ready)
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	if c.handshake {
		c.offered = c.shakeHands(ctx)
		c.ours.Store(true)
		c.stop()
		<-c.ended
		return
	}
	if ans, err := c.do(ctx, ownDiscover(), sink{}); err == nil { // any answer will do
		c.served.Store(true)
		c.introduced(ans)
	}
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
