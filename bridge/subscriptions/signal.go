package subscriptions

import (
	"sync"
	"sync/atomic"
	"time"
)

// signal wakes whoever waits. Sending it costs one look when nobody does. The zero
// signal is ready.
type signal struct {
	waiting atomic.Int32

	mu   sync.Mutex
	next chan struct{} // closed by the next send; nil: nobody waits
}

// wait returns a channel that the next send closes, and what ends the waiting.
func (s *signal) wait() (sent <-chan struct{}, done func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.next == nil {
		s.next = make(chan struct{})
	}
	s.waiting.Add(1)
	return s.next, func() { s.waiting.Add(-1) }
}

func (s *signal) send() {
	if s.waiting.Load() == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.next != nil {
		close(s.next)
		s.next = nil
	}
}

// notice keeps a line that thousands of listens have reason for from filling the
// log: it is due once in noticeEvery. The zero notice is ready.
type notice struct {
	mu     sync.Mutex
	last   time.Time
	missed int
}

const noticeEvery = 10 * time.Second

// due reports whether the line may be written, and how many were not before it.
func (n *notice) due() (missed int, ok bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	now := time.Now()
	if !n.last.IsZero() && now.Sub(n.last) < noticeEvery {
		n.missed++
		return 0, false
	}
	missed, n.last, n.missed = n.missed, now, 0
	return missed, true
}
