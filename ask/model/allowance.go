package model

import (
	"sync"
	"sync/atomic"
	"time"
)

// Spent counts the requests of one session. Its zero value is ready to use.
type Spent struct{ n atomic.Int64 }

// None reports whether nothing was counted yet.
func (s *Spent) None() bool { return s.n.Load() == 0 }

// take counts a request, unless that would be more than limit; 0 is no limit.
func (s *Spent) take(limit int) bool {
	if s == nil || limit <= 0 {
		return true
	}
	if s.n.Add(1) <= int64(limit) {
		return true
	}
	s.n.Add(-1)
	return false
}

// allowance counts requests in windows that begin with the first request after the last
// one's end.
type allowance struct {
	limit  int
	window time.Duration

	mu    sync.Mutex
	began time.Time
	used  int
}

func (b *allowance) take() bool {
	if b.limit <= 0 {
		return true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if now := time.Now(); now.Sub(b.began) >= b.window {
		b.began, b.used = now, 0
	}
	if b.used >= b.limit {
		return false
	}
	b.used++
	return true
}
