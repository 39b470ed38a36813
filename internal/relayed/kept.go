package relayed

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/mcpbridge/bridge/sessions"
	"github.com/mcpbridge/bridge/sessions/store"
)

// record is what is kept of a session. Its members are called as those of the records of the
// bridge's own sessions: who lists a store reads both.
type record struct {
	V         int       `json:"v"`
	ID        string    `json:"id"`
	Principal string    `json:"principal,omitempty"`
	Began     time.Time `json:"began"`
	Relayed   bool      `json:"relayed"`
}

const recordVersion = 1

const (
	storeTimeout = 5 * time.Second // for what a request cannot do without
	lookTimeout  = time.Second     // for what it can
	lookEvery    = time.Minute
)

// name is where a session is kept. Ids of the bridge's own sessions, which are kept under the same scope, have
// no line feeds, nor has a server's.
func (s *Sessions) name(id string) string { return store.Name(s.opt.Scope + "\nrelayed\n" + id) }

// of has the context of an operation say whose it is, where the store has it wait for its turn.
func (s *Sessions) of(ctx context.Context, tenant string) context.Context {
	if !store.Crowded(s.opt.Store) {
		return ctx
	}
	return store.WithTurn(ctx, store.Turn{Owner: tenant})
}

// ttl is how long a record outlives its last touch, of which one may be missed.
func (s *Sessions) ttl() time.Duration { return s.opt.Idle + 2*s.touchEvery() }

func (s *Sessions) touchEvery() time.Duration { return s.opt.Idle / 4 }

// save keeps a session. One that cannot be kept is known in memory alone, until its next look at the store.
func (s *Sessions) save(ctx context.Context, one *session, wait time.Duration) error {
	if s.opt.Store == nil {
		return nil
	}
	now := time.Now()
	one.looked.Store(now.UnixNano())
	one.touched.Store(now.UnixNano())
	one.began.Store(now.UnixNano())
	value, err := json.Marshal(record{recordVersion, one.id, one.owner.Principal, now, true})
	if err == nil {
		err = one.room.Set(one.owner.Tenant, len(value), s.ttl())
	}
	if err == nil {
		err = within(s.of(ctx, one.owner.Tenant), wait, func(ctx context.Context) error {
			return s.opt.Store.Commit(ctx, s.name(one.id), store.Change{Kind: store.Session, Replaces: store.Any, TTL: s.ttl(), Value: value})
		})
	}
	one.saved.Store(err == nil)
	s.report("keeping a relayed session", err)
	return err
}

// load looks for a session in the store, and has it known here if it is one of who asks. It returns nil when there
// is none.
func (s *Sessions) load(ctx context.Context, id string, who Owner) (*session, error) {
	if s.opt.Store == nil {
		return nil, nil
	}
	kept, found, err := s.read(s.of(ctx, who.Tenant), id, storeTimeout)
	if kept == nil {
		s.report("looking for a relayed session", err)
		return nil, err
	}
	one := &session{id: id, owner: Owner{kept.Principal, who.Tenant}}
	if s.serves(one, who) {
		one.room = s.opt.Room.Find(who.Tenant, len(found.Value), s.ttl())
		one.saved.Store(true)
		one.began.Store(kept.Began.UnixNano())
		one.looked.Store(time.Now().UnixNano())
		s.liveOn(ctx, one, &found)
		s.put(one)
	}
	return one, nil
}

// read returns the record of a session, nil when there is none that can be read.
func (s *Sessions) read(ctx context.Context, id string, wait time.Duration) (kept *record, found store.Record, err error) {
	err = within(ctx, wait, func(ctx context.Context) error {
		found, err = s.opt.Store.Get(ctx, store.Address{Session: s.name(id), Kind: store.Session})
		return err
	})
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil, found, nil
	case err != nil:
		return nil, found, err
	case found.Err != nil: // of another key, or of a newer bridge
		return nil, found, nil
	}
	kept = new(record)
	if json.Unmarshal(found.Value, kept) != nil || kept.V != recordVersion || kept.ID != id || !kept.Relayed {
		return nil, found, nil
	}
	return kept, found, nil
}

// isCurrent looks at the store from time to time, whether a session is still what is known of it, and has it live
// on there. Where the store cannot be asked, as an error says, what is known counts.
func (s *Sessions) isCurrent(ctx context.Context, one *session) (bool, error) {
	looked, now := one.looked.Load(), time.Now()
	if s.opt.Store == nil || now.UnixNano()-looked < int64(min(lookEvery, s.touchEvery())) || !one.looked.CompareAndSwap(looked, now.UnixNano()) {
		return true, nil
	}
	if !one.saved.Load() && !one.met {
		return true, s.save(ctx, one, lookTimeout)
	}
	kept, found, err := s.read(s.of(ctx, one.owner.Tenant), one.id, lookTimeout)
	switch {
	case err != nil:
		s.report("looking at a relayed session", err)
		return true, err
	case one.met && kept == nil: // nobody has kept it, or it has ended, which the server knows
		return true, nil
	case one.met:
		one.began.Store(kept.Began.UnixNano())
		one.saved.Store(true)
	case kept == nil || kept.Principal != one.owner.Principal:
		return false, nil
	}
	if now.UnixNano()-one.touched.Load() >= int64(s.touchEvery()) {
		s.liveOn(ctx, one, &found)
	}
	return true, nil
}

// liveOn has a record live on, under the first of the keys by then.
func (s *Sessions) liveOn(ctx context.Context, one *session, found *store.Record) {
	one.touched.Store(time.Now().UnixNano())
	one.room.Renew(s.ttl())
	s.report("touching a relayed session", within(ctx, lookTimeout, func(ctx context.Context) error {
		if !found.Older {
			return s.opt.Store.Touch(ctx, store.Touch{Session: found.Session, TTL: s.ttl()})
		}
		err := s.opt.Store.Commit(ctx, found.Session, store.Change{Kind: store.Session, Replaces: found.Version, TTL: s.ttl(), Value: found.Value})
		if _, changed := errors.AsType[*store.ConflictError](err); changed { // by somebody who had it live on
			return nil
		}
		return err
	}))
}

// remove removes what is kept of a session.
func (s *Sessions) remove(ctx context.Context, id string) {
	if s.opt.Store == nil {
		return
	}
	s.report("removing a relayed session", within(ctx, storeTimeout, func(ctx context.Context) error {
		return s.opt.Store.End(ctx, s.name(id))
	}))
}

// removeAll removes the records of sessions that the server has lost, until the store fails: then the others expire.
func (s *Sessions) removeAll(lost []sessions.Use[*session]) {
	for _, use := range lost {
		use.Value.room.Release()
	}
	for _, use := range lost {
		if err := s.removeLost(use.Value); err != nil {
			s.report("removing relayed sessions", err)
			return
		}
	}
}

// removeLost removes the record of a session, but not that of one which was opened since then under the same id.
func (s *Sessions) removeLost(one *session) error {
	if !one.saved.Load() {
		return nil
	}
	kept, found, err := s.read(s.ctx, one.id, storeTimeout)
	if err != nil || kept == nil || kept.Began.UnixNano() != one.began.Load() {
		return err
	}
	err = within(s.ctx, storeTimeout, func(ctx context.Context) error {
		return s.opt.Store.Commit(ctx, s.name(one.id), store.Change{Kind: store.Session, Replaces: found.Version, Delete: true})
	})
	if _, since := errors.AsType[*store.ConflictError](err); since {
		return nil
	}
	return err
}

// within makes an operation of the store with the time that it may take.
func within(ctx context.Context, wait time.Duration, operation func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	return operation(ctx)
}

func (s *Sessions) report(doing string, err error) {
	if err != nil {
		s.seldom.Warn().Err(err).Msg(doing + " failed")
	}
}
