package session

import (
	"context"
	"slices"
	"strconv"
	"time"

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

const (
	dueStep  = time.Second
	dueBatch = 500 // notes of one round trip
	// dueBack is how far back seconds are looked at after a start, and for how long it is tried to bring a call back that is due. A
	// call's record outlives its deadline by more.
	dueBack = 2 * time.Minute
)

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
	d.seconds[second] = append(d.seconds[second], store.Change{Kind: store.Due, ID: note, Replaces: store.Any, TTL: time.Until(due) + dueBack})
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
