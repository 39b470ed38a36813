package session

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/sessions/store"
)

// Calls that are in the store alone have no timer. When something is due to one is noted
// in the store, by the second: the notes of a second are records of one session that
// stands for it. Every replica looks at each second once, so what is due costs as much
// as there is, and nothing is searched.
//
// A note is no more than a hint. The call's own record says whether it still waits, whose
// it is, and when it ends.

const (
	dueStep   = time.Second
	dueBatch  = 500 // notes of one round trip
	dueAtOnce = 16  // calls brought back at the same time
	// dueBack is how far back seconds are looked at after a start: no call's record
	// outlives its time by more.
	dueBack = 2 * time.Minute
	// dueAgain is after what time a call is tried again that could not be brought back.
	dueAgain = 10 * time.Second
)

// secondOf returns the second in which a time has come.
func secondOf(due time.Time) int64 { return due.Add(dueStep - 1).Unix() }

// dues is the part of a keeper that does what is due to calls that no replica has in
// memory. It has no state of its own.
type dues struct{ *keeper }

// dueName is the session that stands for a second.
func (k dues) dueName(second int64) string {
	return store.Name(k.scope + "\ndue\n" + strconv.FormatInt(second, 10))
}

// dueNotes collects notes that are about to be made.
type dueNotes struct {
	keeper  *keeper
	seconds map[int64][]store.Change
	calls   map[downstream.Checkpointer]bool
}

// add notes a call.
func (d *dueNotes) add(s *Session, call downstream.Checkpointer, stream uint64, due time.Time) {
	if d.seconds == nil {
		d.seconds = map[int64][]store.Change{}
	}
	id := d.keeper.name(s.rec.ID) + "/" + strconv.FormatUint(stream, 10)
	second := secondOf(due)
	d.seconds[second] = append(d.seconds[second], store.Change{Kind: store.Due, ID: id, Replaces: store.Any, TTL: time.Until(due) + dueBack})
	d.calls[call] = true
}

// commit makes the notes, and reports whether it has: otherwise the calls stay where they are.
func (d *dueNotes) commit() bool {
	k := d.keeper
	for second, changes := range d.seconds {
		for part := range slices.Chunk(changes, dueBatch) {
			err := k.do(func(ctx context.Context) error { return k.store.Commit(ctx, dues{k}.dueName(second), part...) })
			if err != nil {
				k.report("noting when calls are due", err)
				return false
			}
		}
	}
	return true
}

// watchDue brings calls back when something is due to them.
func (k dues) watchDue(ctx context.Context) {
	tick := time.NewTicker(dueStep)
	defer tick.Stop()
	for next := time.Now().Add(-dueBack).Unix(); ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now := time.Now()
		for next = max(next, now.Add(-dueBack).Unix()); next <= now.Unix() && ctx.Err() == nil; next++ {
			if err := k.fireAll(ctx, next); err != nil {
				if !errors.Is(err, store.ErrUnreachable) { // of which the log has told
					k.report("looking for what is due", err)
				}
				break
			}
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
	found, err := k.lookAt(ctx, store.Address{Session: session, Kind: store.Flow, ID: call})
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

func (k dues) lookAt(ctx context.Context, at store.Address) (r store.Record, err error) {
	bounded, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	return k.store.Get(bounded, at)
}
