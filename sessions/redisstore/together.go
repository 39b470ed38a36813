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
	open *group        // that takes more; nil: none does
	last chan struct{} // closed when the newest group is back; nil: there was none
}

const (
	// company is how long a group waits at most for the one before to come back. Meanwhile others
	// join it; nobody waits who is alone.
	company = time.Millisecond
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
	close(g.back)
	return c.err
}

// join adds a change to the group that is open, or begins one.
func (t *together) join(ctx context.Context, c *single) (g *group, began bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	g = t.open
	if g == nil || g.until != ctx.Done() || len(g.changes) == mostTogether || g.bytes+len(c.value) > mostBytes {
		g = &group{until: ctx.Done(), changes: make([]*single, 0, 8), back: make(chan struct{})}
		t.open, began = g, true
	}
	g.changes = append(g.changes, c)
	g.bytes += len(c.value)
	return g, began
}

// gather waits until the group before is back, and closes this one.
func (t *together) gather(g *group) {
	t.mu.Lock()
	before := t.last
	t.last = g.back
	t.mu.Unlock()
	if before != nil {
		await(before, company)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.open == g {
		t.open = nil
	}
}

// await waits until a group is back, or for some time.
func await(back chan struct{}, most time.Duration) {
	select {
	case <-back:
		return
	default:
	}
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-back:
	case <-timer.C:
	}
}
