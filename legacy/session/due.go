package session

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/turns"
	"github.com/mcpbridge/bridge/legacy/stray"
	"github.com/mcpbridge/bridge/sessions/store"
)

const (
	dueAtOnce = 16 // calls brought back at the same time
	// dueAgain is after what time a call is tried again that could not be brought back.
	dueAgain = 10 * time.Second
	// strayShare is how much of each dueStep goes into looking for calls that nobody has noted.
	strayShare = dueStep / 10
)

// watchDue brings calls back when something is due to them.
func (k dues) watchDue(ctx context.Context) {
	tick := time.NewTicker(dueStep)
	defer tick.Stop()
	var last time.Time // for which a stray was noted
	strays := stray.New(stray.Options{Store: k.store, Claims: store.Name(k.scope + "\nstrays"), Others: k.set.opt.Others, Found: func(ctx context.Context, session string, own bool) error {
		due, err := k.noteStrays(ctx, session, own)
		last = later(last, due)
		return err
	}})
	for next := time.Now().Add(-dueBack).Unix(); ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if k.set.vacated.Load() { // others look after what is due
			continue
		}
		now := time.Now()
		if !k.unloads() && now.After(last.Add(dueBack)) {
			next = now.Unix() + 1 // nothing else is noted
		}
		var err error
		for next = max(next, now.Add(-dueBack).Unix()); err == nil && next <= now.Unix() && ctx.Err() == nil; {
			if err = k.fireAll(ctx, next); err == nil {
				next++
			}
		}
		if k.astray.Swap(false) {
			strays.Again()
		}
		if err == nil {
			err = strays.GoOn(ctx, strayShare)
		}
		if ctx.Err() == nil && !errors.Is(err, store.ErrUnreachable) { // of which the log has told
			k.report("looking for what is due", err)
		}
	}
}

// fireAll takes care of what is due in a second. After an error it is to be tried again.
func (k dues) fireAll(ctx context.Context, second int64) error {
	name := k.dueName(second)
	var notes []store.Record
	err := k.do(func(ctx context.Context) (err error) {
		notes, err = k.store.Load(ctx, name)
		return err
	})
	if err != nil {
		return err
	}
	others := k.set.opt.Others()
	for part := range slices.Chunk(notes, dueBatch) {
		var running sync.WaitGroup
		room := make(chan struct{}, dueAtOnce)
		became := make([]outcome, len(part))
		for i := range part {
			room <- struct{}{}
			running.Go(func() {
				became[i] = k.fire(ctx, part[i].ID, others)
				<-room
			})
		}
		running.Wait()
		if ctx.Err() != nil {
			return ctx.Err()
		}
		k.settle(name, part, became)
	}
	return nil
}

// outcome is what became of a note.
type outcome uint8

const (
	settled   outcome = iota // the call is in memory, or over
	unsettled                // it is to be tried again
	theirs                   // another replica, which lives, has the call, and looks at the note, too
)

// settle removes notes, and makes those of calls that could not be brought back anew.
func (k dues) settle(name string, notes []store.Record, became []outcome) {
	var gone, again []store.Change
	for i := range notes {
		if became[i] == theirs {
			continue
		}
		c := store.Change{Kind: store.Due, ID: notes[i].ID, Replaces: store.Any, Delete: true}
		gone = append(gone, c)
		if became[i] == unsettled && notes[i].TTL > dueAgain {
			c.Delete, c.TTL = false, notes[i].TTL
			again = append(again, c)
		}
	}
	if len(again) > 0 {
		later := k.dueName(secondOf(time.Now().Add(dueAgain)))
		k.report("noting when calls are due", k.do(func(ctx context.Context) error { return k.store.Commit(ctx, later, again...) }))
	}
	if len(gone) == 0 {
		return
	}
	k.report("removing what was due", k.do(func(ctx context.Context) error { return k.store.Commit(ctx, name, gone...) }))
}

// fire brings a call back to which something is due: its own clock does the rest.
func (k dues) fire(ctx context.Context, note string, others []downstream.ReplicaID) outcome {
	session, call, _ := strings.Cut(note, "/")
	at := store.Address{Session: session, Kind: store.Flow, ID: call}
	p, err := passages(k).pass(ctx, k.own, turns.Who{}, at, false)
	if err != nil {
		return missing(err)
	}
	defer p.Over()
	found, err := k.lookAt(ctx, at)
	if err != nil {
		return missing(err)
	}
	home, err := k.set.opt.Calls.Home(&found)
	switch {
	case err != nil:
		return settled // it is not ours to judge
	case slices.Contains(others, home):
		return theirs
	}
	if k.blind() || home == k.replicaID {
		if due, err := k.set.opt.Calls.Due(&found); err != nil || time.Now().Before(due) {
			return settled // it has gone on since: its replica lives, or did then, or it is of sessions under other settings here
		}
	}
	of, err := k.lookAt(ctx, store.Address{Session: session, Kind: store.Session})
	if err != nil {
		return missing(err)
	}
	owner, err := readSession(&of)
	if err != nil {
		return settled
	}
	s, known := k.set.table.Get(owner.ID)
	if !known {
		if s, err = restorer(k).restore(ctx, owner.ID, nil); err != nil {
			return unsettled
		} else if s == nil {
			return settled
		}
	}
	err = k.set.opt.Calls.GoOn(s, actorOf(s), &found)
	if err != nil && !errors.Is(err, downstream.ErrGone) {
		k.report("bringing a call back that is due", err)
		return unsettled
	}
	return settled
}

// missing is what became of a note when a record cannot be had: mostly, that there is
// none any more.
func missing(err error) outcome {
	if errors.Is(err, store.ErrNotFound) {
		return settled
	}
	return unsettled
}
