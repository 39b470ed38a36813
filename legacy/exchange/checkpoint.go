package exchange

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/budget"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/legacy/message"
	"github.com/mcpbridge/bridge/sessions"
	"github.com/mcpbridge/bridge/sessions/store"
)

// storedCall is what an exchange knows of its record in the store.
type storedCall struct {
	mu      sync.Mutex // one save at a time
	id      string     // of the record in the store, once there was one
	version uint64     // of it
	unsure  bool       // the store may have a newer one than that, or one at all
	n       uint64     // of the newest flow
	over    bool       // nothing is kept any more
	expires time.Time  // of the record in the store
	record  callRecord
	asked   time.Time // when the newest question was kept
	until   time.Time // how long it may be in the store alone; zero: it is not to be there
	hold    budget.Hold
	kept    budget.Kept // what the record in the store takes
}

// How often the text of a record is in memory while it is written, besides the one that
// stays: encoded, sealed, and on its way to the disk.
const passing = 3

// size is what a record takes that stays.
func (r *callRecord) size() int {
	size := len(r.Flow)
	for i := range r.Events {
		size += len(r.Events[i].Data)
	}
	return size
}

// release gives back what was charged for the record, and charges nothing any more.
func (sc *storedCall) release() {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	sc.hold.Release()
	sc.hold = budget.Hold{}
	if sc.version == 0 && !sc.unsure {
		sc.kept.Release()
	}
}

// How long an answer, a cancellation and the response of a call, and a call that ends without
// one, wait at most for a store that cannot be reached.
const (
	answerPatience   = 20 * time.Second
	lastWordPatience = 2 * time.Second
)

// Checkpointer implements Reply. Members of a batch end with the process.
func (ex *Exchange) Checkpointer() downstream.Checkpointer {
	if ex.session == nil || !ex.session.Stored() || ex.batch || !ex.Interactive() {
		return nil
	}
	return ex
}

// Save implements downstream.Checkpointer.
func (ex *Exchange) Save(k downstream.Checkpoint) error {
	ex.mu.Lock()
	st := ex.startKnownLocked()
	if ex.stored == nil && st != nil {
		ex.stored = &storedCall{hold: budget.On(ex.hold.Account()), kept: ex.session.Room().Empty()}
	}
	record := ex.stored
	ex.mu.Unlock()
	if st == nil {
		return nil // it is over, or its client left before it could come back
	}
	var text []byte
	if k.Message != nil {
		text = message.TextOf(k.Message)
	}
	if err := record.save(ex, st, &k, text); err != nil || text == nil {
		return err
	}
	st.Ask(text, string(k.Message.ID))
	st.Flush()
	if ex.end.opt.Gate.IsShut() { // its client, which can come back by now, does so to another process
		return downstream.ErrGone
	}
	return nil
}

// save brings the record up to date. text is the event that is to follow, nil for none.
func (sc *storedCall) save(ex *Exchange, st *sessions.Stream, k *downstream.Checkpoint, text []byte) error {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	if sc.over {
		return downstream.ErrGone
	}
	r := &sc.record
	r.V, r.Stream, r.Home, r.Request = callRecordVersion, st.ID(), ex.end.opt.Replica, k.Request
	if k.N >= sc.n {
		sc.n, r.Flow = k.N, k.Record
		r.Events = slices.DeleteFunc(r.Events, func(e storedEvent) bool { return !slices.Contains(k.Open, e.ID) })
	}
	now := time.Now()
	if text != nil {
		sc.asked = now
		r.Events = slices.DeleteFunc(r.Events, func(e storedEvent) bool { return e.ID == k.Message.ID }) // which its client has lost
		r.Events = append(r.Events, storedEvent{ID: k.Message.ID, Seq: st.Last() + 1, Data: text})
	}
	patience := k.TTL // a question may wait as long as its call
	if text == nil {
		patience = answerPatience
	}
	// Where there is no room for a question it is not asked; answers make some.
	if owner := sc.hold.Account().Owner(); text == nil {
		sc.kept.Charge(owner, r.size(), k.TTL)
	} else if err := sc.kept.Set(owner, r.size(), k.TTL); err != nil {
		return err
	}
	if err := sc.hold.Set((1 + passing) * r.size()); err != nil && text != nil {
		return err
	}
	if expires := now.Add(k.TTL); expires.After(sc.expires) {
		sc.expires = expires
	}
	err := r.written(func(value []byte) error {
		return sc.commit(ex, waiting{most: patience, over: k.Over}, store.Change{TTL: k.TTL, Value: value}, false)
	})
	_ = sc.hold.Set(r.size())
	if err != nil && text == nil && ex.session.Shared() {
		// Another replica may have taken this one for dead: an answer that is not kept
		// must not be used here.
		ex.session.Report("keeping an answer", err)
		return downstream.ErrGone
	}
	return err
}

// waiting is how a change waits for a store that does not take it at once.
type waiting struct {
	most time.Duration
	over func() bool // nobody needs the change any more; nil: somebody does
	long bool        // whatever the settings say
}

// longest is how long to wait after an error. A store that cannot be reached is waited for as
// the settings say. One that a single process has can be: its disk stalls, and does in the
// end what was asked of it.
func (w *waiting) longest(ex *Exchange, err error) time.Duration {
	if w.long || isSlow(err) && !ex.session.Shared() {
		return w.most
	}
	return min(w.most, ex.end.opt.StoreWait)
}

// isSlow reports an error that says nothing but that time was up.
func isSlow(err error) bool { return errors.Is(err, context.DeadlineExceeded) }

// commit replaces the call's record. While the store does not take it it waits, if it is to.
// last: the call is over with it. The error is ErrGone when another replica has the call, or
// nobody needs the change any more.
func (sc *storedCall) commit(ex *Exchange, w waiting, record store.Change, last bool) error {
	if sc.id == "" {
		sc.id = recordID(sc.record.Stream)
	}
	record.Kind, record.ID = store.Flow, sc.id
	again := false // an earlier try may have made the change
	for began := time.Now(); ; {
		record.Replaces = sc.version
		err := ex.session.ChangeCalls(record)
		if err == nil {
			sc.version++
			sc.unsure = false
			return nil
		}
		if errors.Is(err, downstream.ErrGone) {
			if err := sc.reclaim(ex, again && last); err != nil || again && last {
				return err
			}
			continue
		}
		sc.unsure = sc.unsure || !errors.Is(err, store.ErrUnreachable)
		switch {
		case w.over != nil && w.over():
			return downstream.ErrGone
		case time.Since(began) >= w.longest(ex, err) && (again || !isSlow(err)):
			return err
		}
		again = true // above all, a process that was paused has missed a reply, and is to ask again
		ex.session.Pause()
	}
}

// reclaim learns the version of a record that is the call's own, though it is not the
// expected one: a change was made, and the store could not say so any more. gone: if it is
// not there, that is right.
func (sc *storedCall) reclaim(ex *Exchange, gone bool) error {
	found, err := Find(ex.session, func(c *FoundCall) bool { return c.Waits() && c.record.Stream == sc.record.Stream })
	switch {
	case err != nil:
		return err
	case found == nil && gone:
		return nil
	case found == nil || found.record.Home != ex.end.opt.Replica || found.version <= sc.version:
		return downstream.ErrGone
	}
	sc.version = found.version
	return nil
}

// Holds implements downstream.Checkpointer.
func (ex *Exchange) Holds(question jsonrpc.ID) bool {
	ex.mu.Lock()
	sc := ex.stored
	ex.mu.Unlock()
	if sc == nil {
		return false
	}
	sc.mu.Lock()
	defer sc.mu.Unlock()
	return sc.record.asks(question)
}

// keepLastWord keeps the response of a call that was kept, until its retention ends, in
// place of the call; without a response, or room for it, it removes that. It returns false when
// another replica goes on with the call: then there is nothing to say here.
func (ex *Exchange) keepLastWord(msg *downstream.Message, patience time.Duration) bool {
	ex.mu.Lock()
	record, over := ex.stored, ex.phase >= answering
	ex.mu.Unlock()
	if record == nil || over {
		return true
	}
	record.mu.Lock()
	defer record.mu.Unlock()
	before := record.over
	record.over = true
	if before || record.version == 0 && !record.unsure {
		return true
	}
	w := waiting{most: patience}
	err := errNoWord
	if msg != nil {
		err = record.keepWord(ex, w, message.CopyText(msg))
	}
	if errors.Is(err, errNoWord) || errors.Is(err, budget.ErrNoRoom) {
		if err = record.commit(ex, w, store.Change{Delete: true}, true); err == nil {
			record.kept.Release()
		}
	}
	if errors.Is(err, downstream.ErrGone) {
		record.kept.Release()
		return false
	}
	ex.session.Report("keeping the last word of a call", err)
	if err != nil {
		record.removeLater(ex)
	}
	return true
}

// errNoWord says that a call ends without a response.
var errNoWord = errors.New("there is no last word")

// keepWord has the response of the call take its place.
func (sc *storedCall) keepWord(ex *Exchange, w waiting, text []byte) error {
	if err := sc.kept.Set(sc.hold.Account().Owner(), len(text), ex.end.opt.Retention); err != nil {
		return err
	}
	st := ex.stream.Load()
	word := callRecord{V: callRecordVersion, Stream: st.ID(), Over: true, Events: []storedEvent{{Seq: st.Last() + 1, Data: text}}}
	return word.written(func(value []byte) error {
		return sc.commit(ex, w, store.Change{TTL: ex.end.opt.Retention, Value: value}, true)
	})
}

// Drop implements downstream.Checkpointer.
func (ex *Exchange) Drop() { ex.keepLastWord(nil, answerPatience) }

// Leave implements downstream.Checkpointer. The stream is forgotten before it ends: whoever comes
// back for it looks elsewhere.
func (ex *Exchange) Leave() {
	if st := ex.stream.Load(); st != nil {
		ex.session.Streams().Forget(st)
		ex.shelve(st)
	}
	ex.complete(nil)
}

// Away implements session.Waiting.
func (ex *Exchange) Away(unload time.Duration) (number uint64, away bool) {
	ex.mu.Lock()
	record, st := ex.stored, ex.stream.Load()
	ex.mu.Unlock()
	if record == nil || st == nil || st.Attached() {
		return 0, false
	}
	record.mu.Lock()
	defer record.mu.Unlock()
	return st.ID(), record.version > 0 && !record.over && time.Since(record.asked) >= unload
}

// Shelve implements session.Waiting.
func (ex *Exchange) Shelve(until time.Time) {
	ex.mu.Lock()
	record := ex.stored
	ex.mu.Unlock()
	record.mu.Lock()
	defer record.mu.Unlock()
	record.until = until
}

// shelve notes that the call is in the store alone from now on, if that is where it goes.
func (ex *Exchange) shelve(st *sessions.Stream) {
	ex.mu.Lock()
	record := ex.stored
	ex.mu.Unlock()
	if record == nil {
		return
	}
	record.mu.Lock()
	until := record.until
	record.mu.Unlock()
	if !until.IsZero() {
		ex.session.Shelve(st.ID(), until)
	}
}
