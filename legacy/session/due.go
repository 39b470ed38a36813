package session

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/logfield"
	"github.com/mcpbridge/bridge/internal/turns"
	"github.com/mcpbridge/bridge/legacy/stray"
	"github.com/mcpbridge/bridge/sessions/store"
)

const (
	dueAtOnce = 16 // seconds that are looked at, and calls that are brought back or given up, at the same time
	// sessionPatience is how long a round waits for one session to come back: its server may hang, and others are due, too.
	sessionPatience = 20 * time.Second
	// lastChance is how much is left of a call's record when the call is given up that could not be brought back. It is half of what
	// that outlives its deadline by: time for some rounds.
	lastChance = 90 * time.Second
	// strayShare is how much of each dueStep goes into looking for calls that nobody has noted.
	strayShare = dueStep / 10
)

// watchDue brings calls back when something is due to them. It may fall behind the time, and then looks at several seconds together;
// none is passed over that has notes.
func (k dues) watchDue(ctx context.Context) {
	tick := time.NewTicker(dueStep)
	defer tick.Stop()
	var last time.Time // for which anything was noted, as far as this replica knows
	var begun started  // a session with more calls than there was time for
	strays := stray.New(stray.Options{Store: k.store, Claims: store.Name(k.scope + "\nstrays"), Others: k.set.opt.Others, Found: func(ctx context.Context, session string, own bool) error {
		if begun.session != session {
			begun = started{session: session}
		}
		noted, err := k.noteStrays(ctx, &begun, own)
		last = later(last, noted)
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
		if !k.unloads() && next > last.Add(dueBack).Unix() {
			next = now.Unix() + 1 // nothing else is noted
		}
		if first := now.Add(-noteLasts).Unix(); next < first { // the store was away for so long: these notes have expired, and not all of their calls
			next = first
			strays.Again()
		}
		var err error
		for err == nil && next <= now.Unix() && ctx.Err() == nil {
			until := min(next+dueAtOnce, now.Unix()+1)
			var noted time.Time
			if noted, err = k.fireAll(ctx, next, until); err == nil {
				next = until
			}
			last = later(last, noted)
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

// fireAll takes care of what is due in the seconds from the first to the one before until. After an error they are to be looked at again.
// It returns the last time for which something was noted anew.
func (k dues) fireAll(ctx context.Context, first, until int64) (noted time.Time, err error) {
	notes, err := k.notesOf(first, until)
	if err != nil || len(notes) == 0 {
		return noted, err
	}
	others := k.set.opt.Others()
	for _, haste := range []Haste{AtOnce, InTurn} { // what is large waits for its turn when nothing else waits for it
		k.fireSome(ctx, notes, haste, others)
	}
	k.giveUp(ctx, notes, others)
	if ctx.Err() != nil {
		return noted, ctx.Err()
	}
	return k.settle(notes)
}

// fireSome takes care of the notes that are crowded, as far as it may take: others are due, too.
func (k dues) fireSome(ctx context.Context, notes []*note, haste Haste, others []downstream.ReplicaID) {
	var running errgroup.Group
	running.SetLimit(dueAtOnce)
	began := time.Now()
	for _, n := range notes {
		if n.became == crowded && time.Since(began) <= dueAgain {
			running.Go(func() error { k.fire(ctx, n, haste, others); return nil })
		}
	}
	_ = running.Wait()
}

// giveUp ends the calls for which there was no memory, no turn or no session until hardly anything was left of their records:
// without a word they would expire, and their clients wait for ever. They have no turns, and are read some at a time as far as there is
// memory, then one after the other, whatever there is.
func (k dues) giveUp(ctx context.Context, notes []*note, others []downstream.ReplicaID) {
	var running errgroup.Group
	running.SetLimit(dueAtOnce)
	alone := make(chan struct{}, 1)
	for _, n := range k.expiring(ctx, notes) {
		running.Go(func() error {
			d := dueCall{at: n.call(), haste: Unturned, late: true}
			if d.owner, d.lost = k.ownerOf(ctx, d.at.Session); d.owner == nil {
				return nil // the next round asks again
			}
			if n.became, n.due = k.goOn(ctx, &d, others), d.due; n.again() {
				alone <- struct{}{}
				d.haste = OwedInTurn
				n.became, n.due = k.goOn(ctx, &d, others), d.due
				<-alone
			}
			return nil
		})
	}
	_ = running.Wait()
}

// expiring returns the notes of calls that are to be tried again, and whose records hardly last any longer. That costs a look at each of
// their sessions.
func (k dues) expiring(ctx context.Context, notes []*note) (list []*note) {
	sessions := map[string][]*note{}
	for _, n := range notes {
		if n.again() {
			at := n.call()
			sessions[at.Session] = append(sessions[at.Session], n)
		}
	}
	var running errgroup.Group
	var mu sync.Mutex
	running.SetLimit(dueAtOnce)
	for session, waiting := range sessions {
		running.Go(func() error {
			bounded, cancel := context.WithTimeout(ctx, storeTimeout)
			defer cancel()
			records, err := store.Glance(bounded, k.store, session)
			k.report("looking for what is left of calls", err)
			mu.Lock()
			defer mu.Unlock()
			for _, n := range waiting {
				if at := n.call(); slices.ContainsFunc(records, func(r store.Record) bool { return r.Address == at && r.TTL <= lastChance }) {
					list = append(list, n)
				}
			}
			return nil
		})
	}
	_ = running.Wait()
	return list
}

// fail ends a call that could not be brought back.
func (k dues) fail(d *dueCall, found *store.Record) outcome {
	err := k.set.opt.Calls.Fail(found, k.set.opt.Room, func(word store.Change) error {
		of, err := k.lookAt(k.ctx, store.Address{Session: d.at.Session, Kind: store.Session})
		if err == nil {
			err = k.outlive([]store.Record{of}, word.TTL) // its client is to fetch the word, for as long as that lasts
		}
		if err != nil {
			return err
		}
		return k.do(func(ctx context.Context) error { return k.store.Commit(ctx, d.at.Session, word) })
	})
	_, conflict := errors.AsType[*store.ConflictError](err)
	switch {
	case errors.Is(err, ErrOver):
		return settled
	case conflict: // somebody has gone on with it after all, or what was written before has come late
		return unsettled
	case err != nil:
		k.report("ending a call that could not be brought back", err)
		return unsettled
	}
	k.set.opt.Logger.Warn().Str(logfield.SessionID, logfield.Short(d.owner.ID)).
		Msg("a call could not be brought back in time from the store, for want of memory (limits.memory), of a turn or of its session: it ends with an error")
	return settled
}

// fire brings a call back to which something is due: its own clock does the rest. No turn is held while its session
// comes back, whose server may be slow.
func (k dues) fire(ctx context.Context, n *note, haste Haste, others []downstream.ReplicaID) {
	d := dueCall{at: n.call(), haste: haste}
	d.owner, d.lost = k.ownerOf(ctx, d.at.Session)
	if n.became = k.goOn(ctx, &d, others); n.became == absent {
		if n.became = k.comeBack(ctx, d.owner.ID); n.became == absent {
			n.became = k.goOn(ctx, &d, others)
		}
		if n.became == absent { // it has left again
			n.became = unsettled
		}
	}
	n.due = d.due
}

// comeBack has a session come back, and returns absent where its call is to be looked at once more. Where that takes long nobody
// here waits for it.
func (k dues) comeBack(ctx context.Context, id string) outcome {
	became := make(chan outcome, 1)
	k.running.Go(func() {
		switch s, err := restorer(k).restore(ctx, id, nil); {
		case err != nil:
			became <- unsettled
		case s == nil:
			became <- settled
		default:
			became <- absent
		}
	})
	patience := time.NewTimer(sessionPatience)
	defer patience.Stop()
	select {
	case of := <-became:
		return of
	case <-patience.C:
	case <-ctx.Done():
	}
	return unsettled
}

// dueCall is a call to which something is due.
type dueCall struct {
	at    store.Address
	haste Haste
	owner *sessionRecord // of its session; nil: there is none to be had
	lost  outcome        // what becomes of its note then
	late  bool           // it is to end
	due   time.Time      // see moved
}

// ownerOf reads the record of a session, which is small.
func (k dues) ownerOf(ctx context.Context, session string) (*sessionRecord, outcome) {
	of, err := k.lookAt(ctx, store.Address{Session: session, Kind: store.Session})
	if err != nil {
		return nil, missing(err)
	}
	owner, err := readSession(&of)
	if err != nil {
		return nil, theirs
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
	case errors.Is(err, ErrOver):
		return settled
	case err != nil, slices.Contains(others, home):
		return theirs // or not ours to judge
	case d.owner == nil:
		return d.lost
	}
	if k.blind() || home == k.replicaID {
		if d.due, err = k.set.opt.Calls.Due(&found); err != nil {
			return theirs // it is of sessions under other settings here
		}
		if time.Now().Before(d.due) { // it has gone on since: its replica lives, or did then
			return k.moved(d, &found, home)
		}
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
	switch {
	case err == nil:
		return settled
	case !errors.Is(err, downstream.ErrGone): // else somebody else has gone on with it, or what was written before has come late
		k.report("bringing a call back that is due", err)
	}
	return unsettled
}

// moved says that a call is due later, unless its own clock runs here.
func (k dues) moved(d *dueCall, found *store.Record, home downstream.ReplicaID) outcome {
	if s, here := k.set.table.Get(d.owner.ID); here && s.streams.Find(streamOf(found)) != nil {
		return settled
	}
	if home != k.replicaID {
		d.due = d.due.Add(blindDelay)
	}
	return moved
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
