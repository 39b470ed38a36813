package session

import (
	"strconv"
	"sync"
	"time"

	"github.com/mcpbridge/bridge/sessions/store"
)

// A question that waits for a person while its client is not connected need not be in
// memory, and neither need a session that nobody uses. Both are in the store anyway:
//
//	in memory ──client away, Options.Unload──▶ when something is due is noted ──▶ in the store alone
//	    ▲                                                                              │
//	    └──── an answer, a cancellation, a GET that does not poll, the time (due.go) ───┘
//
// A session that leaves the table is closed one round later: who found it there a moment
// before may go on with it, as if it were in another replica.

// shelf knows the calls of a session that are in the store alone.
type shelf struct {
	mu    sync.Mutex
	calls map[uint64]shelved // by stream; nil until there is one
}

// shelved is a call that is in the store alone.
type shelved struct {
	until time.Time // it may be there
	noted bool      // somebody comes when something is due to it (notes.go)
	heard *Heard    // nil: nobody has polled for it, as for most
}

// Heard is what a client has heard that polls for a call: as long as the store has this version of its record, that is all.
type Heard struct {
	By      string // the principal of the client, who may fetch it
	Version uint64 // of the record
	Last    uint64 // event
	Beyond  uint64 // a number that no event of it has
}

func (s *shelf) put(stream uint64, until time.Time, noted bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.calls == nil {
		s.calls = map[uint64]shelved{}
	}
	s.calls[stream] = shelved{until: until, noted: noted}
}

func (s *shelf) take(stream uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.calls, stream)
}

// isNoted reports whether a call is there for which somebody comes when something is due to it.
func (s *shelf) isNoted(stream uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	call := s.calls[stream]
	return call.noted && call.until.After(time.Now())
}

func (s *shelf) has(stream uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.calls[stream]
	return ok
}

// hear notes what was heard of a call, if there is something, and returns what was before.
func (s *shelf) hear(stream uint64, now *Heard) (before *Heard) {
	s.mu.Lock()
	defer s.mu.Unlock()
	call, ok := s.calls[stream]
	if ok && now != nil {
		s.calls[stream] = shelved{call.until, call.noted, now}
	}
	return call.heard
}

// look returns how many calls there are, and how long the last of them may be there.
func (s *shelf) look(now time.Time) (n int, longest time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for stream, call := range s.calls {
		if left := call.until.Sub(now); left > 0 {
			longest = max(longest, left)
		} else {
			delete(s.calls, stream)
		}
	}
	return len(s.calls), longest
}

// holds reports whether there are calls.
func (s *shelf) holds() bool {
	n, _ := s.look(time.Now())
	return n > 0
}

// streamOf reads what recordID has written; 0 for other records.
func streamOf(r *store.Record) uint64 {
	number, _ := strconv.ParseUint(r.ID, 10, 64)
	return number
}
