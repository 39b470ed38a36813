package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/budget"
	"github.com/mcpbridge/bridge/internal/logfield"
	"github.com/mcpbridge/bridge/internal/turns"
	"github.com/mcpbridge/bridge/legacy/stream"
	"github.com/mcpbridge/bridge/observe"
	"github.com/mcpbridge/bridge/sessions"
	"github.com/mcpbridge/bridge/sessions/store"
)

// restorer is the part of a keeper that brings back what is in the store. It has no state
// of its own.
type restorer struct{ *keeper }

// restore brings a session back that this process doesn't know. It returns nil when
// there is none, and an error when it may be there but cannot be had now. by is the
// request that names it; nil: something in it is due.
func (k restorer) restore(ctx context.Context, id string, by *http.Request) (*Session, error) {
	if len(id) > store.MaxID {
		return nil, nil
	}
	once := func() (restored any, err error, shared bool) {
		return k.restoring.Do(id, func() (any, error) {
			if s, ok := k.set.table.Get(id); ok {
				return s, nil // just now
			}
			return k.revive(context.WithoutCancel(ctx), id, by)
		})
	}
	restored, err, shared := once()
	_, refused := errors.AsType[*downstream.Refusal](err)
	if refused && shared || errors.Is(err, errStays) { // perhaps it was another request's
		restored, err, _ = once()
		_, refused = errors.AsType[*downstream.Refusal](err)
	}
	if err != nil && !refused { // its client hears of these
		k.set.opt.Logger.Warn().Err(err).Str(logfield.SessionID, logfield.Short(id)).Msg("a session could not be brought back")
	}
	s, _ := restored.(*Session)
	if errors.Is(err, downstream.ErrGone) {
		err = nil
	}
	return s, err
}

func (k restorer) revive(ctx context.Context, id string, by *http.Request) (*Session, error) {
	bounded, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	record, version, err := k.get(k.askedBy(bounded, by), id, false)
	if err != nil || record == nil {
		return nil, err
	}
	s := &Session{set: k.set, auth: record.Authorization, born: record.Began.Sub(k.set.start), stored: &stored{payer: record.Payer}}
	s.stored.away.Store(true)
	s.rec = sessions.Record{ID: id, Version: record.Version, Principal: record.Principal}
	if len(record.Also) > 0 {
		s.rebound.Store(&binding{record.Authorization, record.Principal, 1, record.Also})
	}
	s.stored.readLocked(version, record)
	k.rememberLocked(s, record.Conversation, record.sum, record.Before...)
	s.stored.waiting.adopt(record.Waiting)
	s.stored.span.written(time.Now().Add(record.ttl))
	first := k.number()
	if k.unloads() || !k.shared { // else its record says how long it lasts
		if first, err = k.recall(bounded, s, id); err != nil {
			return nil, err
		}
	}
	of := record.Principal
	switch {
	case by != nil:
		of = k.set.tenant(of, by)
	case !k.set.vouched(record.Authorization):
		of = ""
	}
	s.share = of
	if s.account, err = OpenAccount(k.set.opt.Memory, of, len(record.Conversation)+len(record.Authorization)); err != nil {
		return nil, err
	}
	s.streams.Init(k.set.opt.Streams, s, &s.rec, s.account, first)
	caller := downstream.Caller{Principal: record.Principal, Tenant: of, Authorization: record.Authorization, Account: s.account, Transport: observe.StreamableHTTP}
	visitor := caller
	if by != nil {
		visitor = k.set.Caller(by)
	}
	if s.conv, err = k.set.opt.Backend.Restore(ctx, caller, visitor, record.Conversation, s); err != nil {
		s.account.Close()
		if errors.Is(err, downstream.ErrForeignEra) {
			err = k.foreign(s, record)
		}
		return nil, err
	}
	s.stored.kept = k.set.opt.Room.Find(cmp.Or(record.Payer, s.account.Owner()), record.size, record.ttl)
	if err = s.enlist(); err != nil {
		return nil, err
	}
	k.cameBack(id)
	k.watch(s)
	toucher(k).used(s)
	logfield.Each(k.set.opt.Logger.Debug()).Str(logfield.SessionID, logfield.Short(id)).Msg("session brought back")
	return s, nil
}

// recall learns what of a session is in the store alone, and returns a number for its
// streams that none of those has. It reads no call: whoever names a session would have the store send all of them. So last
// words count like calls, for their short life.
func (k restorer) recall(ctx context.Context, s *Session, id string) (stream.Number, error) {
	list, err := store.Glance(ctx, k.store, k.name(id))
	if err != nil {
		return 0, err
	}
	first := k.number()
	for range list { // each makes one number impossible at most
		if !slices.ContainsFunc(list, func(r store.Record) bool { return stream.Number(streamOf(&r)).First() == first }) {
			break
		}
		first = k.number()
	}
	now := time.Now()
	for i := range list {
		if list[i].Kind != store.Flow {
			continue
		}
		until := now.Add(list[i].TTL)
		s.stored.shelf.put(streamOf(&list[i]), until, false)
		if !k.shared && list[i].TTL > k.ttl() {
			s.stored.span.has(list[i].ID, until)
		}
	}
	return first, nil
}

func (k restorer) isOver(call *store.Record) bool {
	if k.set.opt.Calls == nil {
		return false
	}
	_, err := k.set.opt.Calls.Home(call)
	return errors.Is(err, ErrOver)
}

// askedBy has the context of an operation on a session of which is yet to be read whose it is say who names it.
func (k restorer) askedBy(ctx context.Context, by *http.Request) context.Context {
	if by == nil || !store.Crowded(k.store) {
		return ctx
	}
	return store.WithTurn(ctx, store.Turn{Owner: k.set.Caller(by).Tenant})
}

// get reads a session's record, nil when there is none. certain: no copy will do.
func (k restorer) get(ctx context.Context, id string, certain bool) (*sessionRecord, uint64, error) {
	found, err := k.find(ctx, store.Address{Session: k.name(id), Kind: store.Session}, certain)
	if errors.Is(err, store.ErrNotFound) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	record, err := readSession(&found)
	if err == nil && record.ID != id {
		err = fmt.Errorf("%w: its record is another's", downstream.ErrGone)
	}
	if err != nil {
		return nil, 0, err
	}
	record.size, record.ttl, record.sum, record.older = len(found.Value), found.TTL, digestOf(found.Value), found.Older
	return record, found.Version, nil
}

func (k restorer) find(ctx context.Context, at store.Address, certain bool) (store.Record, error) {
	if !certain {
		return k.store.Get(ctx, at)
	}
	list, err := store.Glance(ctx, k.store, at.Session)
	if err != nil {
		return store.Record{}, err
	}
	now := slices.IndexFunc(list, func(r store.Record) bool { return r.Address == at })
	if now < 0 {
		return store.Record{}, store.ErrNotFound
	}
	if copied, err := k.store.Get(ctx, at); err == nil && copied.Version == list[now].Version {
		return copied, nil
	}
	return store.Fresh(ctx, k.store, at) // the engine is yet to be told that its own copy is out of date
}

// restoreToEnd brings a session back that has calls, which only a session can give up. It returns nil
// when it has none, or cannot be had.
func (k restorer) restoreToEnd(name string) *Session {
	own, calls, err := k.contents(name)
	id := k.idIn(name, own)
	if err != nil || id == "" || !slices.ContainsFunc(calls, k.waits) {
		return nil
	}
	s, _ := k.restore(k.ctx, id, nil) // it has told the log
	return s
}

// contents returns the own record of a session in the store, and where its calls are.
func (k restorer) contents(name string) (own []store.Record, calls []store.Address, err error) {
	err = k.do(func(ctx context.Context) error {
		list, err := store.Glance(ctx, k.store, name)
		for i := range list {
			switch at := list[i].Address; {
			case at.Kind == store.Flow:
				calls = append(calls, at)
			case at.Kind == store.Session && err == nil:
				var r store.Record
				r, err = k.store.Get(ctx, at)
				own = append(own, r)
			}
		}
		return err
	})
	return own, calls, err
}

// waits reports whether a record is of a call that waits, not its last word.
func (k restorer) waits(at store.Address) bool {
	p, err := passages(k).pass(k.ctx, k.own, turns.Who{}, at, OwedInTurn)
	if err != nil {
		return false
	}
	defer p.Over()
	r, err := dues(k).lookAt(k.ctx, at)
	return err == nil && !k.isOver(&r)
}

// idIn returns the id of the session whose records these are, "" where it is none of this endpoint.
func (k *keeper) idIn(name string, records []store.Record) string {
	for i := range records {
		if records[i].Kind != store.Session {
			continue
		}
		if record, err := readSession(&records[i]); err == nil && k.name(record.ID) == name {
			return record.ID
		}
	}
	return ""
}

// foreign ends a session in the store whose server has become another one, as it would in memory.
// Nobody goes on with its calls there, and nobody is told at the server, which knows none of them. After an
// error, which is the store's, the session is there still.
func (k *keeper) foreign(s *Session, record *sessionRecord) error {
	k.set.ids.passed(s.rec.ID)
	left, kept := k.elsewhere(s, k.own), k.set.opt.Room.Left(record.Payer, record.size, record.ttl)
	err := k.do(func(ctx context.Context) error { return k.store.End(ctx, k.name(s.rec.ID)) })
	if err != nil {
		return fmt.Errorf("removing it, whose server has become another one: %w", err)
	}
	kept.Release()
	tellAll(left)
	return nil
}

// errLarge says that a call was not read, which is large.
var errLarge = errors.New("the call is large")

// giveUp returns what tells the server that nobody needs a call any more; nil: it need not be told. The error is the store's,
// or errLarge where it is to be small.
func (k *keeper) giveUp(s *Session, account *budget.Account, at store.Address, small bool) (tell func(), err error) {
	size, err := passages{k}.size(at)
	if err == nil && small && size >= largeRecord {
		return nil, errLarge
	}
	var r store.Record
	if err == nil {
		p := passages{k}.owed(k.patience, account, turns.Who{Principal: account.Owner(), Session: s}, size, OwedInTurn)
		defer p.Over()
		r, err = dues{k}.lookAt(k.patience, at)
	}
	if errors.Is(err, store.ErrNotFound) { // by now
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	tell, err = k.set.opt.Calls.GiveUp(s, actorOf(s), &r)
	k.report("ending a call with its session", err)
	return tell, nil
}
