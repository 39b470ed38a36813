package session

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/budget"
	"github.com/mcpbridge/bridge/sessions"
	"github.com/mcpbridge/bridge/sessions/store"
)

// unloader is the part of a keeper that leaves to the store what waits for its client. It
// has no state of its own.
type unloader struct{ *keeper }

// unload has what nobody waits for leave memory.
func (k unloader) unload(ctx context.Context) {
	tick := time.NewTicker(max(k.set.opt.Unload/4, unloadStep))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			for s := range k.resting {
				s.end(sessions.Closed)
			}
			return
		case <-tick.C:
			k.endResting()
			k.unloadCalls()
			k.unloadSessions()
		}
	}
}

// unloadStep is the shortest time between two rounds.
const unloadStep = 250 * time.Millisecond

// endResting closes the sessions that left the table in the last round, but for those
// that somebody had found there before, or that have a call since. What such a call leaves may be in
// no record: of who is idle for too long that ends, too, as it does in the table.
func (k unloader) endResting() {
	now := time.Now()
	for s, since := range k.resting {
		switch {
		case s.Busy():
			k.resting[s] = now
			s.conv.Leave()
		case s.conv.Unload(nobody), now.Sub(since) >= k.set.opt.IdleTimeout:
			s.end(sessions.Rested)
			delete(k.resting, s)
		default:
			s.conv.Leave()
		}
	}
}

// Waiting is a call that waits for its client, as package exchange has it.
type Waiting interface {
	// Away returns the number of the call's stream, if its client is not connected and the question
	// has been kept for so long.
	Away(unload time.Duration) (stream uint64, away bool)
	// Shelve says how long the call may be in the store alone, once it leaves.
	Shelve(until time.Time)
}

// unloadCalls leaves calls to the store, after it was noted there when they are due.
func (k unloader) unloadCalls() {
	noted := &dueNotes{keeper: k.keeper, calls: map[downstream.Checkpointer]bool{}}
	var of []*Session
	for _, use := range k.set.table.All() {
		s := use.Value
		if s.stored == nil || s.calls.Load() == 0 {
			continue
		}
		before := len(noted.calls)
		k.noteDue(s, noted)
		if len(noted.calls) > before {
			of = append(of, s)
		}
	}
	if err := noted.commit(); err != nil {
		k.report("noting when calls are due", err)
		return
	}
	for _, s := range of {
		s.conv.Unload(func(call downstream.Checkpointer, _ time.Time) bool {
			w, ok := call.(Waiting)
			if !ok || !noted.calls[call] {
				return false
			}
			_, away := w.Away(k.set.opt.Unload)
			return away
		})
	}
}

// noteDue notes when the calls of a session are due that may leave.
func (k unloader) noteDue(s *Session, noted *dueNotes) {
	n, _ := s.stored.shelf.look(time.Now())
	s.conv.Unload(func(call downstream.Checkpointer, due time.Time) bool {
		w, ok := call.(Waiting)
		if !ok || n >= k.set.opt.MaxUnloaded || time.Until(due) < dueStep {
			return false
		}
		if stream, away := w.Away(k.set.opt.Unload); away {
			n++
			w.Shelve(due.Add(dueBack))
			noted.add(s, call, stream, due)
		}
		return false
	})
}

// unloadSessions takes sessions out of memory that nobody uses.
func (k unloader) unloadSessions() {
	var leaving []*Session
	for _, use := range k.set.table.All() {
		s := use.Value
		if time.Since(use.At) >= k.set.opt.Unload && k.mayRest(s) {
			leaving = append(leaving, s)
		}
	}
	for part := range slices.Chunk(leaving, touchBatch) {
		toucher(k).reseal(part)
		err := k.touchAll(part)
		if k.report("touching sessions", err); err != nil {
			return
		}
		for _, s := range part {
			if !k.mayRest(s) { // any more: the store may have taken its time
				continue
			}
			s.left.Store(true) // before it can be brought back
			k.keepUntil(k.ttlOf(s))
			if !s.Busy() && k.set.table.TakeOut(s.rec.ID, k.set.opt.Unload) {
				k.resting[s] = time.Now()
			} else {
				s.left.Store(false)
			}
		}
	}
}

// mayRest reports whether a session is in the store as it is here.
func (k unloader) mayRest(s *Session) bool {
	if s.stored == nil || s.Busy() || s.ended.Load() || !s.streams.Empty() {
		return false
	}
	s.stored.mu.Lock()
	saved := s.stored.version > 0 && !s.stored.gone
	s.stored.mu.Unlock()
	return saved && s.conv.Unload(nobody)
}

// nobody has no call leave.
func nobody(downstream.Checkpointer, time.Time) bool { return false }

// toucher is the part of a keeper that has the records of sessions in use live on. It has no state of its own.
type toucher struct{ *keeper }

// used has a session's record live on that would not last for as long as the session may be idle from now on: this process may end
// before the next touch. Nobody waits for that, and of those for which there is no room the next use does it.
func (k toucher) used(s *Session) {
	if s.stored.span.reaches(time.Now().Add(k.set.opt.IdleTimeout)) {
		return
	}
	select {
	case k.uses <- s:
	default:
	}
}

// touchUsed does that for all who are in line, in one round trip.
func (k toucher) touchUsed(s *Session) {
	until := time.Now().Add(k.set.opt.IdleTimeout)
	var list []*Session
	for range touchBatch {
		if !s.stored.span.reaches(until) && !slices.Contains(list, s) {
			list = append(list, s)
		}
		select {
		case s = <-k.uses:
			continue
		default:
		}
		break
	}
	if len(list) > 0 {
		k.report("touching sessions that were used", k.touchAll(list))
	}
}

// touch lets the records of the sessions in use live longer, and of those that do not expire though nobody uses them.
func (k toucher) touch() {
	var used []*Session
	since := time.Now().Add(-k.touchEvery() - k.touchEvery()/2)
	for _, use := range k.set.table.All() {
		if !use.At.Before(since) || use.Value.Busy() || use.Value.keepsResponse() {
			used = append(used, use.Value)
		}
	}
	for part := range slices.Chunk(used, touchBatch) {
		k.report("touching sessions", k.touchAll(part))
	}
	if k.resealing.CompareAndSwap(false, true) { // else the next touch finds what is left
		k.running.Go(func() { k.reseal(used); k.resealing.Store(false) })
	}
}

// reseal has the records of sessions written anew that are under another key than the first: what is in use outlives
// any time after which an operator may take that away. What cannot be written now is in its turn once more.
func (k toucher) reseal(used []*Session) {
	var some errgroup.Group
	some.SetLimit(resealAtOnce)
	for _, s := range used {
		if s.stored.older.Load() && k.ctx.Err() == nil {
			some.Go(func() error { s.Changed(); return nil }) // the log tells of failures
		}
	}
	_ = some.Wait()
}

// saveLater tries again until all is saved that the store did not take: replicas would differ for good, and the next process
// have what its client has taken back.
func (k toucher) saveLater() {
	for k.pause() && k.saveUnsaved() > 0 {
	}
	k.saving.Store(false)
	if k.countUnsaved() > 0 { // since then
		k.wake()
	}
}

// saveUnsaved tries each, until the store fails, which was logged when it began, and returns how many are left.
func (k toucher) saveUnsaved() int {
	k.mu.Lock()
	list := slices.Collect(maps.Keys(k.unsaved))
	k.mu.Unlock()
	for _, s := range list {
		k.note(s, false) // before what may change meanwhile
		bound := s.owner().n
		err := k.commit(s)
		k.follow(s, bound)
		switch {
		case errors.Is(err, downstream.ErrGone):
			k.gone(s)
		case err != nil:
			if k.note(s, true); !errors.Is(err, budget.ErrNoRoom) {
				return k.countUnsaved()
			}
		}
	}
	return k.countUnsaved()
}

// renewCalls has the calls that are here kept once more each time that the connection to the store was lost, and those removed that have
// ended here: it may have come back without its last moment, and this process need not be there when somebody comes for them.
func (k toucher) renewCalls(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-k.lost:
		}
		for k.do(k.store.Ping) != nil {
			if !k.pause() {
				return
			}
		}
		began := time.Now()
		k.set.Renew()
		for _, use := range k.set.table.All() {
			if s := use.Value; s.stored != nil && (ctx.Err() != nil || k.compare(s) != nil) {
				break // the connection will have been lost once more
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(max(renewApart, renewShare*time.Since(began))):
		}
	}
}

// A server that ends connections all the time has them kept once more no sooner than this long after the last time, and so many times as
// long after as that has taken.
const (
	renewApart = 5 * time.Second
	renewShare = 10
)

// compare has a session that is newer here than in the store kept once more, and the ends of its calls that wait in the store and have
// ended here. The error is that nobody knows what the store has.
func (k toucher) compare(s *Session) error {
	list, err := s.Glance()
	if err != nil {
		k.report("comparing a session", err)
		return err
	}
	for i := range list {
		switch r := &list[i]; {
		case r.Kind == store.Session && s.stored.isNewer(r.Version):
			_ = k.look(s, true) // the log tells of failures
		case r.Kind == store.Flow && k.set.opt.Calls != nil && s.streams.HasEnded(streamOf(r)) && !s.stored.isEnding(streamOf(r)):
			k.report("ending a call once more", k.conclude(s, r.ID))
		}
	}
	return nil
}

// conclude has a call that has ended here, and waits in the store, be over there.
func (k toucher) conclude(s *Session, id string) error {
	r, passage, err := s.Record(store.Flow, id, InTurn)
	defer passage.Over()
	if err != nil {
		return ignoring(err, store.ErrNotFound)
	}
	err = k.set.opt.Calls.Conclude(s, &r, func(c store.Change) error { return s.ChangeCalls(c) })
	return ignoring(ignoring(err, ErrOver), downstream.ErrGone)
}

// ignoring returns an error unless it is of this kind.
func ignoring(err, kind error) error {
	if errors.Is(err, kind) {
		return nil
	}
	return err
}
