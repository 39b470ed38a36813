package redisstore

import (
	"context"
	"sync"
	"time"

	"github.com/mcpbridge/bridge/sessions/store"
)

// together has changes of single records that come at the same time go to the server, and
// come back, together: what one costs is above all the reading and writing of sockets, and
// what a script costs before it does anything.
type together struct {
	send func(context.Context, *group) // gives each change its outcome

	mu   sync.Mutex
	open *group    // that takes more; nil: none does
	away int       // groups that are not back yet
	sent time.Time // when the last one went
	last int       // how many changes it had
}

const (
	// company is how long a group waits for others since the last one went, for each change
	// that was in that, up to enough of them. So few clients, who would gain nothing by it,
	// hardly wait, and nobody does who is alone.
	company = 125 * time.Microsecond
	enough  = 8
	// Bounds of a group: nobody gets between what one of its scripts does.
	mostTogether = 64
	mostBytes    = 64 << 10
)

// group is what goes together. Whoever began it sends it.
type group struct {
	until   <-chan struct{} // when the time of all of them is up
	changes []*single
	bytes   int
	back    chan struct{} // closed when each one has its outcome
}

// single is a change of one record.
type single struct {
	at     store.Address
	key    string
	head   string // what the record begins with that it replaces; "": it must not be there
	value  string
	ttl    int64  // in milliseconds
	index  string // the session's; "" where that does not name the record
	member string // names the record in it
	err    error
}

func (c *single) conflict() { c.err = &store.ConflictError{Address: c.at} }

// do makes a change, with others if there are any.
func (t *together) do(ctx context.Context, c *single) error {
	g, began := t.join(ctx, c)
	if !began {
		<-g.back // by the time that ctx ends: all of a group have the same
		return c.err
	}
	t.gather(g)
	t.send(ctx, g)
	t.mu.Lock()
	t.away--
	t.mu.Unlock()
	close(g.back)
	return c.err
}

// join adds a change to the group that is open, or begins one.
func (t *together) join(ctx context.Context, c *single) (g *group, began bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	g = t.open
	if g == nil || g.until != ctx.Done() || len(g.changes) == mostTogether || g.bytes+len(c.value) > mostBytes {
		g = &group{until: ctx.Done(), back: make(chan struct{})}
		t.open, began = g, true
		t.away++
	}
	g.changes = append(g.changes, c)
	g.bytes += len(c.value)
	return g, began
}

// gather waits for others, if any are to be expected, and closes the group.
func (t *together) gather(g *group) {
	t.mu.Lock()
	defer t.mu.Unlock()
	pause := time.Duration(min(t.last, enough))*company - time.Since(t.sent)
	if t.away > 1 && pause > 0 {
		t.mu.Unlock()
		time.Sleep(pause)
		t.mu.Lock()
	}
	if t.open == g {
		t.open = nil
	}
	t.sent, t.last = time.Now(), len(g.changes)
}
