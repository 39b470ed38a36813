package session

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/budget"
	"github.com/mcpbridge/bridge/internal/logfield"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/sessions"
	"github.com/mcpbridge/bridge/sessions/store"
)

// stored is what a session knows of its record, which several replicas may share: each has
// the session as of the version that it has seen, and is told when there is a newer one.
type stored struct {
	stale    atomic.Bool            // another replica may have changed the record
	lost     atomic.Bool            // the connection to the store was lost since: no copy of the record will do
	deleted  atomic.Bool            // its client ends it here, of which the store tells, too
	older    atomic.Bool            // what store.Record says of the record
	takeover sync.Mutex             // one call is taken over at a time
	name     atomic.Pointer[string] // see keeper.nameOf

	mu      sync.Mutex // one save at a time
	version uint64     // of the record in the store; 0: there is none yet
	// auth and principal are what that record has the session bound to.
	auth, principal string
	base            []byte  // the conversation in that record, where the store is shared
	known           digests // of that record and of those before it that were seen here; as well
	gone            bool    // the session ended
	unsure          digests // of records that may be in the store since, or come there late

	waiting waitingCalls // which wait to be made again, and where

	kept  budget.Kept // what the record in the store takes
	payer string      // in whose share that was counted when the session came back

	away atomic.Bool // its calls may be in the store and not here: it came back, or some left memory

	shelf shelf // its calls that are in the store alone
	span  span

	lateMu sync.Mutex
	late   map[jsonrpc.ID]int  // calls that have ended, and the store has still
	ending map[uint64]struct{} // their streams

	doubts  int           // calls of which nobody knows what the store has
	settled chan struct{} // closed when there are none any more; nil: nobody waits for that
}

// doubtful reports whether there is doubt. s is nil without a store.
func (s *stored) doubtful() bool {
	if s == nil {
		return false
	}
	s.lateMu.Lock()
	defer s.lateMu.Unlock()
	return s.doubts > 0
}

// refreshTimeout bounds how long a call may be held up by a look at its session's record.
const refreshTimeout = time.Second

// saveTries is how often a change is merged with those of other replicas.
const saveTries = 5

// save brings a session's record up to date, and reports whether it is. A session that
// cannot be saved goes on without: the log tells, and it is tried again until that succeeds.
func (k *keeper) save(s *Session) bool {
	bound := s.owner().n
	err := k.commit(s)
	k.follow(s, bound)
	if errors.Is(err, downstream.ErrGone) {
		k.gone(s)
		return false
	}
	k.report("saving a session", err)
	if err != nil && s.listed.Load() {
		k.note(s, true)
	}
	return err == nil
}

// gone ends a session that was ended elsewhere. Whether its client did that nobody can tell, and an answer to calls that it gave up
// harms nobody.
func (k *keeper) gone(s *Session) {
	s.stored.mu.Lock()
	s.stored.gone = true
	s.stored.mu.Unlock()
	s.stored.kept.Release()
	k.set.opt.Logger.Debug().Str(logfield.SessionID, logfield.Short(s.rec.ID)).Msg("the session was ended elsewhere")
	s.ended.Store(true)
	s.leave(sessions.Elsewhere)
}

// commit saves a session, after what others have changed meanwhile was merged in. The
// error is ErrGone when one has ended it.
func (k *keeper) commit(s *Session) error {
	s.stored.mu.Lock()
	defer s.stored.mu.Unlock()
	var err error
	for range saveTries {
		if s.stored.gone {
			return nil
		}
		err = k.commitLocked(s)
		if _, conflict := errors.AsType[*store.ConflictError](err); !conflict {
			return err
		}
		if err = k.refreshLocked(s, true); err != nil {
			return err
		}
	}
	return err
}

func (k *keeper) commitLocked(s *Session) error {
	conversation := s.conv.Record()
	if conversation == nil {
		return nil
	}
	owner, payer := s.owner(), s.Payer()
	value, err := json.Marshal(&sessionRecord{
		V: sessionRecordVersion, ID: s.rec.ID, Version: s.rec.Version, Principal: owner.principal, Authorization: owner.auth, Also: owner.also,
		Began: s.began(), Conversation: conversation, Waiting: s.stored.waiting.all(), Payer: payer, Before: s.stored.known.last(mostBefore),
	})
	if err != nil {
		return err
	}
	began, ttl := time.Now(), k.ttlOf(s)
	if err := s.stored.kept.Set(payer, len(value), ttl); err != nil {
		return err
	}
	change := store.Change{Kind: store.Session, Replaces: s.stored.version, TTL: ttl, WithCalls: k.shared, Value: value}
	err = k.store.Commit(k.timeFor(s, len(value)), k.name(s.rec.ID), change)
	_, conflict := errors.AsType[*store.ConflictError](err)
	switch {
	case err == nil:
		s.stored.version++
		s.stored.older.Store(false)
		s.stored.auth, s.stored.principal = owner.auth, owner.principal
		s.stored.unsure = nil
		k.rememberLocked(s, conversation, digestOf(value))
		k.lengthen(s, s.stored.span.written(began.Add(ttl)))
	case !conflict && !errors.Is(err, store.ErrUnreachable):
		s.stored.unsure = s.stored.unsure.with(digestOf(value), nil)
	}
	return err
}

// isNewer reports whether a record of this version is older than the one that is known.
func (s *stored) isNewer(version uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return version < s.version
}

// readLocked notes which record the session is as of.
func (s *stored) readLocked(version uint64, record *sessionRecord) {
	s.version, s.auth, s.principal = version, record.Authorization, record.Principal
	s.older.Store(record.older)
}

func (k *keeper) rememberLocked(s *Session, conversation []byte, sum digest, before ...digest) {
	if k.shared {
		s.stored.base, s.stored.known = conversation, s.stored.known.with(sum, before)
	}
}

// refresh takes over what other replicas have changed of a session since it was looked
// at. Where the store can't be reached, the session goes on as it is.
func (k *keeper) refresh(s *Session) {
	if k.look(s, false) != nil {
		s.stored.stale.Store(true)
	}
}

// look merges the record in the store into the session, if it may have been changed, which ends where another
// replica has ended it. certain: this one may be told of a change yet, and no copy will do. The error says that
// nobody knows.
func (k *keeper) look(s *Session, certain bool) error {
	bound := s.owner().n
	s.stored.mu.Lock()
	var err error
	if (certain || s.stored.stale.Swap(false)) && !s.stored.gone && s.stored.version > 0 {
		err = k.refreshLocked(s, certain)
	}
	s.stored.mu.Unlock()
	k.follow(s, bound)
	if errors.Is(err, downstream.ErrGone) {
		k.gone(s)
		return nil
	}
	k.report("looking at a session", err)
	return err
}

// follow has the conversation go on with the credentials that another replica has bound the session to, which
// was bound so many times before.
func (k *keeper) follow(s *Session, bound uint64) {
	if now := s.owner(); now.n != bound {
		s.conv.Reauthorize(now.auth)
	}
}

// refreshLocked merges the record in the store into the session. The error is ErrGone when
// there is none. certain: no copy will do.
func (k *keeper) refreshLocked(s *Session, certain bool) error {
	ctx, cancel := context.WithTimeout(context.Background(), refreshTimeout)
	defer cancel()
	if store.Crowded(k.store) {
		ctx = store.WithTurn(ctx, store.Turn{Owner: s.account.Owner()})
	}
	certain = s.stored.lost.Swap(false) || certain
	record, version, err := restorer{k}.get(ctx, s.rec.ID, certain)
	if err != nil {
		if certain {
			s.stored.lost.Store(true)
		}
		return err
	}
	if record == nil {
		return downstream.ErrGone
	}
	switch at := s.stored.known.place(record.sum); {
	case version > s.stored.version: // another replica's
	case !certain || !k.shared:
		return nil
	case at >= 0:
		if s.stored.goBackLocked(at, version, record) {
			k.note(s, true)
		}
		return nil
	}
	// Who wrote it may not know of the calls here.
	k.lengthen(s, s.stored.span.written(time.Now().Add(record.ttl)))
	if slices.Contains(s.stored.unsure, record.sum) { // which is no change of another replica's
		s.stored.version, s.stored.unsure = version, nil
		k.rememberLocked(s, record.Conversation, record.sum, record.Before...)
		return nil
	}
	if !bytes.Equal(record.Conversation, s.stored.base) {
		if err := s.conv.Adopt(s.stored.base, record.Conversation); err != nil {
			return err
		}
	}
	s.stored.waiting.adopt(record.Waiting)
	others := record.Authorization != s.stored.auth || record.Principal != s.stored.principal // else it may be bound anew here
	if owner := s.owner(); others && (owner.auth != record.Authorization || owner.principal != record.Principal) {
		s.rebound.Store(&binding{record.Authorization, record.Principal, owner.n + 1, record.Also})
	}
	s.stored.readLocked(version, record)
	k.rememberLocked(s, record.Conversation, record.sum, record.Before...)
	return nil
}

// goBackLocked learns that the store has, under no higher version, a record that is known, and reports whether what is here came from that:
// then the store has come back without its last moment. A record that is not known was written since by another replica.
func (s *stored) goBackLocked(at int, version uint64, record *sessionRecord) (newer bool) {
	s.version = version
	if newer = at < len(s.known)-1; newer {
		s.base, s.known, s.auth, s.principal = record.Conversation, s.known[:at+1], record.Authorization, record.Principal
	}
	return newer
}

// watch has the session told from now on when its record changes, and looks whether that
// has just happened.
func (k *keeper) watch(s *Session) {
	if !k.shared {
		return
	}
	k.mu.Lock()
	k.names[k.name(s.rec.ID)] = s
	k.mu.Unlock()
	s.stored.stale.Store(true)
	k.refresh(s)
}

func (k *keeper) forget(name string, s *Session) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.names[name] == s {
		delete(k.names, name)
	}
}

// changed is told by the store that a session's record changed; "" stands for all. It
// doesn't wait.
func (k *keeper) changed(name string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if name != "" {
		if s := k.names[name]; s != nil {
			k.outdated(s)
		}
		return
	}
	for _, s := range k.names {
		s.stored.lost.Store(true)
		k.outdated(s)
	}
	signal(k.lost)
}

// outdated has a session looked at: at once when something is going on in it, or waits to be made
// again, which may be to end, otherwise before its next request.
func (k *keeper) outdated(s *Session) {
	s.stored.stale.Store(true)
	if !s.Busy() && !s.stored.waiting.here(k.replicaID) {
		return
	}
	select {
	case k.changes <- s:
	default:
	}
}

// giveUpFor bounds how long the calls of a session that ends are looked at: who ends it waits for that.
const giveUpFor = 2 * storeTimeout

// giveUpAtOnce is how many small calls of a session that ends are read at a time: it may have thousands, and the store be far away.
const giveUpAtOnce = 16

// elsewhere returns what tells the server that a session ends with those of its calls that are not in this process: their records, which
// are about to be removed, say what the server still does for them, and the end of the session is theirs, too (G-13). A living
// replica that has one ends it when it hears of that, and tells the server the same: twice does no harm, and
// whether it lives is only known when its lease is over. They are read on that account, but for those that ended here, some at a
// time, and then the large ones one after the other: all together may be larger than the memory. Where the store fails, or is too slow, the server ends the others by its own time. What
// this process has counted for them in the store is given back at the same time.
func (k *keeper) elsewhere(s *Session, account *budget.Account) []func() {
	if k.set.opt.Calls == nil || !k.shared && !s.stored.away.Load() {
		return nil
	}
	until := time.Now().Add(giveUpFor)
	var list []store.Record
	err := k.do(func(ctx context.Context) (err error) {
		list, err = store.Glance(ctx, k.store, k.name(s.rec.ID))
		return err
	})
	list = slices.DeleteFunc(list, func(r store.Record) bool {
		return r.Kind != store.Flow || s.streams.Find(streamOf(&r)) != nil || s.streams.IsOver(streamOf(&r))
	})
	tells, large := make([]func(), len(list)), make([]bool, len(list))
	look := func(i int, small bool) error {
		if time.Now().After(until) {
			return context.DeadlineExceeded
		}
		tell, err := k.giveUp(s, account, list[i].Address, small)
		tells[i], large[i] = tell, errors.Is(err, errLarge)
		if large[i] {
			return nil
		}
		return err
	}
	if err == nil {
		some, failed := errgroup.WithContext(k.patience)
		some.SetLimit(giveUpAtOnce)
		for i := 0; i < len(list) && failed.Err() == nil; i++ {
			some.Go(func() error { return look(i, true) })
		}
		err = some.Wait()
	}
	for i := 0; i < len(list) && err == nil; i++ {
		if large[i] {
			err = look(i, false)
		}
	}
	k.report("looking for the calls of a session that ends", err)
	return slices.DeleteFunc(tells, func(one func()) bool { return one == nil })
}
