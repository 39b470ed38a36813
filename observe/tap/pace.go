package tap

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpbridge/bridge/observe"
)

// pace counts the calls of one mount that ended. Lately is what came since samples that
// those take who look, so that counting needs no clock.
type pace struct {
	calls, failed atomic.Uint64

	mu      sync.Mutex
	samples []sample // the oldest first, a second or more apart
}

type sample struct {
	at            time.Time
	calls, failed uint64
}

// lately is how far back the samples go.
const lately = time.Minute

func (p *pace) count(amiss bool) {
	p.calls.Add(1)
	if amiss {
		p.failed.Add(1)
	}
}

// Pace tells how many calls have ended at the mount at a path.
func (h *Hub) Pace(path string) observe.Pace {
	p := h.paceOf(path)
	now := sample{time.Now(), p.calls.Load(), p.failed.Load()}
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.samples) > 1 && now.at.Sub(p.samples[1].at) >= lately {
		p.samples = p.samples[1:]
	}
	if n := len(p.samples); n == 0 || now.at.Sub(p.samples[n-1].at) >= time.Second {
		p.samples = append(p.samples, now)
	}
	first := p.samples[0]
	return observe.Pace{Calls: now.calls, Failed: now.failed, Lately: now.calls - first.calls, LatelyFailed: now.failed - first.failed, Over: now.at.Sub(first.at)}
}

// paceOf returns what counts at a path: a reload goes on with it.
func (h *Hub) paceOf(path string) *pace {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.paces == nil {
		h.paces = map[string]*pace{}
	}
	if h.paces[path] == nil {
		h.paces[path] = new(pace)
	}
	return h.paces[path]
}
