package exchange

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/budget"
	"github.com/mcpbridge/bridge/legacy/message"
	"github.com/mcpbridge/bridge/sessions"
	"github.com/mcpbridge/bridge/sessions/store"
)

// keptCall is what an exchange knows of its record in the store.
type keptCall struct {
	mu      sync.Mutex // one save at a time
	version uint64     // of the record in the store
	unsure  bool       // the store may have a newer one than that, or one at all
	n       uint64     // of the newest flow
	over    bool       // nothing is kept any more
	expires time.Time  // of the record in the store
	record  callRecord
	asked   time.Time // when the newest question was kept
	until   time.Time // how long it may be in the store alone; zero: it is not to be there
	hold    budget.Hold
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
func (kc *keptCall) release() {
	kc.mu.Lock()
	defer kc.mu.Unlock()
	kc.hold.Release()
	kc.hold = budget.Hold{}
}

// How long an answer, a cancellation and the response of a call, and a call that ends without
// one, wait at most for a store that cannot be reached.
const (
	answerPatience   = 20 * time.Second
	lastWordPatience = 2 * time.Second
)

// Safe implements Reply. Members of a batch end with the process.
func (ex *Exchange) Safe() downstream.Safe {
	if ex.session == nil || !ex.session.Kept() || ex.batch || !ex.Interactive() {
		return nil
	}
	return ex
}

// Keep implements downstream.Safe.
func (ex *Exchange) Keep(k downstream.Kept) error {
	ex.mu.Lock()
	st := ex.startKnownLocked()
	if ex.kept == nil && st != nil {
		ex.kept = &keptCall{hold: budget.On(ex.hold.Account())}
	}
	kept := ex.kept
	ex.mu.Unlock()
	if st == nil {
		return nil // it is over, or its client left before it could come back
	}
	var text []byte
	if k.Message != nil {
		text = message.TextOf(k.Message)
	}
	if err := kept.save(ex, st, &k, text); err != nil || text == nil {
		return err
	}
	st.Queue(text)
	st.Flush()
	if ex.end.opt.Gate.IsShut() { // its client, which can come back by now, does so to another process
		return downstream.ErrGone
	}
	return nil
}

// save brings the record up to date. text is the event that is to follow, nil for none.
func (kc *keptCall) save(ex *Exchange, st *sessions.Stream, k *downstream.Kept, text []byte) error {
	kc.mu.Lock()
	defer kc.mu.Unlock()
	if kc.over {
		return downstream.ErrGone
	}
	r := &kc.record
	r.V, r.Stream, r.Home, r.Request = callRecordVersion, st.ID(), ex.end.opt.Replica, k.Request
	if k.N >= kc.n {
		kc.n, r.Flow = k.N, k.Record
		r.Events = slices.DeleteFunc(r.Events, func(e keptEvent) bool { return !slices.Contains(k.Open, e.ID) })
	}
	if text != nil {
		kc.asked = time.Now()
		r.Events = append(r.Events, keptEvent{ID: k.Message.ID, Seq: st.Last() + 1, Data: text})
	}
	patience := k.TTL // a question may wait as long as its call
	if text == nil {
		patience = answerPatience
	}
	// Where there is no memory for a question it is not asked; answers make room.
	if err := kc.hold.Set((1 + passing) * r.size()); err != nil && text != nil {
		return err
	}
	kc.expires = time.Now().Add(max(k.TTL, time.Until(kc.expires)))
	err := r.written(func(value []byte) error {
		return kc.commit(ex, waiting{most: patience, over: k.Over}, store.Change{TTL: k.TTL, Value: value}, false)
	})
	_ = kc.hold.Set(r.size())
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
func (kc *keptCall) commit(ex *Exchange, w waiting, record store.Change, last bool) error {
	record.Kind, record.ID = store.Flow, recordID(kc.record.Stream)
	again := false // an earlier try may have made the change
	for began := time.Now(); ; {
		record.Replaces = kc.version
		err := ex.session.ChangeCalls(record)
		if err == nil {
			kc.version++
			kc.unsure = false
			return nil
		}
		if errors.Is(err, downstream.ErrGone) {
			if err := kc.reclaim(ex, again && last); err != nil || again && last {
				return err
			}
			continue
		}
		kc.unsure = kc.unsure || !errors.Is(err, store.ErrUnreachable)
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
func (kc *keptCall) reclaim(ex *Exchange, gone bool) error {
	id := recordID(kc.record.Stream)
	found, err := Find(ex.session, func(c *FoundCall) bool { return c.Waits() && recordID(c.record.Stream) == id })
	switch {
	case err != nil:
		return err
	case found == nil && gone:
		return nil
	case found == nil || found.record.Home != ex.end.opt.Replica || found.version <= kc.version:
		return downstream.ErrGone
	}
	kc.version = found.version
	return nil
}

// keepLastWord keeps the response of a call that was kept, until its retention ends, in
// place of the call; without a response it removes that. It returns false when
// another replica goes on with the call: then there is nothing to say here.
func (ex *Exchange) keepLastWord(msg *downstream.Message, patience time.Duration) bool {
	ex.mu.Lock()
	kept, over := ex.kept, ex.phase >= answering
	ex.mu.Unlock()
	if kept == nil || over {
		return true
	}
	kept.mu.Lock()
	defer kept.mu.Unlock()
	before := kept.over
	kept.over = true
	if before || kept.version == 0 && !kept.unsure {
		return true
	}
	st := ex.stream.Load()
	var err error
	if w := (waiting{most: patience}); msg == nil {
		err = kept.commit(ex, w, store.Change{Delete: true}, true)
	} else {
		word := callRecord{V: callRecordVersion, Stream: st.ID(), Over: true, Events: []keptEvent{{Seq: st.Last() + 1, Data: message.OwnText(msg)}}}
		err = word.written(func(value []byte) error {
			return kept.commit(ex, w, store.Change{TTL: ex.end.opt.Retention, Value: value}, true)
		})
	}
	if errors.Is(err, downstream.ErrGone) {
		return false
	}
	ex.session.Report("keeping the last word of a call", err)
	if err != nil {
		kept.removeLater(ex)
	}
	return true
}

// Drop implements downstream.Safe.
func (ex *Exchange) Drop() { ex.keepLastWord(nil, answerPatience) }

// Leave implements downstream.Safe. The stream is forgotten before it ends: whoever comes
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
	kept, st := ex.kept, ex.stream.Load()
	ex.mu.Unlock()
	if kept == nil || st == nil || st.Attached() {
		return 0, false
	}
	kept.mu.Lock()
	defer kept.mu.Unlock()
	return st.ID(), kept.version > 0 && !kept.over && time.Since(kept.asked) >= unload
}

// Shelve implements session.Waiting.
func (ex *Exchange) Shelve(until time.Time) {
	ex.mu.Lock()
	kept := ex.kept
	ex.mu.Unlock()
	kept.mu.Lock()
	defer kept.mu.Unlock()
	kept.until = until
}

// shelve notes that the call is in the store alone from now on, if that is where it goes.
func (ex *Exchange) shelve(st *sessions.Stream) {
	ex.mu.Lock()
	kept := ex.kept
	ex.mu.Unlock()
	if kept == nil {
		return
	}
	kept.mu.Lock()
	until := kept.until
	kept.mu.Unlock()
	if !until.IsZero() {
		ex.session.Shelve(st.ID(), until)
	}
}
