package session

import (
	"errors"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/budget"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/sessions"
	"github.com/mcpbridge/bridge/sessions/store"
)

// What the calls of a session need of the store. What their records say is package
// exchange's.

// ChangeCalls changes records of the session's calls. The error is ErrGone when another
// replica has changed one.
func (s *Session) ChangeCalls(changes ...store.Change) error {
	k := s.set.keeper
	wait := k.lengthenFor(s, changes)
	err := k.store.Commit(k.timeFor(s, store.SizeOf(changes)), k.nameOf(s), changes...)
	wait()
	if err == nil {
		s.stored.span.done(changes, k.ttl())
	}
	if _, conflict := errors.AsType[*store.ConflictError](err); conflict {
		return downstream.ErrGone
	}
	return err
}

// Room returns what there is in the store for what peers have it keep.
func (s *Session) Room() *budget.Room { return s.set.opt.Room }

// Glance returns all that the store has of the session, without saying what.
func (s *Session) Glance() (list []store.Record, err error) {
	k := s.set.keeper
	return store.Glance(k.timeFor(s, 0), k.store, k.nameOf(s))
}

// Told notes what the client that polls for a call in the store has heard by its record. Small ones are as well read again: a look at what
// there is of a session costs as much as it has.
func (s *Session) Told(stream uint64, r *store.Record, heard Heard) {
	if len(r.Value) >= largeRecord {
		s.stored.shelf.hear(stream, &heard)
	}
}

// HasHeard reports whether a client has heard all that there is of a call in the store, without reading that, as far as it is known.
func (s *Session) HasHeard(stream uint64, id string, caller *downstream.Caller, last uint64) bool {
	heard := s.stored.shelf.hear(stream, nil)
	if heard == nil || caller.Unproven || heard.By != caller.Principal || last < heard.Last || last > heard.Beyond {
		return false
	}
	list, err := s.Glance()
	return err == nil && slices.ContainsFunc(list, func(r store.Record) bool {
		return r.Kind == store.Flow && r.ID == id && r.Version == heard.Version
	})
}

// Vanished reports whether the store has the session no more: it was ended, or the store has lost it.
func (s *Session) Vanished() (bool, error) {
	list, err := s.Glance()
	return err == nil && !slices.ContainsFunc(list, func(r store.Record) bool { return r.Kind == store.Session }), err
}

// Record returns the record of one call, which may be a copy that the engine watches over. It is charged to the session until its
// passage is over; for want of memory, or of a turn, it is not read, and the error is one of budget, or ErrNoTurn.
func (s *Session) Record(kind store.Kind, id string, haste Haste) (store.Record, *Passage, error) {
	return passages{s.set.keeper}.read(s, kind, id, haste)
}

// Shared reports whether other replicas may change what the store has of the session.
func (s *Session) Shared() bool { return s.set.keeper.shared }

// Pause passes the time between two tries of one change. It returns false at once when the process ends.
func (s *Session) Pause() bool { return s.set.keeper.pause() }

// Report logs what the store has failed at, unless err is nil.
func (s *Session) Report(what string, err error) { s.set.keeper.report(what, err) }

// ErrLeft says that a session has left memory for the store: it is to be found anew.
var ErrLeft = errors.New("the session has left memory")

// TakeOver does work while nobody else takes a call of the session over. The error is that of work, or ErrLeft.
func (s *Session) TakeOver(work func() error) error {
	if !s.Enter() {
		return ErrLeft
	}
	defer s.Exit()
	s.stored.takeover.Lock()
	defer s.stored.takeover.Unlock()
	return work()
}

// Shelve notes that a call is in the store alone, until then at most, Unshelve that it is not any more. noted says that
// somebody comes when something is due to it; for others the walk through the store is to be asked (Astray).
func (s *Session) Shelve(stream uint64, until time.Time, noted bool) {
	s.stored.away.Store(true)
	s.stored.shelf.put(stream, until, noted)
}

// Unshelve is described with Shelve.
func (s *Session) Unshelve(stream uint64) { s.stored.shelf.take(stream) }

// Shelved reports whether a call is in the store alone, and stays there.
func (s *Session) Shelved(stream uint64) bool {
	return s.stored != nil && s.set.keeper.unloads() && s.stored.shelf.has(stream)
}

// Astray says that a call was left to the store which nobody comes for by the clock, though its replica lives.
func (s *Session) Astray() { s.set.Astray() }

// Detached implements downstream.Pusher.
func (s *Session) Detached(call uint64, until time.Time) {
	if s.stored == nil || !s.set.keeper.shared || !s.listed.Load() {
		return
	}
	s.stored.mu.Lock()
	s.stored.waiting.adopt([]waiting{{call, s.set.keeper.replicaID, until.UTC()}})
	s.stored.mu.Unlock()
	s.set.keeper.save(s)
}

// WaitsAt returns the replica where a call like this one waits to be made again, 0 when none does
// as far as this one knows.
func (s *Session) WaitsAt(msg *jsonrpc.Message, header http.Header) downstream.ReplicaID {
	if s.stored == nil {
		return 0
	}
	return s.stored.waiting.at(msg, header)
}

// IsLate reports whether a call with this id of its client's has ended, and the store is yet to learn of it.
func (s *Session) IsLate(request jsonrpc.ID) bool {
	s.stored.lateMu.Lock()
	defer s.stored.lateMu.Unlock()
	return s.stored.late[request] > 0
}

// Doubt notes that nobody knows what the store has of a call, until settled is called: what was written may be
// made when nobody waits for it any more.
func (s *Session) Doubt() (settled func()) {
	k := s.stored
	k.lateMu.Lock()
	defer k.lateMu.Unlock()
	k.doubts++
	return func() {
		k.lateMu.Lock()
		defer k.lateMu.Unlock()
		if k.doubts--; k.doubts == 0 && k.settled != nil {
			close(k.settled)
			k.settled = nil
		}
	}
}

// Settled waits until there is no doubt what the store has of the session's calls, and reports whether there is none.
func (s *Session) Settled(until time.Time) bool {
	settled := s.stored.inDoubt()
	if settled == nil {
		return true
	}
	late := time.NewTimer(time.Until(until))
	defer late.Stop()
	select {
	case <-settled:
		return true
	case <-late.C:
	case <-s.set.keeper.ctx.Done():
	}
	return false
}

// inDoubt returns what is closed when there is no doubt any more; nil: there is none.
func (k *stored) inDoubt() <-chan struct{} {
	k.lateMu.Lock()
	defer k.lateMu.Unlock()
	if k.doubts > 0 && k.settled == nil {
		k.settled = make(chan struct{})
	}
	return k.settled
}

// Resolve does work in the background that is to end a doubt. stop reports that the process is about to end,
// during which nothing begins: it returns false then.
func (s *Session) Resolve(work func(stop func() bool)) bool {
	k := s.set.keeper
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed {
		return false
	}
	k.running.Go(func() { work(func() bool { return k.ctx.Err() != nil }) })
	return true
}

// Begin counts an exchange with this many requests in, Done counts it out. Those with
// credentials that it is not bound to are counted apart. In a session that has been ended
// nothing begins: it reports false.
func (s *Session) Begin(requests int32, unproven bool) bool {
	s.active.Add(1)
	s.requests(unproven).Add(requests)
	if s.ended.Load() {
		s.Done(requests, unproven)
		return false
	}
	return true
}

// IsVisitor reports whether a principal that made a call is another one than the session's owner. Whoever is not known to be
// one is not.
func (s *Session) IsVisitor(principal string) bool {
	owner := actorOf(s)
	return !owner.Owns(principal)
}

// Enter has the session stay in memory until Exit. It reports false when it has left that for the store: then it is to be found
// anew. Brought back beside itself it would take its own calls for a dead process'.
func (s *Session) Enter() bool {
	s.active.Add(1)
	if s.left.Load() { // which the unloader says before it looks whether somebody is here
		s.Exit()
		return false
	}
	return true
}

// Done is described with Begin.
func (s *Session) Done(requests int32, unproven bool) {
	s.requests(unproven).Add(-requests)
	s.Exit()
}

// Exit is described with Enter. The session's idle time begins with it. The last one lets go of a session that has been ended.
func (s *Session) Exit() {
	s.Used()
	if s.active.Add(-1) == 0 && s.ended.Load() {
		go s.leave(sessions.Removed) // whoever is done may be in the midst of what ends with it
	}
}

// Used implements stream.User. It comes before what the session was used for has ended, since an idle session may end at any moment.
func (s *Session) Used() { s.set.table.Touch(s.rec.ID) }

// Calls returns how many requests are under way.
func (s *Session) Calls(unproven bool) int { return int(s.requests(unproven).Load()) }

func (s *Session) requests(unproven bool) *atomic.Int32 {
	if unproven {
		return &s.unproven
	}
	return &s.calls
}
