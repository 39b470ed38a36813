package relayed

import (
	"sync/atomic"
	"time"
)

// Visit is a request under way in a session, which does not end as idle before it has. A stream
// may stay open, or a call last, longer than a session may be unused.
type Visit struct {
	of *Sessions
	id string
	in atomic.Pointer[session] // nil: it is not known
}

// Visit begins one. Who begins it ends it.
func (s *Sessions) Visit(id string) *Visit {
	v := &Visit{of: s, id: id}
	v.Found()
	return v
}

// Found is told that the session may be known by now.
func (v *Visit) Found() {
	if v.in.Load() != nil {
		return
	}
	if one := v.of.get(v.id); one != nil && v.in.CompareAndSwap(nil, one) {
		one.visits.Add(1)
	}
}

// End ends the request: that is when the session was used last.
func (v *Visit) End() {
	v.of.get(v.id)
	if one := v.in.Load(); one != nil {
		one.visits.Add(-1)
	}
}

func (one *session) busy() bool { return one.visits.Load() > 0 }

// lookAfterLocked has the records of busy sessions live on until Close.
func (s *Sessions) lookAfterLocked() {
	if s.opt.Store == nil || s.looks || s.ctx.Err() != nil {
		return
	}
	s.looks = true
	s.work.Go(s.lookAfter)
}

func (s *Sessions) lookAfter() {
	tick := time.NewTicker(s.touchEvery())
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			s.renewBusy()
		case <-s.ctx.Done():
			return
		}
	}
}

// renewBusy looks at all busy sessions, until the store cannot be asked: the next look is soon enough.
func (s *Sessions) renewBusy() {
	table, _ := s.present()
	for _, use := range table.All() {
		if !use.Value.busy() {
			continue
		}
		current, err := s.isCurrent(s.ctx, use.Value)
		if err != nil {
			return
		}
		if !current {
			s.drop(use.Value.id)
		}
	}
}
