package legacy

import (
	"math/rand/v2"
	"sync"
	"time"
)

// agendaShards spreads an agenda over several locks, since every call of every
// session passes through one.
const agendaShards = 8

// An agenda holds things that are due a constant delay after they were put on
// it. Equal delays keep each list sorted by itself, so putting something on,
// taking it off and finding what is due all cost the same for any number of
// things, without a timer for each.
type agenda struct {
	delay  time.Duration
	start  time.Time
	shards [agendaShards]agendaShard
}

type agendaShard struct {
	mu         sync.Mutex
	head, tail *entry
}

// entry is one thing's place on an agenda. It is embedded in the thing.
type entry struct {
	item       interface{ due() (again bool) }
	shard      *agendaShard
	prev, next *entry
	at         time.Duration // since the agenda's start; 0: not on it
}

// add puts e on the agenda, unless it is there already.
func (a *agenda) add(e *entry) {
	if e.shard == nil {
		e.shard = &a.shards[rand.Uint32()%agendaShards]
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

// remove takes e off the agenda, if it is there.
func (e *entry) remove() {
	if s := e.shard; s != nil {
		s.mu.Lock()
		s.unlink(e)
		s.mu.Unlock()
	}
}

func (s *agendaShard) unlink(e *entry) {
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

// run tells everything that is due within ahead, and returns how long it may be
// until it should run again.
func (a *agenda) run(ahead time.Duration) (next time.Duration) {
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
			if e.item.due() {
				a.add(e)
			}
		}
	}
	return next
}

// take unlinks the first entry if it is due; otherwise it returns how long the
// first one has to wait, 0 when there is none.
func (s *agendaShard) take(now time.Duration) (*entry, time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.head
	if e == nil {
		return nil, 0
	}
	if e.at > now {
		return nil, e.at - now
	}
	s.unlink(e)
	return e, 0
}
