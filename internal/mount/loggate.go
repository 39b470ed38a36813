package mount

import (
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"
)

// logGate counts who wants log messages of a process that many share: sessions,
// and callers of modern requests, who have none. Whose a message is cannot be
// known, so as soon as there are two of them nobody gets any (C-8).
type logGate struct {
	wanting atomic.Int64 // sessions
	log     zerolog.Logger

	mu      sync.Mutex
	callers map[string]*wisher
}

// wisher is a modern caller that wants log messages.
type wisher struct {
	calls int       // under way
	until time.Time // when none is: so long a late message may still be meant for it
}

const (
	// afterwards is how long a process may be late with the log messages of a
	// request that it has answered.
	afterwards = 10 * time.Second
	// maxCallers bounds the callers that are told apart. More are a crowd anyway.
	maxCallers = 64
)

func (g *logGate) enter() {
	if g.wanting.Add(1) == 2 {
		g.log.Warn().Msg("log messages of the shared process are withheld while more than one session wants them; " +
			"command-mode: per-session gives each its own process")
	}
}

func (g *logGate) exit() { g.wanting.Add(-1) }

// visit counts a modern request of a caller in.
func (g *logGate) visit(caller string) (may func() bool, done func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.prune()
	if g.callers == nil {
		g.callers = map[string]*wisher{}
	}
	if len(g.callers) >= maxCallers && g.callers[caller] == nil {
		caller = "" // one of many
	}
	w := g.callers[caller]
	if w == nil {
		w = &wisher{}
		g.callers[caller] = w
	}
	w.calls++
	return func() bool { return !g.crowded() }, func() { g.leave(w) }
}

func (g *logGate) leave(w *wisher) {
	g.mu.Lock()
	defer g.mu.Unlock()
	w.calls--
	w.until = time.Now().Add(afterwards)
}

// prune drops callers that nothing can be meant for any more, with the lock held.
func (g *logGate) prune() {
	now := time.Now()
	maps.DeleteFunc(g.callers, func(_ string, w *wisher) bool { return w.calls == 0 && now.After(w.until) })
}

// crowded reports whether more than one want log messages.
func (g *logGate) crowded() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.prune()
	return g.wanting.Load()+int64(len(g.callers)) > 1
}
