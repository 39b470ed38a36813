// Package agenda is a timer queue for timeouts of one length: it tells things when they
// are due, a constant delay after they were put on it, without a timer for each.
package agenda

import (
	"math/rand/v2"
	"sync"
	"time"
)

// shardCount spreads an agenda over several locks, since every call of every
// session passes through one.
const shardCount = 8

// An Agenda holds things that are due a constant delay after they were put on
// it. Equal delays keep each list sorted by itself, so putting something on,
// taking it off and finding what is due all cost the same for any number of
// things. Its owner calls Run. The methods are safe for concurrent use.
type Agenda struct {
	delay  time.Duration
	start  time.Time
	shards [shardCount]shard
}

// New returns an empty agenda with this delay.
func New(delay time.Duration) *Agenda { return &Agenda{delay: delay, start: time.Now()} }

// Delay returns what New was given.
func (a *Agenda) Delay() time.Duration { return a.delay }

type shard struct {
	mu         sync.Mutex
	head, tail *Entry
}

// Item is told when it is due. No lock is held. It is put on the agenda once more when
// it returns true.
type Item interface{ Due() (again bool) }

// Entry is one thing's place on one agenda. It is a part of the thing.
type Entry struct {
	Item       Item // set before the first Add
	shard      *shard
	prev, next *Entry
	at         time.Duration // since the agenda's start; 0: not on it
}

// Add puts e on the agenda, unless it is there already.
func (a *Agenda) Add(e *Entry) {
	if e.shard == nil {
		e.shard = &a.shards[rand.Uint32()%shardCount]
	}
	s := e.shard
	s.mu.Lock()
	defer s.mu.Unlock()
	if e.at != 0 {
		return
	}
	e.at = time.Since(a.start) + a.delay
	e.prev = s.tail
	if s.tail != nil {
		s.tail.next = e
	} else {
		s.head = e
	}
	s.tail = e
}

// Remove takes e off the agenda, if it is there.
func (e *Entry) Remove() {
	if s := e.shard; s != nil {
		s.mu.Lock()
		s.unlinkLocked(e)
		s.mu.Unlock()
	}
}

func (s *shard) unlinkLocked(e *Entry) {
	if e.at == 0 {
		return
	}
	if e.prev != nil {
		e.prev.next = e.next
	} else {
		s.head = e.next
	}
	if e.next != nil {
		e.next.prev = e.prev
	} else {
		s.tail = e.prev
	}
	e.prev, e.next, e.at = nil, nil, 0
}

// Run tells everything that is due within ahead, and returns how long it may be
// until it should run again.
func (a *Agenda) Run(ahead time.Duration) (next time.Duration) {
	now := time.Since(a.start) + ahead
	next = a.delay - ahead
	for i := range a.shards {
		s := &a.shards[i]
		for {
			e, wait := s.take(now)
			if e == nil {
				if wait > 0 {
					next = min(next, wait)
				}
				break
			}
			if e.Item.Due() {
				a.Add(e)
			}
		}
	}
	return next
}

// take unlinks the first entry if it is due; otherwise it returns how long the
// first one has to wait, 0 when there is none.
func (s *shard) take(now time.Duration) (*Entry, time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.head
	if e == nil {
		return nil, 0
	}
	if e.at > now {
		return nil, e.at - now
	}
	s.unlinkLocked(e)
	return e, 0
}

// Len returns how many things are on the agenda. It costs as much as there are.
func (a *Agenda) Len() (n int) {
	for i := range a.shards {
		s := &a.shards[i]
		s.mu.Lock()
		for e := s.head; e != nil; e = e.next {
			n++
		}
		s.mu.Unlock()
	}
	return n
}
