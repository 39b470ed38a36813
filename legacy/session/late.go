package session

import (
	"sync"
	"time"

	"github.com/mcpbridge/bridge/internal/budget"
	"github.com/mcpbridge/bridge/jsonrpc"
)

// LateCall is a call that has ended, and that the store may have still, since it did not take the end.
type LateCall struct {
	Request jsonrpc.ID    // the client's id of it
	Stream  uint64        // number of its stream
	Asked   bool          // its question was kept, and left: whoever answers it would have the call go on
	Slow    bool          // the store hung when it was to take the end
	Within  time.Duration // how long its record lasts at most
	// Remove tries once to have the store take the end, and reports whether that is settled. stop reports that the
	// process is about to end: then it is the last try.
	Remove func(stop func() bool) bool

	session *Session
	until   time.Time
	hold    budget.Hold // until it is settled
}

const (
	lateWorkers = 4           // for each queue, where the store hangs, and other calls of it can be removed
	slowTry     = time.Second // from which on a try says that the store hangs
	lateBytes   = 2 << 10     // what each holds, about
	// mostUnasked bounds those whose questions the store did not take: where it fails for good one may come with each
	// request. Of the others there are no more than were kept before it failed.
	mostUnasked = 1024
)

// lateCalls are those of all sessions. A few goroutines try, one call after the other, and pause after each that
// fails: none has one of its own. A part of a store may hang, and another one be well: what hung the last time waits apart.
type lateCalls struct {
	mu          sync.Mutex
	quick, slow lateQueue
	unasked     int // of those that are not settled
}

// lateQueue is those calls that wait together. The lock of lateCalls guards it.
type lateQueue struct {
	waiting []*LateCall
	workers int
}

// queue returns where a call waits.
func (l *lateCalls) queue(c *LateCall) *lateQueue {
	if c.Slow {
		return &l.slow
	}
	return &l.quick
}

// Later has a call removed from the store in the background, and reports whether somebody tries. Where too many wait already whose
// clients were never asked, or there is no memory for another one of these, nobody does: nobody would answer it.
func (s *Session) Later(c *LateCall) bool {
	k := s.set.keeper
	c.session, c.until, c.hold = s, time.Now().Add(c.Within), budget.On(s.account)
	if c.Asked {
		c.hold.Charge(lateBytes)
	} else if c.hold.Grow(lateBytes) != nil {
		return false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	q := k.late.queue(c)
	s.stored.addLate(c) // before others may settle it
	if k.closed || !k.late.add(q, c) {
		s.stored.removeLate(c)
		c.hold.Release()
		return false
	}
	remover{k}.begin(q)
	return true
}

// remover is the part of a keeper that removes late calls. It has no state of its own.
type remover struct{ *keeper }

// begin has one more goroutine try what waits in a queue, if it may have another one.
func (k remover) begin(q *lateQueue) {
	if k.late.begin(q) {
		k.running.Go(func() { k.remove(q) })
	}
}

// remove tries until none is left in a queue.
func (k remover) remove(q *lateQueue) {
	stop := func() bool { return k.ctx.Err() != nil }
	for c := k.late.next(q); c != nil; c = k.late.next(q) {
		began := time.Now()
		settled := c.Remove(stop)
		if settled || stop() || !time.Now().Before(c.until) {
			k.late.settled(c)
			continue
		}
		c.Slow = time.Since(began) >= slowTry
		k.pause()
		next := k.late.queue(c)
		k.late.again(next, c)
		if next != q {
			k.begin(next)
		}
	}
}

// add has a call wait, if there is a place.
func (l *lateCalls) add(q *lateQueue, c *LateCall) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !c.Asked {
		if l.unasked == mostUnasked {
			return false
		}
		l.unasked++
	}
	q.waiting = append(q.waiting, c)
	return true
}

// begin reports whether one more goroutine is to try.
func (l *lateCalls) begin(q *lateQueue) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if q.workers == lateWorkers {
		return false
	}
	q.workers++
	return true
}

// next returns the call whose turn it is in a queue; nil: none waits, and who asks is done.
func (l *lateCalls) next(q *lateQueue) *LateCall {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(q.waiting) == 0 {
		q.workers--
		return nil
	}
	c := q.waiting[0]
	q.waiting[0] = nil
	q.waiting = q.waiting[1:]
	return c
}

// again has a call wait for another turn, which one that others have yet to try comes before.
func (l *lateCalls) again(q *lateQueue, c *LateCall) {
	l.mu.Lock()
	defer l.mu.Unlock()
	q.waiting = append(q.waiting, c)
}

// settled forgets a call.
func (l *lateCalls) settled(c *LateCall) {
	l.mu.Lock()
	if !c.Asked {
		l.unasked--
	}
	l.mu.Unlock()
	c.hold.Release()
	c.session.stored.removeLate(c)
}

// isEnding is IsLate for the call's stream.
func (k *stored) isEnding(stream uint64) bool {
	k.lateMu.Lock()
	defer k.lateMu.Unlock()
	_, is := k.ending[stream]
	return is
}

func (k *stored) addLate(c *LateCall) {
	k.lateMu.Lock()
	defer k.lateMu.Unlock()
	if k.late == nil {
		k.late, k.ending = map[jsonrpc.ID]int{}, map[uint64]struct{}{}
	}
	k.late[c.Request]++
	k.ending[c.Stream] = struct{}{}
}

func (k *stored) removeLate(c *LateCall) {
	k.lateMu.Lock()
	defer k.lateMu.Unlock()
	if k.late[c.Request]--; k.late[c.Request] == 0 {
		delete(k.late, c.Request)
	}
	delete(k.ending, c.Stream)
}
