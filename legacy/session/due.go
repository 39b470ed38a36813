package session

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/logfield"
	"github.com/mcpbridge/bridge/internal/turns"
	"github.com/mcpbridge/bridge/legacy/stray"
	"github.com/mcpbridge/bridge/sessions/store"
)

const (
	dueAtOnce = 16 // calls brought back at the same time
	// dueAgain is after what time a call is tried again that could not be brought back.
	dueAgain = 10 * time.Second
	// lastChance is how much is left of a note when a call is given up that could not be brought back: time for one more round.
	lastChance = 3 * dueAgain
	// strayShare is how much of each dueStep goes into looking for calls that nobody has noted.
	strayShare = dueStep / 10
)

// watchDue brings calls back when something is due to them.
func (k dues) watchDue(ctx context.Context) {
	tick := time.NewTicker(dueStep)
	defer tick.Stop()
	var last time.Time // for which a stray was noted, or anything was noted anew
	var begun started  // a session with more calls than there was time for
	strays := stray.New(stray.Options{Store: k.store, Claims: store.Name(k.scope + "\nstrays"), Others: k.set.opt.Others, Found: func(ctx context.Context, session string, own bool) error {
		if begun.session != session {
			begun = started{session: session}
		}
		due, err := k.noteStrays(ctx, &begun, own)
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
			var again bool
			if again, err = k.fireAll(ctx, next); err == nil {
				next++
			}
			if again {
				last = later(last, now)
			}
		}
		if k.astray.Swap(false) {
			strays.Again()
		}
		if err == nil {
			err = strays.GoOn(ctx, strayShare)
		}
		if ctx.Err() == nil && !errors.Is(err, store.ErrUnreachable) && !errors.Is(err, errMore) { // of the first the log has told
			k.report("looking for what is due", err)
		}
	}
}

// fireAll takes care of what is due in a second. After an error it is to be tried again. It reports whether something was
// noted anew.
func (k dues) fireAll(ctx context.Context, second int64) (again bool, err error) {
	name := k.dueName(second)
	var notes []store.Record
	err = k.do(func(ctx context.Context) (err error) {
		notes, err = k.store.Load(ctx, name)
		return err
	})
	if err != nil {
		return false, err
	}
	others := k.set.opt.Others()
	for part := range slices.Chunk(notes, dueBatch) {
		became := slices.Repeat([]outcome{crowded}, len(part))
		for _, haste := range []Haste{AtOnce, InTurn} { // what is large waits for its turn when nothing else waits for it
			k.firePart(ctx, part, became, haste, others)
		}
		k.giveUp(ctx, part, became, others)
		if ctx.Err() != nil {
			return again, ctx.Err()
		}
		again = k.settle(name, part, became) || again
	}
	return again, nil
}

// firePart takes care of the notes that are crowded, as far as it may take: others are due, too.
func (k dues) firePart(ctx context.Context, notes []store.Record, became []outcome, haste Haste, others []downstream.ReplicaID) {
	var running sync.WaitGroup
	room := make(chan struct{}, dueAtOnce)
	began := time.Now()
	for i := range notes {
		if became[i] != crowded {
			continue
		}
		room <- struct{}{}
		if haste == InTurn && time.Since(began) > dueAgain {
			break
		}
		running.Go(func() {
			became[i] = k.fire(ctx, notes[i].ID, haste, others)
			<-room
		})
	}
	running.Wait()
}

// outcome is what became of a note.
type outcome uint8

const (
	settled   outcome = iota // the call is in memory, or over
	unsettled                // it is to be tried again
	crowded                  // the same, soon: the call is large, and had no turn
	absent                   // its session is to come back first
	theirs                   // another replica, which lives, has the call, and looks at the note, too
	early                    // the call has time yet: what was due is a part of it
)

// again returns after what time a call is tried again; 0: it is not.
func (o outcome) again() time.Duration {
	switch o {
	case unsettled:
		return dueAgain
	case crowded:
		return dueStep
	}
	return 0
}

// settle removes notes, and makes those of calls that could not be brought back anew. It reports whether there are such.
func (k dues) settle(name string, notes []store.Record, became []outcome) (some bool) {
	var gone []store.Change
	again := map[time.Duration][]store.Change{}
	for i := range notes {
		if became[i] == theirs {
			continue
		}
		c := store.Change{Kind: store.Due, ID: notes[i].ID, Replaces: store.Any, Delete: true}
		gone = append(gone, c)
		if after := became[i].again(); after > 0 && notes[i].TTL > after {
			c.Delete, c.TTL = false, notes[i].TTL
			again[after] = append(again[after], c)
		}
	}
	for after, changes := range again {
		later := k.dueName(secondOf(time.Now().Add(after)))
		k.report("noting when calls are due", k.do(func(ctx context.Context) error { return k.store.Commit(ctx, later, changes...) }))
	}
	if len(gone) > 0 {
		k.report("removing what was due", k.do(func(ctx context.Context) error { return k.store.Commit(ctx, name, gone...) }))
	}
	return len(again) > 0
}

// giveUp ends the calls for which there was no memory, no turn or no session until hardly anything was left of their notes:
// without a word they would expire, and their clients wait for ever. They are read one after the other, whatever there is.
func (k dues) giveUp(ctx context.Context, notes []store.Record, became []outcome, others []downstream.ReplicaID) {
	for i := range notes {
		if became[i].again() == 0 || notes[i].TTL > lastChance || ctx.Err() != nil {
			continue
		}
		session, call, _ := strings.Cut(notes[i].ID, "/")
		d := dueCall{at: store.Address{Session: session, Kind: store.Flow, ID: call}, haste: Owed, late: true}
		if d.owner, d.lost = k.ownerOf(ctx, session); d.owner != nil {
			became[i] = k.goOn(ctx, &d, others)
		}
		if became[i] == early {
			became[i], notes[i].TTL = unsettled, dueBack
		}
	}
}

// fail ends a call that could not be brought back.
func (k dues) fail(d *dueCall, found *store.Record) outcome {
	if found.TTL > dueBack+dueAgain { // its record outlives its deadline by little more than that
		return early
	}
	err := k.set.opt.Calls.Fail(found, k.set.opt.Room, func(word store.Change) error {
		return k.do(func(ctx context.Context) error { return k.store.Commit(ctx, d.at.Session, word) })
	})
	_, conflict := errors.AsType[*store.ConflictError](err)
	switch {
	case conflict, errors.Is(err, ErrOver): // somebody has gone on with it after all
		return settled
	case err != nil:
		k.report("ending a call that could not be brought back", err)
		return unsettled
	}
	if of, err := k.lookAt(k.ctx, store.Address{Session: d.at.Session, Kind: store.Session}); err == nil {
		k.report("touching a session", k.outlive([]store.Record{of}, time.Now())) // its client is to fetch the word
	}
	k.set.opt.Logger.Warn().Str(logfield.SessionID, logfield.Short(d.owner.ID)).
		Msg("a call could not be brought back in time from the store, for want of memory (limits.memory), of a turn or of its session: it ends with an error")
	return settled
}

// fire brings a call back to which something is due: its own clock does the rest. No turn is held while its session
// comes back, whose server may be slow.
func (k dues) fire(ctx context.Context, note string, haste Haste, others []downstream.ReplicaID) outcome {
	session, call, _ := strings.Cut(note, "/")
	d := dueCall{at: store.Address{Session: session, Kind: store.Flow, ID: call}, haste: haste}
	d.owner, d.lost = k.ownerOf(ctx, session)
	became := k.goOn(ctx, &d, others)
	if became != absent {
		return became
	}
	if s, err := restorer(k).restore(ctx, d.owner.ID, nil); err != nil {
		return unsettled
	} else if s == nil {
		return settled
	}
	if became = k.goOn(ctx, &d, others); became == absent { // it has left again
		return unsettled
	}
	return became
}

// dueCall is a call to which something is due.
type dueCall struct {
	at    store.Address
	haste Haste
	owner *sessionRecord // of its session; nil: there is none to be had
	lost  outcome        // what becomes of its note then
	late  bool           // it is to end
}

// ownerOf reads the record of a session, which is small.
func (k dues) ownerOf(ctx context.Context, session string) (*sessionRecord, outcome) {
	of, err := k.lookAt(ctx, store.Address{Session: session, Kind: store.Session})
	if err != nil {
		return nil, missing(err)
	}
	owner, err := readSession(&of)
	if err != nil {
		return nil, settled
	}
	return owner, settled
}

// goOn reads a call in its turn, and goes on with it where its session is here.
func (k dues) goOn(ctx context.Context, d *dueCall, others []downstream.ReplicaID) outcome {
	who := turns.Who{Session: d.at.Session}
	if d.owner != nil {
		who.Principal = d.owner.Principal
	}
	p, err := passages(k).pass(ctx, k.own, who, d.at, d.haste)
	if err != nil {
		return missing(err)
	}
	defer p.Over()
	found, err := k.lookAt(ctx, d.at)
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
	if d.owner == nil {
		return d.lost
	}
	if d.late {
		if s, here := k.set.table.Get(d.owner.ID); here && s.streams.Find(streamOf(&found)) != nil {
			return settled // its client has brought it back
		}
		return k.fail(d, &found)
	}
	s, known := k.set.table.Get(d.owner.ID)
	if !known {
		return absent
	}
	err = k.set.opt.Calls.GoOn(s, actorOf(s), &found)
	if errors.Is(err, ErrLeft) {
		return absent
	}
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
	if errors.Is(err, ErrNoTurn) {
		return crowded
	}
	return unsettled
}
