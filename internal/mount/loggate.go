package mount

import (
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"
)

// logGate counts who can get log messages of a process that many share, and wants
// them: sessions with a level, and callers of modern requests, while they have a
// request under way or had one just now. Whose a message is cannot be known, so as
// long as there are two of them nobody gets any (C-8). A session that is left
// behind with a level is in nobody's way.
type logGate struct {
	log    zerolog.Logger
	serial atomic.Uint64 // numbers sessions

	mu      sync.Mutex
	callers map[string]*wisher
	warn    time.Time // not again before
}

// wisher is a session or a modern caller that wants log messages.
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
	// warnEvery is how often the log says that messages are withheld.
	warnEvery = 10 * time.Minute
)

// visit counts a request of a caller in.
func (g *logGate) visit(caller string) (may func() bool, done func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.pruneLocked()
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
		g.tellLocked()
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

// forget counts a caller out that is gone.
func (g *logGate) forget(caller string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.callers, caller)
}

// tellLocked says that messages are withheld from now on.
func (g *logGate) tellLocked() {
	now := time.Now()
	if len(g.callers) != 2 || now.Before(g.warn) {
		return
	}
	g.warn = now.Add(warnEvery)
	g.log.Warn().Msg("log messages of the shared process are withheld while more than one session wants them; " +
		"command-mode: per-session gives each its own process")
}

// pruneLocked drops callers that nothing can be meant for any more.
func (g *logGate) pruneLocked() {
	now := time.Now()
	maps.DeleteFunc(g.callers, func(_ string, w *wisher) bool { return w.calls == 0 && now.After(w.until) })
}

// crowded reports whether more than one want log messages.
func (g *logGate) crowded() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.pruneLocked()
	return len(g.callers) > 1
}
