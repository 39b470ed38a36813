package session

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/sessions/store"
)

// Calls that are in the store alone have no timer. When something is due to one is noted
// in the store, by the second: the notes of a second are records of one session that
// stands for it. Every replica looks at each second once, so what is due costs as much
// as there is, and nothing is searched. Of calls that a process had in memory, or has left, nobody has noted it:
// package stray comes upon those when that is gone.
//
// A note is no more than a hint. The call's own record says whether it still waits, whose
// it is, and when it ends.
//
//	made ──▶ looked at, in its second or later ──▶ its call is back, over or gone: removed
//	  ▲                                       ├──▶ another replica has it, or it is not ours to judge: left as it is
//	  └────── in a later second ◀─────────────┴──▶ it could not be brought back, or is due later by now
//
// How long a note lasts decides nothing, as long as it is there when somebody gets to it. It is the record whose time counts: when hardly
// anything is left of that, its call ends with a word (giveUp), and where there is none any more, there is nothing to say. So a note is
// removed only after what takes its place was made, and no second is passed over that has notes.
//
// What is lost without a word all the same: calls whose records expire while the store cannot be asked, or before a walk has come to
// them, and those that cannot be given up within lastChance, dueAtOnce at a time, or one after the other where memory is short.

const (
	dueStep  = time.Second
	dueBatch = 500 // notes of one round trip
	// dueBack is how far back seconds are looked at after a start. What was due before is found by package stray.
	dueBack = 2 * time.Minute
	// noteLasts is how long a note outlives its second: longer than anybody falls behind who looks at each.
	noteLasts = 10 * time.Minute
	// dueAgain is after what time a call is tried again that could not be brought back, and for how long one round begins with more.
	dueAgain = 10 * time.Second
)

// note says that something is due to a call.
type note struct {
	store.Address // its session stands for the second
	became        outcome
	due           time.Time // where it has moved
}

// outcome is what became of a note.
type outcome uint8

const (
	settled   outcome = iota // the call is in memory, or over
	unsettled                // it is to be tried again
	crowded                  // the same, soon: the call is large, and had no turn, or there was no time for it
	absent                   // its session is to come back first
	theirs                   // another replica, which lives, has the call, and looks at the note, too
	moved                    // the call is due later
)

// call is where the call is kept.
func (n *note) call() store.Address {
	session, call, _ := strings.Cut(n.ID, "/")
	return store.Address{Session: session, Kind: store.Flow, ID: call}
}

// again reports whether the call could not be brought back, though it is due.
func (n *note) again() bool { return n.became == unsettled || n.became == crowded }

// next returns for when the note is made anew; the zero time: it is not.
func (n *note) next(now time.Time) time.Time {
	switch n.became {
	case unsettled:
		return now.Add(dueAgain)
	case crowded:
		return now.Add(dueStep)
	case moved:
		return later(n.due, now.Add(dueStep))
	}
	return time.Time{}
}

// notesOf returns the notes of the seconds from the first to the one before until, each call's once.
func (k dues) notesOf(first, until int64) (notes []*note, err error) {
	seconds := make([][]store.Record, until-first)
	var running errgroup.Group
	for i := range seconds {
		running.Go(func() error {
			return k.do(func(ctx context.Context) (err error) {
				seconds[i], err = k.store.Load(ctx, k.dueName(first+int64(i)))
				return err
			})
		})
	}
	if err := running.Wait(); err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	for _, second := range seconds {
		for i := range second {
			n := &note{Address: second[i].Address, became: crowded}
			if seen[n.ID] {
				n.became = settled // by the other one
			}
			seen[n.ID] = true
			notes = append(notes, n)
		}
	}
	return notes, nil
}

// settle makes notes anew that are needed once more, and removes those that are not needed where they are. It returns the last time
// for which there is one. After an error, which is the store's, those stay that could not be made anew.
func (k dues) settle(notes []*note) (last time.Time, err error) {
	anew, now := dueNotes{keeper: k.keeper}, time.Now()
	for _, n := range notes {
		if next := n.next(now); !next.IsZero() {
			anew.put(n.ID, next)
			last = later(last, next)
		}
	}
	err = anew.commit()
	gone := map[string][]store.Change{}
	for _, n := range notes {
		if n.became != theirs && (err == nil || n.next(now).IsZero()) {
			gone[n.Session] = append(gone[n.Session], store.Change{Kind: store.Due, ID: n.ID, Replaces: store.Any, Delete: true})
		}
	}
	for second, changes := range gone {
		for part := range slices.Chunk(changes, dueBatch) {
			k.report("removing what was due", k.do(func(ctx context.Context) error { return k.store.Commit(ctx, second, part...) }))
		}
	}
	return last, err
}

// secondOf returns the second in which a time has come.
func secondOf(due time.Time) int64 { return due.Add(dueStep - 1).Unix() }

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
	d.put(dueNote(d.keeper.name(s.rec.ID), strconv.FormatUint(stream, 10)), due)
	d.calls[call] = true
}

func (d *dueNotes) put(note string, due time.Time) {
	if d.seconds == nil {
		d.seconds = map[int64][]store.Change{}
	}
	second := secondOf(due)
	d.seconds[second] = append(d.seconds[second], store.Change{Kind: store.Due, ID: note, Replaces: store.Any, TTL: time.Until(due) + noteLasts})
}

// dueNote names a call of a session.
func dueNote(session, call string) string { return session + "/" + call }

// commit makes the notes. After an error some are made, and the calls stay where they are.
func (d *dueNotes) commit() error {
	k := d.keeper
	for second, changes := range d.seconds {
		for part := range slices.Chunk(changes, dueBatch) {
			err := k.do(func(ctx context.Context) error { return k.store.Commit(ctx, dues{k}.dueName(second), part...) })
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func (k dues) lookAt(ctx context.Context, at store.Address) (r store.Record, err error) {
	bounded, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	return k.store.Get(bounded, at)
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
