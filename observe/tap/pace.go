package tap

import (
	"sync"
	"time"

	"github.com/mcpbridge/bridge/observe"
)

// pace counts the calls of one mount that ended: all, and by the second for a minute.
type pace struct {
	mu            sync.Mutex
	calls, failed uint64
	seconds       [seconds]second
}

// second is what ended in one second.
type second struct {
	at            int64 // of Unix time
	calls, failed uint64
}

// seconds is how many of them are kept.
const seconds = 60

func (p *pace) count(amiss bool) {
	now := time.Now().Unix()
	p.mu.Lock()
	defer p.mu.Unlock()
	s := &p.seconds[now%seconds]
	if s.at != now {
		*s = second{at: now}
	}
	p.calls++
	s.calls++
	if amiss {
		p.failed++
		s.failed++
	}
}

// Pace tells how many calls have ended at the mount at a path.
func (h *Hub) Pace(path string) observe.Pace {
	p := h.paceOf(path)
	now := time.Now().Unix()
	p.mu.Lock()
	defer p.mu.Unlock()
	told := observe.Pace{Calls: p.calls, Failed: p.failed}
	for _, s := range p.seconds {
		if now-s.at < seconds {
			told.Lately += s.calls
			told.LatelyFailed += s.failed
		}
	}
	return told
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
