package resource

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// memory keeps what was read for a moment, so that nobody can have the bridge ask
// others all the time.
type memory[T any] struct {
	stale atomic.Bool // what is kept is not to be used

	mu    sync.Mutex
	value T
	err   error
	until time.Time
}

// get returns what is kept, or reads it, one reader at a time.
func (m *memory[T]) get(ctx context.Context, read func(context.Context) (T, error)) (T, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.stale.Swap(false) && time.Now().Before(m.until) {
		return m.value, m.err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readTimeout) // the answer serves others, too
	defer cancel()
	m.value, m.err = read(ctx)
	keep := keepFound
	if m.err != nil {
		keep = keepFailure
	}
	m.until = time.Now().Add(keep)
	return m.value, m.err
}

// forget has the next get read. It waits for nobody.
func (m *memory[T]) forget() { m.stale.Store(true) }

// sides keeps two things apart: what comes of it when a place is left out that a client's Host
// names, and of all others. A Host costs nothing, so what one brings about is for its like only.
type sides[T any] struct{ left, all memory[T] }

func (s *sides[T]) of(left bool) *memory[T] {
	if left {
		return &s.left
	}
	return &s.all
}

func (s *sides[T]) forget() {
	s.left.forget()
	s.all.forget()
}
