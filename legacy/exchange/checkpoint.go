package exchange

import (
	"cmp"
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
	at      time.Time  // when the store took that, by the clock on the wall, which goes on while the machine sleeps
	unsure  bool       // the store may have a newer one than that, or one at all
	removed bool       // the store may have removed it, though it failed as it was to
	n       uint64     // of the newest flow
	over    bool       // nothing is kept any more
	word    bool       // but the call's last word
	gone    bool       // another replica has the call, which was learnt at its end
	taken   *takeBack  // the call was left as it was before an answer; nil: it was not
	expires time.Time  // of the record in the store
	record  callRecord
	asked   time.Time // when the newest question was kept here; zero: it came back with the call
	back    time.Time // when the call came back from the store; zero: it began here
	until   time.Time // how long it may be in the store alone; zero: it is not to be there
	hold    budget.Hold
	kept    budget.Kept // what the record in the store takes
	room    int         // how large the record may become by answers that were let in while other questions are open
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

// hasWord reports whether the call's last word is in the store. sc is nil where nothing was kept.
func (sc *storedCall) hasWord() bool {
	if sc == nil {
		return false
	}
	sc.mu.Lock()
	defer sc.mu.Unlock()
	return sc.word
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
	switch {
	case sc.over, sc.taken != nil:
		return downstream.ErrGone
	case k.Again && sc.version == 0 && !sc.unsure:
		return nil // nothing was kept that anybody could have taken over
	}
	r := &sc.record
	settled, before := func() {}, callRecord{}
	answers := text == nil && !k.Again && !k.Aside
	if answers {
		settled, before = ex.session.Doubt(), r.asWas()
	}
	r.V, r.Stream, r.Of, r.Home, r.Request = callRecordVersion, st.ID(), ex.of, ex.end.opt.Replica, k.Request
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
	w := waiting{most: k.TTL, over: k.Over, long: k.Again} // a question may wait as long as its call
	if text == nil {
		w.most = answerPatience
	}
	// Where there is no room for a question it is not asked; the last answer makes some, and others were let in (Grow).
	if len(k.Open) == 0 {
		sc.room = 0
	}
	r.Payer = sc.payer(ex)
	if size := max(r.size(), sc.room); text == nil {
		sc.kept.Charge(r.Payer, size, k.TTL)
	} else if err := sc.kept.Set(r.Payer, size, k.TTL); err != nil {
		return err
	}
	if err := sc.hold.Set((1 + passing) * r.size()); err != nil && text != nil && !k.Owed {
		return err
	} else if err != nil {
		sc.hold.Owe((1 + passing) * r.size())
	}
	if expires := now.Add(k.TTL); expires.After(sc.expires) {
		sc.expires = expires
	}
	err := r.written(func(value []byte) error {
		return sc.commit(ex, w, store.Change{TTL: k.TTL, Value: value}, false)
	})
	if err == nil && time.Since(now) > time.Second { // the store took its time: the record lasts for that much longer
		sc.kept.Renew(k.TTL)
	}
	_ = sc.hold.Set(r.size())
	if err == nil || !answers || errors.Is(err, downstream.ErrGone) {
		settled()
		return err
	}
	// Used all the same, it would be asked for again by whoever goes on with the call, another replica that takes this one
	// for dead or the next process, and the server would do everything twice.
	ex.session.Report("keeping an answer", err)
	sc.takeBack(ex, before, settled)
	return downstream.ErrGone
}

// payer returns in whose share of the store the call is counted.
func (sc *storedCall) payer(ex *Exchange) string {
	return cmp.Or(sc.hold.Account().Owner(), sc.record.Payer, ex.session.Payer())
}

// Grow implements downstream.Checkpointer. Several answers may be on their way at once, so what each needs adds up until no
// question is open.
func (ex *Exchange) Grow(bytes int) error {
	ex.mu.Lock()
	sc := ex.stored
	ex.mu.Unlock()
	if sc == nil {
		return nil // nothing is kept
	}
	sc.mu.Lock()
	defer sc.mu.Unlock()
	if sc.over || sc.taken != nil {
		return nil // which Save says
	}
	room := max(max(sc.room, sc.record.size())+bytes, sc.record.size())
	err := sc.kept.Set(sc.payer(ex), room, time.Until(sc.expires))
	if err == nil {
		sc.room = room
	}
	return err
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
// another replica goes on with the call, or has ended it: then there is nothing to say here, whatever
// else the call comes to say.
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
	if record.taken != nil {
		record.gone = !record.givenUp()
		before = record.gone
	}
	if before || record.version == 0 && !record.unsure {
		return !record.gone
	}
	w := waiting{most: patience}
	err := errNoWord
	if msg != nil {
		err = record.keepWord(ex, w, message.CopyText(msg))
		record.word = err == nil
	}
	if errors.Is(err, errNoWord) || errors.Is(err, budget.ErrNoRoom) {
		if err = record.remove(ex, w); err == nil {
			record.kept.Release()
		}
	}
	if record.gone = errors.Is(err, downstream.ErrGone); record.gone {
		record.kept.Release()
		return false
	}
	ex.session.Report("keeping the last word of a call", err)
	if err != nil {
		record.kept.Charge(record.payer(ex), record.record.size(), time.Until(record.expires)) // the call, which is there still
		record.removeLater(ex, isSlow(err))
	}
	return true
}

// errNoWord says that a call ends without a response.
var errNoWord = errors.New("there is no last word")

// keepWord has the response of the call take its place.
func (sc *storedCall) keepWord(ex *Exchange, w waiting, text []byte) error {
	if err := sc.kept.Set(sc.payer(ex), len(text), ex.end.opt.Retention); err != nil {
		return err
	}
	st := ex.stream.Load()
	word := callRecord{V: callRecordVersion, Stream: st.ID(), Of: ex.of, Over: true, Events: []storedEvent{{Seq: st.Last() + 1, Data: text}}}
	return word.written(func(value []byte) error {
		return sc.commit(ex, w, store.Change{TTL: ex.end.opt.Retention, Value: value}, true)
	})
}

// Drop implements downstream.Checkpointer.
func (ex *Exchange) Drop() { ex.keepLastWord(nil, answerPatience) }

// Leave implements downstream.Checkpointer.
func (ex *Exchange) Leave() {
	if st := ex.stream.Load(); st != nil {
		ex.shelve(st)
	}
	ex.yield()
}

// yield ends the exchange of a call that is another replica's. The stream is forgotten before it
// ends: whoever comes back for it looks elsewhere. Told that it is over, an honest client would come
// back no more.
func (ex *Exchange) yield() {
	if st := ex.stream.Load(); st != nil {
		ex.session.Streams().Forget(st)
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
	if !record.mu.TryLock() { // it is being written, which may take its time: who asks has all other calls to look at
		return 0, false
	}
	defer record.mu.Unlock()
	return st.ID(), record.version > 0 && !record.over && time.Since(record.asked) >= unload && time.Since(record.back) >= min(unload, briefly)
}

// briefly is how long a call stays at least that came back, and was asked nothing since: who fetched it may come back
// once more, but it need not wait here anew for as long as at first.
const briefly = 5 * time.Second

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
	until, noted := record.until, true
	if record.taken != nil { // nobody has noted what is due to it since
		until, noted = record.expires, false
	}
	if record.room > 0 { // for an answer that did not come
		record.kept.Charge(record.payer(ex), record.record.size(), time.Until(record.expires))
	}
	record.mu.Unlock()
	if !until.IsZero() {
		ex.session.Shelve(st.ID(), until, noted)
	}
}
