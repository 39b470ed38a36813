package boltstore

import (
	"slices"
	"sync"

	"github.com/mcpbridge/bridge/sessions/store"
)

// queue is what waits for the writer.
type queue struct {
	mu      sync.Mutex
	waiting []*request
	writing bool // somebody is the writer
	closed  bool
}

// request is a change that is to be written.
type request struct {
	session string // of which it changes records; "": of none, or of touches
	touches []store.Touch
	apply   func(*batch) error // changes nothing when it fails; may be called again
	size    int                // bytes of the values, where they may be many
	ends    bool               // it only ends the session
	err     error              // may be read when done is closed
	done    chan struct{}      // nil: the writer's own
}

// What bounds the requests that share a write: how many they are, and their bytes, of small ones and of large ones.
const (
	maxBatch     = 1024
	maxSmall     = journalSize / 2
	maxLarge     = journalSize / 4
	largeRequest = 16 << 10
)

// next returns what is to be written together.
func (s *Store) next() []*request {
	q := &s.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	requests := q.waiting
	q.waiting = nil
	if !together(requests) {
		requests, q.waiting = turn(requests)
	}
	return requests
}

// together reports whether all of the requests share a write.
func together(requests []*request) bool {
	bytes := 0
	for _, r := range requests {
		bytes += r.size
	}
	return len(requests) <= maxBatch && bytes <= maxLarge
}

// turn returns the requests that share the next write, and the others. What is small waits for little of what is
// large, however much came before: somebody who has large calls kept would have everybody wait for the disk. Those of a
// session stay in their order.
func turn(waiting []*request) (now, later []*request) {
	small, large := 0, 0
	left := sessionsOf{}
	for _, r := range waiting {
		of, most := &small, maxSmall
		if r.size > largeRequest {
			of, most = &large, maxLarge
		}
		full := len(now) == maxBatch || *of > 0 && *of+r.size > most
		if full || left.have(r) {
			later = append(later, r)
			left.add(r)
			continue
		}
		*of += r.size
		now = append(now, r)
	}
	return now, later
}

// sessionsOf are the sessions of requests which those that come behind must not overtake.
type sessionsOf map[string]bool

func (of sessionsOf) have(r *request) bool {
	return of[r.session] || slices.ContainsFunc(r.touches, func(t store.Touch) bool { return of[t.Session] })
}

func (of sessionsOf) add(r *request) {
	if r.session != "" {
		of[r.session] = true
	}
	for _, t := range r.touches {
		of[t.Session] = true
	}
}

// goOn reports whether there is more to write; otherwise nobody is the writer any more.
func (s *Store) goOn() bool {
	q := &s.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	q.writing = len(q.waiting) > 0
	return q.writing
}
