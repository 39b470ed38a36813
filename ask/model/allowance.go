package model

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpbridge/bridge/internal/budget"
)

// Spent counts the requests of one session. Its zero value is ready to use.
type Spent struct{ n atomic.Int32 }

// None reports whether nothing was counted yet.
func (s *Spent) None() bool { return s.n.Load() == 0 }

// take counts a request, unless that would be more than limit; 0 is no limit.
func (s *Spent) take(limit int) bool {
	if s == nil || limit <= 0 {
		return true
	}
	if int(s.n.Add(1)) <= limit {
		return true
	}
	s.n.Add(-1)
	return false
}

// allowance counts requests in windows that begin with the first request after the last
// one's end. The last eighth of a window is for tenants that have had less than an eighth of
// it: sessions cost nothing, so what one of them may have bounds nobody.
type allowance struct {
	limit  int
	window time.Duration

	mu    sync.Mutex
	began time.Time
	taken *budget.Places // of this window; none is given back, and there are no more parties than places
}

// take counts a request of a tenant, unless there are none left; others says that there are
// some, but not for this tenant.
func (b *allowance) take(tenant string) (ok, others bool) {
	if b.limit <= 0 {
		return true, false
	}
	taken, others := b.now().Take(tenant)
	return taken != nil, others
}

// now returns what is taken in the present window.
func (b *allowance) now() *budget.Places {
	b.mu.Lock()
	defer b.mu.Unlock()
	if now := time.Now(); b.taken == nil || now.Sub(b.began) >= b.window {
		b.began, b.taken = now, budget.NewPlaces(b.limit)
	}
	return b.taken
}
