package legacy

import (
	"sync"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/roster"
	"github.com/mcpbridge/bridge/sessions"
)

// guests are the conversations of requests without a session. Nobody else knows them, so that nobody
// else could end them with the rest: each is here for as long as its request is under way.
type guests struct {
	mu     sync.Mutex
	open   roster.Set[*hosted]
	closed bool
}

type hosted struct{ downstream.Conversation }

// host takes a guest in. over ends its stay, and what was to be done then besides.
func (g *guests) host(conv downstream.Conversation, besides func()) (over func()) {
	who := &hosted{conv}
	g.mu.Lock()
	closed := g.closed
	if !closed {
		g.open.Add(who)
	}
	g.mu.Unlock()
	if closed {
		conv.Close(sessions.Closed)
	}
	return func() {
		g.mu.Lock()
		g.open.Remove(who)
		g.mu.Unlock()
		if besides != nil {
			besides()
		}
	}
}

// len returns how many there are.
func (g *guests) len() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.open.Len()
}

// close ends them, and all that come yet.
func (g *guests) close() {
	g.mu.Lock()
	g.closed = true
	open := g.open.All()
	g.mu.Unlock()
	for _, who := range open {
		who.Close(sessions.Closed)
	}
}
