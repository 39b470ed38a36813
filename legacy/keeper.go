package legacy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/logfield"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/sessions"
	"github.com/mcpbridge/bridge/sessions/store"
)

// keeper keeps the sessions of Streamable HTTP in a store, from which they come back
// when a client names one that this process doesn't know. Calls don't touch the store.
type keeper struct {
	http  *HTTP
	store store.Store
	scope string

	restoring singleflight.Group // one restoration of a session at a time
	ends      chan string        // sessions that expired
	stop      context.CancelFunc // ends the goroutine, which Close awaits
	running   sync.WaitGroup
}

// kept is what a session knows of its record.
type kept struct {
	mu         sync.Mutex // one save at a time
	version    uint64     // of the record in the store; 0: there is none yet
	generation uint32     // how often the session was brought back
	gone       bool       // it ended, or belongs to another process by now
}

// sessionRecord is what a session is, for another process to go on with.
type sessionRecord struct {
	V             int         `json:"v"`
	ID            string      `json:"id"`
	Version       mcp.Version `json:"version"`
	Principal     string      `json:"principal,omitempty"`
	Authorization string      `json:"authorization,omitempty"`
	Began         time.Time   `json:"began"`
	Generation    uint32      `json:"generation,omitempty"`
	Conversation  []byte      `json:"conversation"`
}

// sessionRecordVersion counts the changes of sessionRecord that an older bridge could
// not go on from. Members may be added without one.
const sessionRecordVersion = 1

const (
	storeTimeout = 5 * time.Second // for one operation
	touchBatch   = 1000            // sessions touched in one round trip
	endsWaiting  = 1024            // sessions whose records are about to be removed; the others' expire
)

func newKeeper(h *HTTP) *keeper {
	k := &keeper{http: h, store: h.opt.Store, scope: h.opt.StoreScope, ends: make(chan string, endsWaiting)}
	ctx, stop := context.WithCancel(context.Background())
	k.stop = stop
	k.running.Go(func() { k.run(ctx) })
	return k
}

func (k *keeper) close() {
	k.stop()
	k.running.Wait()
}

// name returns the name of a session in the store. Endpoints share it, and a session of
// one is none of another.
func (k *keeper) name(id string) string { return store.Name(k.scope + "\n" + id) }

// touchEvery is how often the sessions in use are said to be.
func (k *keeper) touchEvery() time.Duration { return k.http.opt.IdleTimeout / 4 }

// ttl is how long a record outlives its last touch.
func (k *keeper) ttl() time.Duration { return k.http.opt.IdleTimeout + 2*k.touchEvery() }

// run touches what is in use and removes what has expired.
func (k *keeper) run(ctx context.Context) {
	tick := time.NewTicker(k.touchEvery())
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case name := <-k.ends:
			k.report("removing an expired session", k.do(func(ctx context.Context) error { return k.store.End(ctx, name) }))
		case <-tick.C:
			k.touch()
		}
	}
}

// touch lets the records of the sessions in use live longer.
func (k *keeper) touch() {
	var touches []store.Touch
	flush := func() {
		k.report("touching sessions", k.do(func(ctx context.Context) error { return k.store.Touch(ctx, touches...) }))
		touches = touches[:0]
	}
	since := time.Now().Add(-k.touchEvery() - k.touchEvery()/2)
	for _, use := range k.http.table.All() {
		if use.At.Before(since) && !use.Value.busy() {
			continue
		}
		touches = append(touches, store.Touch{Session: k.name(use.Value.rec.ID), TTL: k.ttl()})
		if len(touches) == touchBatch {
			flush()
		}
	}
	if len(touches) > 0 {
		flush()
	}
}

// do runs one operation with the time that it may take.
func (k *keeper) do(operation func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), storeTimeout)
	defer cancel()
	return operation(ctx)
}

func (k *keeper) report(what string, err error) {
	if err != nil {
		k.http.opt.Logger.Warn().Err(err).Msg("the store of sessions fails: " + what)
	}
}

// save brings a session's record up to date. A session that cannot be saved goes on
// without: the log tells, and the next change tries again.
func (k *keeper) save(s *session) {
	err := k.commit(s)
	if _, conflict := errors.AsType[*store.ConflictError](err); conflict {
		k.http.opt.Logger.Info().Str(logfield.SessionID, logfield.Short(s.rec.ID)).Msg("the session was taken over by another process, or ended by one")
		s.End(err)
		return
	}
	k.report("saving a session", err)
}

func (k *keeper) commit(s *session) error {
	s.kept.mu.Lock()
	defer s.kept.mu.Unlock()
	if s.kept.gone {
		return nil
	}
	conversation := s.conv.Record()
	if conversation == nil {
		return nil
	}
	auth, principal := s.owner()
	value, err := json.Marshal(&sessionRecord{
		V: sessionRecordVersion, ID: s.rec.ID, Version: s.rec.Version, Principal: principal, Authorization: auth,
		Began: s.born, Generation: s.kept.generation, Conversation: conversation,
	})
	if err != nil {
		return err
	}
	err = k.do(func(ctx context.Context) error {
		return k.store.Commit(ctx, k.name(s.rec.ID), store.Change{Kind: store.Session, Replaces: s.kept.version, TTL: k.ttl(), Value: value})
	})
	if _, conflict := errors.AsType[*store.ConflictError](err); conflict {
		s.kept.gone = true
	}
	if err == nil {
		s.kept.version++
	}
	return err
}

// ended takes note of the end of a session. At a shutdown, and when it had to make room
// for others, it can come back.
func (k *keeper) ended(s *session, cause sessions.Cause) {
	s.kept.mu.Lock()
	over := s.kept.gone || s.kept.version == 0
	s.kept.gone = true
	s.kept.mu.Unlock()
	name := k.name(s.rec.ID)
	switch {
	case over:
	case cause == sessions.Removed:
		k.report("removing a session", k.do(func(ctx context.Context) error { return k.store.End(ctx, name) }))
	case cause == sessions.Expired:
		select {
		case k.ends <- name:
		default: // it expires there, too
		}
	}
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
	record, err := k.load(ctx, id)
	if err != nil || record == nil {
		return nil, err
	}
	s := &session{http: k.http, auth: record.Authorization, born: record.Began, kept: record.kept}
	s.rec = sessions.Record{ID: id, Version: record.Version, Principal: record.Principal}
	s.streams.Init(k.http.streams, &s.rec, s.kept.generation)
	if s.account, err = k.http.opt.openAccount(record.Principal, len(record.Conversation)+len(record.Authorization)); err != nil {
		return nil, err
	}
	caller := downstream.Caller{Principal: record.Principal, Authorization: record.Authorization, Account: s.account}
	if s.conv, err = k.http.backend.Restore(ctx, caller, record.Conversation, s.pusher()); err != nil {
		s.account.Close()
		return nil, err
	}
	if err = k.commit(s); err != nil { // so that no other process goes on with it
		s.conv.Close(sessions.Closed)
		s.account.Close()
		return nil, err
	}
	k.bringBackCalls(s, caller, record.records)
	if err = s.enlist(); err != nil {
		return nil, err
	}
	k.http.opt.Logger.Debug().Str(logfield.SessionID, logfield.Short(id)).Msg("session brought back")
	return s, nil
}

// loadedRecord is a session's record, and what is to be known for saving it again.
type loadedRecord struct {
	sessionRecord
	kept    *kept
	records []store.Record // all of the session's
}

// load reads a session's record, nil when there is none.
func (k *keeper) load(ctx context.Context, id string) (*loadedRecord, error) {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	list, err := k.store.Load(ctx, k.name(id)) // not Get, which may answer from a copy
	at := slices.IndexFunc(list, func(r store.Record) bool { return r.Kind == store.Session })
	if err != nil || at < 0 {
		return nil, err
	}
	found := &list[at]
	if found.Err != nil {
		return nil, fmt.Errorf("%w: %w", downstream.ErrGone, found.Err)
	}
	var record loadedRecord
	if err := json.Unmarshal(found.Value, &record.sessionRecord); err != nil || record.ID != id || record.V < 1 {
		return nil, fmt.Errorf("%w: its record cannot be read", downstream.ErrGone)
	}
	if record.V > sessionRecordVersion {
		return nil, fmt.Errorf("%w: %w", downstream.ErrGone, store.ErrNewer)
	}
	record.records = list
	record.kept = &kept{version: found.Version, generation: record.Generation + 1}
	return &record, nil
}

// Changed implements Pusher.
func (s *session) Changed() {
	if s.kept != nil && s.listed.Load() {
		s.http.keeper.save(s)
	}
}
