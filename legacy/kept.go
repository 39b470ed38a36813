package legacy

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/logfield"
	"github.com/mcpbridge/bridge/legacy/stream"
	"github.com/mcpbridge/bridge/sessions"
	"github.com/mcpbridge/bridge/sessions/store"
)

// kept is what a session knows of its record, which several replicas may share: each has
// the session as of the version that it has seen, and is told when there is a newer one.
type kept struct {
	stale    atomic.Bool // another replica may have changed the record
	takeover sync.Mutex  // one call is taken over at a time

	mu      sync.Mutex // one save at a time
	version uint64     // of the record in the store; 0: there is none yet
	base    []byte     // the conversation in that record, where the store is shared
	gone    bool       // the session ended
}

// number begins those of the streams of a session that this replica gets to know; 0
// without a store.
func (k *keeper) number() stream.Number {
	if k == nil {
		return 0
	}
	return stream.First(k.seat, k.opened.Add(1))
}

// refreshTimeout bounds how long a call may be held up by a look at its session's record.
const refreshTimeout = time.Second

// saveTries is how often a change is merged with those of other replicas.
const saveTries = 5

// save brings a session's record up to date. A session that cannot be saved goes on
// without: the log tells, and the next change tries again.
func (k *keeper) save(s *session) {
	err := k.commit(s)
	if errors.Is(err, downstream.ErrGone) {
		k.gone(s)
		return
	}
	k.report("saving a session", err)
}

// gone ends a session that another replica has ended.
func (k *keeper) gone(s *session) {
	s.kept.mu.Lock()
	s.kept.gone = true
	s.kept.mu.Unlock()
	k.http.opt.Logger.Debug().Str(logfield.SessionID, logfield.Short(s.rec.ID)).Msg("the session was ended at another replica")
	s.End(downstream.ErrGone)
}

// commit saves a session, after what others have changed meanwhile was merged in. The
// error is ErrGone when one has ended it.
func (k *keeper) commit(s *session) error {
	s.kept.mu.Lock()
	defer s.kept.mu.Unlock()
	var err error
	for range saveTries {
		if s.kept.gone {
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

func (k *keeper) commitLocked(s *session) error {
	conversation := s.conv.Record()
	if conversation == nil {
		return nil
	}
	auth, principal := s.owner()
	value, err := json.Marshal(&sessionRecord{
		V: sessionRecordVersion, ID: s.rec.ID, Version: s.rec.Version, Principal: principal, Authorization: auth,
		Began: s.born, Conversation: conversation,
	})
	if err != nil {
		return err
	}
	err = k.do(func(ctx context.Context) error {
		return k.store.Commit(ctx, k.name(s.rec.ID), store.Change{Kind: store.Session, Replaces: s.kept.version, TTL: k.ttl(), Value: value})
	})
	if err == nil {
		s.kept.version++
		k.rememberLocked(s, conversation)
	}
	return err
}

func (k *keeper) rememberLocked(s *session, conversation []byte) {
	if k.shared {
		s.kept.base = conversation
	}
}

// refresh takes over what other replicas have changed of a session since it was looked
// at. Where the store can't be reached, the session goes on as it is.
func (k *keeper) refresh(s *session) {
	s.kept.mu.Lock()
	var err error
	if s.kept.stale.Swap(false) && !s.kept.gone && s.kept.version > 0 {
		err = k.refreshLocked(s, false)
	}
	s.kept.mu.Unlock()
	switch {
	case errors.Is(err, downstream.ErrGone):
		k.gone(s)
	case err != nil:
		s.kept.stale.Store(true)
		k.report("looking at a session", err)
	}
}

// refreshLocked merges the record in the store into the session. The error is ErrGone when
// there is none. certain: no copy will do.
func (k *keeper) refreshLocked(s *session, certain bool) error {
	ctx, cancel := context.WithTimeout(context.Background(), refreshTimeout)
	defer cancel()
	record, version, err := k.get(ctx, s.rec.ID, certain)
	if err != nil {
		return err
	}
	if record == nil {
		return downstream.ErrGone
	}
	if version <= s.kept.version {
		return nil
	}
	if !bytes.Equal(record.Conversation, s.kept.base) {
		if err := s.conv.Adopt(s.kept.base, record.Conversation); err != nil {
			return err
		}
	}
	if auth, principal := s.owner(); auth != record.Authorization || principal != record.Principal {
		s.rebound.Store(&binding{record.Authorization, record.Principal})
	}
	s.kept.version = version
	k.rememberLocked(s, record.Conversation)
	return nil
}

// restore brings a session back that this process doesn't know. It returns nil when
// there is none, and an error when it may be there but cannot be had now.
func (k *keeper) restore(r *http.Request, id string) (*session, error) {
	if len(id) > store.MaxID {
		return nil, nil
	}
	restored, err, _ := k.restoring.Do(id, func() (any, error) {
		if s, ok := k.http.table.Get(id); ok {
			return s, nil // just now
		}
		return k.revive(context.WithoutCancel(r.Context()), id)
	})
	if err != nil {
		k.http.opt.Logger.Warn().Err(err).Str(logfield.SessionID, logfield.Short(id)).Msg("a session could not be brought back")
	}
	s, _ := restored.(*session)
	if errors.Is(err, downstream.ErrGone) {
		err = nil
	}
	return s, err
}

func (k *keeper) revive(ctx context.Context, id string) (*session, error) {
	bounded, cancel := context.WithTimeout(ctx, storeTimeout)
	record, version, err := k.get(bounded, id, false)
	cancel()
	if err != nil || record == nil {
		return nil, err
	}
	s := &session{http: k.http, auth: record.Authorization, born: record.Began, kept: new(kept)}
	s.rec = sessions.Record{ID: id, Version: record.Version, Principal: record.Principal}
	s.kept.version = version
	k.rememberLocked(s, record.Conversation)
	if s.account, err = k.http.opt.openAccount(record.Principal, len(record.Conversation)+len(record.Authorization)); err != nil {
		return nil, err
	}
	s.streams.Init(k.http.streams, &s.rec, s.account, k.number())
	caller := downstream.Caller{Principal: record.Principal, Authorization: record.Authorization, Account: s.account}
	if s.conv, err = k.http.backend.Restore(ctx, caller, record.Conversation, s.pusher()); err != nil {
		s.account.Close()
		return nil, err
	}
	if err = s.enlist(); err != nil {
		return nil, err
	}
	k.watch(s)
	k.http.opt.Logger.Debug().Str(logfield.SessionID, logfield.Short(id)).Msg("session brought back")
	return s, nil
}

// get reads a session's record, nil when there is none. certain: no copy will do.
func (k *keeper) get(ctx context.Context, id string, certain bool) (*sessionRecord, uint64, error) {
	found, err := k.find(ctx, store.Address{Session: k.name(id), Kind: store.Session}, certain)
	if errors.Is(err, store.ErrNotFound) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	if found.Err != nil {
		return nil, 0, fmt.Errorf("%w: %w", downstream.ErrGone, found.Err)
	}
	record := new(sessionRecord)
	if err := json.Unmarshal(found.Value, record); err != nil || record.ID != id || record.V < 1 {
		return nil, 0, fmt.Errorf("%w: its record cannot be read", downstream.ErrGone)
	}
	if record.V > sessionRecordVersion {
		return nil, 0, fmt.Errorf("%w: %w", downstream.ErrGone, store.ErrNewer)
	}
	return record, found.Version, nil
}

func (k *keeper) find(ctx context.Context, at store.Address, certain bool) (store.Record, error) {
	if !certain {
		return k.store.Get(ctx, at)
	}
	list, err := k.store.Load(ctx, at.Session)
	for i := range list {
		if list[i].Address == at {
			return list[i], nil
		}
	}
	if err == nil {
		err = store.ErrNotFound
	}
	return store.Record{}, err
}

// watch has the session told from now on when its record changes, and looks whether that
// has just happened.
func (k *keeper) watch(s *session) {
	if !k.shared {
		return
	}
	k.mu.Lock()
	k.names[k.name(s.rec.ID)] = s
	k.mu.Unlock()
	s.kept.stale.Store(true)
	k.refresh(s)
}

func (k *keeper) forget(name string, s *session) {
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
		k.outdated(s)
	}
}

// outdated has a session looked at: at once when something is going on in it, which may be
// to end, otherwise before its next request.
func (k *keeper) outdated(s *session) {
	s.kept.stale.Store(true)
	if !s.busy() {
		return
	}
	select {
	case k.changes <- s:
	default:
	}
}

// Changed implements Pusher.
func (s *session) Changed() {
	if s.kept != nil && s.listed.Load() {
		s.http.keeper.save(s)
	}
}
