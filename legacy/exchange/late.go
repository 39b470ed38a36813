package exchange

import (
	"bytes"
	"errors"
	"sync/atomic"
	"time"
	"weak"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/legacy/session"
	"github.com/mcpbridge/bridge/sessions/store"
)

// removeLater removes, in the background, what the store could not remove when the call ended: whoever
// answers its question would have the call go on. It ends with the record and with the process. slow says that the store hung.
func (sc *storedCall) removeLater(ex *Exchange, slow bool) {
	rest := &storedCall{version: sc.version, at: sc.at, back: sc.back, expires: sc.expires, unsure: sc.unsure, removed: sc.removed, record: callRecord{Stream: sc.record.Stream}, kept: sc.kept}
	of := &Exchange{end: ex.end, session: ex.session} // without what the call held
	was := weak.Make(ex.stream.Load())                // which the session keeps for as long as it is there to be found
	tried := ex.session.Later(&session.LateCall{Request: sc.record.Request, Stream: sc.record.Stream, Asked: sc.version > 0, Slow: slow, Within: time.Until(sc.expires), Remove: func(stop func() bool) bool {
		err := rest.remove(of, waiting{over: stop, long: true, again: true})
		gone := errors.Is(err, downstream.ErrGone)
		if err == nil || gone {
			rest.kept.Release()
		}
		if gone { // another replica's word counts, whatever was said here
			of.session.Streams().ForgetOne(rest.record.Stream, was.Value())
		}
		return err == nil || gone
	}})
	if !tried && sc.version == 0 { // there is most likely none: it counts for as long as it may be made late
		rest.kept.Renew(min(taken, time.Until(sc.expires)))
	}
}

// remove removes the record. Where nobody knows whether there is one its place is taken for a while: it may be made
// late, when nobody waits for it any more, and whoever came across it would ask what nobody asks any more. So is that of a call that
// was taken over: the replica that had it may live, and is not to take it for one that the store has lost.
func (sc *storedCall) remove(ex *Exchange, w waiting) error {
	nothing, ttl := callRecord{V: callRecordVersion, Stream: sc.record.Stream, Over: true}, taken
	switch {
	case !ex.session.Shared() || sc.version > 0 && sc.back.IsZero():
		return sc.commit(ex, w, store.Change{Delete: true}, true)
	case sc.version > 0:
		ttl = max(taken, ex.end.opt.Retention)
	}
	return nothing.written(func(value []byte) error {
		return sc.commit(ex, w, store.Change{TTL: ttl, Value: value}, true)
	})
}

// taken is how long the place of a record is taken that may be made late.
const taken = time.Minute

// A client that is told 503 has not answered, but a store that hung may still do what was asked of
// it before: its record would say of an answer that it is on its way to the server, which never gets it, and
// whoever went on with the call could only end it. So the call is made again what it was. Until then nobody
// can say what it is, and whoever asks waits (session.Session.Settled).

// takeBack makes a call's record again what it was before an answer.
type takeBack struct {
	ex      *Exchange
	version uint64     // of the record
	theirs  bool       // it is another replica's, or gone
	before  callRecord // what it was
	flow    []byte     // what it may have become, or become late
	expires time.Time
	stopped atomic.Bool
	done    chan struct{} // closed at the end
}

// takeBack has the store take an answer back that it was asked to keep, in the background, as soon as
// it can be reached. Nothing is kept for the call here any more.
func (sc *storedCall) takeBack(ex *Exchange, before callRecord, settled func()) {
	t := &takeBack{ex: ex, version: sc.version, before: before, flow: sc.record.Flow, expires: sc.expires, done: make(chan struct{})}
	sc.taken, sc.room = t, 0
	sc.kept.Charge(before.Payer, before.size(), time.Until(sc.expires)) // the answer is not to be there
	over := func() { close(t.done); settled() }
	if !sc.unsure || before.V == 0 || !ex.session.Resolve(func(stop func() bool) { defer over(); t.run(stop) }) {
		over()
	}
}

// run tries until the call is in the store as it was, where nobody comes for it by the clock.
func (t *takeBack) run(stop func() bool) {
	for !t.stopped.Load() && !stop() && time.Now().Before(t.expires) {
		if t.try() {
			if !t.theirs {
				t.ex.session.Astray()
			}
			return
		}
		if !t.ex.session.Pause() {
			return
		}
	}
}

// try reports whether the record is what it is to be, or somebody else's business. What may still be made
// late finds another version than it replaces then.
func (t *takeBack) try() (over bool) {
	change := store.Change{Kind: store.Flow, ID: recordID(t.before.Stream), Replaces: t.version, TTL: max(time.Until(t.expires), time.Millisecond)}
	err := t.before.written(func(value []byte) error {
		change.Value = value
		return t.ex.session.ChangeCalls(change)
	})
	if err == nil {
		t.version++
		return true
	}
	if !errors.Is(err, downstream.ErrGone) {
		return false
	}
	found, err := Find(t.ex.session, Meant{Stream: t.before.Stream, Is: isFlow, Owed: true})
	defer found.Over()
	if err != nil {
		return false
	}
	if found == nil || !found.Waits() || found.Home() != t.before.Home {
		t.theirs = true
		return true
	}
	t.version = found.version
	return !bytes.Equal(found.record.Flow, t.flow) // then it is as it was, or gone on with from there
}

// givenUp ends what takeBack has begun: the call has ended after all, which counts more. It returns false when
// the call is another replica's by now.
func (sc *storedCall) givenUp() bool {
	t := sc.taken
	t.stopped.Store(true)
	<-t.done
	sc.taken, sc.version = nil, t.version
	return !t.theirs
}
