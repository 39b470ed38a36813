package session

import (
	"context"
	"errors"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/sessions/store"
)

// What the calls of a session need of the store. What their records say is package
// exchange's.

// ChangeCalls changes records of the session's calls. The error is ErrGone when another
// replica has changed one.
func (s *Session) ChangeCalls(changes ...store.Change) error {
	k := s.set.keeper
	err := k.do(func(ctx context.Context) error { return k.store.Commit(ctx, k.name(s.rec.ID), changes...) })
	if _, conflict := errors.AsType[*store.ConflictError](err); conflict {
		return downstream.ErrGone
	}
	return err
}

// Records returns all that the store has of the session.
func (s *Session) Records() (list []store.Record, err error) {
	k := s.set.keeper
	err = k.do(func(ctx context.Context) (err error) {
		list, err = k.store.Load(ctx, k.name(s.rec.ID))
		return err
	})
	return list, err
}

// Record returns the record of one call, which may be a copy that the engine watches over.
func (s *Session) Record(kind store.Kind, id string) (r store.Record, err error) {
	k := s.set.keeper
	err = k.do(func(ctx context.Context) (err error) {
		r, err = k.store.Get(ctx, store.Address{Session: k.name(s.rec.ID), Kind: kind, ID: id})
		return err
	})
	return r, err
}

// Shared reports whether other replicas may change what the store has of the session.
func (s *Session) Shared() bool { return s.set.keeper.shared }

// Pause passes the time between two tries of one change.
func (s *Session) Pause() { s.set.keeper.pause() }

// Report logs what the store has failed at, unless err is nil.
func (s *Session) Report(what string, err error) { s.set.keeper.report(what, err) }

// TakeOver does work while nobody else takes a call of the session over.
func (s *Session) TakeOver(work func() error) error {
	s.kept.takeover.Lock()
	defer s.kept.takeover.Unlock()
	return work()
}
