package session

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/mcpbridge/bridge/internal/turns"
	"github.com/mcpbridge/bridge/sessions/store"
)

// blindDelay is how much later calls of others come back where nobody knows which of those live: a living one
// has gone on with its own by then. Clocks may differ by as much.
const blindDelay = 30 * time.Second

// strayMost is how long one session is looked at before what is due has its turn: it may have a thousand calls, in a slow store.
const strayMost = 2 * time.Second

// errMore says that a session has more calls, which are looked at next time.
var errMore = errors.New("the session has more calls")

// started is up to which of its calls, in the order of their ids, a session was looked at.
type started struct{ session, call string }

// noteStrays notes when the calls of a session are due that no living replica has, as far as nobody has. It returns
// the last time for which there is a note. own ones count that are not here. The error is errMore where there was no time for all: the
// next time it goes on where it has got. After another one it begins anew.
func (k dues) noteStrays(ctx context.Context, begun *started, own bool) (last time.Time, err error) {
	bounded, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	id, err := k.idAt(bounded, begun.session)
	if err != nil || id == "" {
		return last, err
	}
	list, err := store.Glance(bounded, k.store, begun.session)
	if err != nil {
		return last, err
	}
	slices.SortFunc(list, func(a, b store.Record) int { return strings.Compare(a.ID, b.ID) })
	noted := dueNotes{keeper: k.keeper}
	from, until, more := begun.call, time.Now().Add(strayMost), false
	begun.call = ""
	// One after the other: all together may be larger than the memory. Each has its own time.
	for i := range list {
		r := &list[i]
		if r.Kind != store.Flow || r.ID <= from {
			continue
		}
		if more = time.Now().After(until); more {
			break
		}
		due, found, err := k.stray(ctx, id, r.Address, own)
		if err == nil && found {
			due, err = k.noteStray(ctx, &noted, dueNote(begun.session, r.ID), due)
			last = later(last, due)
		}
		if err != nil {
			return last, err
		}
		from = r.ID
	}
	if len(noted.seconds) > 0 {
		if err = noted.commit(); err == nil {
			err = k.outlive(list, longest(list))
		}
	}
	if err == nil && more {
		begun.call, err = from, errMore
	}
	return last, err
}

// stray reads a call, and returns when something is due to it, if it is a stray.
func (k dues) stray(ctx context.Context, session string, at store.Address, own bool) (due time.Time, found bool, err error) {
	p, err := passages(k).pass(ctx, k.own, turns.Who{}, at, OwedInTurn)
	var r store.Record
	if err == nil {
		defer p.Over()
		r, err = k.lookAt(ctx, at)
	}
	if errors.Is(err, store.ErrNotFound) { // by now
		return due, false, nil
	} else if err != nil {
		return due, false, err
	}
	due, found = k.isStray(&r, own)
	return due, found && !(own && k.has(session, &r)), nil
}

// idAt returns the id of the session that is kept under a name, "" where there is none, or none of this endpoint.
func (k dues) idAt(ctx context.Context, name string) (string, error) {
	own, err := k.store.Get(ctx, store.Address{Session: name, Kind: store.Session})
	if errors.Is(err, store.ErrNotFound) {
		return "", nil
	}
	return k.idIn(name, []store.Record{own}), err
}

// noteStray notes a call, unless it is, and returns for when.
func (k dues) noteStray(ctx context.Context, noted *dueNotes, note string, due time.Time) (time.Time, error) {
	if soon := time.Now().Add(dueStep); due.Before(soon) {
		noted.put(note, soon) // a second that nobody has looked at yet
		return soon, nil
	}
	_, err := k.lookAt(ctx, store.Address{Session: k.dueName(secondOf(due)), Kind: store.Due, ID: note})
	if errors.Is(err, store.ErrNotFound) {
		noted.put(note, due)
		return due, nil
	}
	return due, err
}

// isStray returns when something is due to a call, if no living replica has it, but for this one where own is set.
func (k dues) isStray(r *store.Record, own bool) (due time.Time, found bool) {
	if r.Kind != store.Flow {
		return due, false
	}
	home, err := k.set.opt.Calls.Home(r)
	if err != nil || home == k.replicaID && !own || slices.Contains(k.set.opt.Others(), home) {
		return due, false
	}
	if due, err = k.set.opt.Calls.Due(r); err != nil {
		return due, false // it is not ours to judge
	}
	if k.blind() && home != k.replicaID {
		due = due.Add(blindDelay)
	}
	return due, true
}

// has reports whether a call is here, or is in the store alone and was noted.
func (k dues) has(session string, call *store.Record) bool {
	s, live := k.set.table.Get(session)
	return live && (s.streams.Find(streamOf(call)) != nil || s.stored != nil && s.stored.shelf.isNoted(streamOf(call)))
}

// longest returns how long the calls among these records last.
func longest(records []store.Record) (ttl time.Duration) {
	for i := range records {
		if r := &records[i]; r.Kind == store.Flow {
			ttl = max(ttl, r.TTL)
		}
	}
	return ttl
}

// outlive has a session, of which these are the records, last for so long: calls and last words are lost without it.
func (k dues) outlive(records []store.Record, ttl time.Duration) error {
	k.keepUntil(ttl)
	for i := range records {
		if r := &records[i]; r.Kind == store.Session && r.TTL < ttl {
			return k.do(func(ctx context.Context) error { return k.store.Touch(ctx, store.Touch{Session: r.Session, TTL: ttl}) })
		}
	}
	return nil
}
