package resource

import (
	"context"
	"sync"
	"time"
)

// memory keeps what was read for a moment, so that nobody can have the bridge ask
// others all the time.
type memory[T any] struct {
	mu     sync.Mutex
	newest *reading[T] // under way, or what is kept of it; nil: none
}

// reading is one look, for all who want to know what it finds.
type reading[T any] struct {
	done  chan struct{} // closed at the end; what follows is read after it
	value T
	err   error
	until time.Time // how long it is kept
}

// over reports whether it has ended.
func (r *reading[T]) over() bool {
	select {
	case <-r.done:
		return true
	default:
		return false
	}
}

// get returns what is kept, or what comes of the reading that is under way, or reads it.
// Whoever waits for another one's reading does so while ctx lasts.
func (m *memory[T]) get(ctx context.Context, read func(context.Context) (T, error)) (T, error) {
	m.mu.Lock()
	r := m.newest
	mine := r == nil || r.over() && !time.Now().Before(r.until)
	if mine {
		r = &reading[T]{done: make(chan struct{})}
		m.newest = r
	}
	m.mu.Unlock()
	if mine {
		r.run(ctx, read)
		return r.value, r.err
	}
	select {
	case <-r.done:
		return r.value, r.err
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
}

func (r *reading[T]) run(ctx context.Context, read func(context.Context) (T, error)) {
	defer close(r.done)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readTimeout) // the answer serves others, too
	defer cancel()
	r.value, r.err = read(ctx)
	keep := keepFound
	if r.err != nil {
		keep = keepFailure
	}
	r.until = time.Now().Add(keep)
}

// forget has the next get read, unless somebody reads just now: all who are sent here time and
// again by their challenges then wait for one reading, and not for each other's.
func (m *memory[T]) forget() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r := m.newest; r != nil && r.over() {
		m.newest = nil
	}
}

// drop has the next get read: what is kept, or is being read, is of another place.
func (m *memory[T]) drop() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.newest = nil
}

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

func (s *sides[T]) drop() {
	s.left.drop()
	s.all.drop()
}
