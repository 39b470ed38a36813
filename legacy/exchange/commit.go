package exchange

import (
	"context"
	"errors"
	"time"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/sessions/store"
)

// waiting is how a change waits for a store that does not take it at once.
type waiting struct {
	most time.Duration
	over func() bool // nobody needs the change any more; nil: somebody does
	long bool        // whatever the settings say
	// again: it was tried before, so a store that hangs is not asked once more when time is up.
	again bool
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
	for began := time.Now(); ; {
		record.Replaces = sc.version
		err := ex.session.ChangeCalls(record)
		if err == nil {
			sc.version++
			sc.at, sc.unsure = time.Now().Round(0), false
			return nil
		}
		if errors.Is(err, downstream.ErrGone) {
			made := false
			made, err = sc.reclaim(ex, last, record.Delete)
			switch {
			case made || errors.Is(err, downstream.ErrGone):
				return err
			case err == nil:
				continue
			} // else the store is yet to say whose the call is
		} else if !errors.Is(err, store.ErrUnreachable) {
			sc.unsure, sc.removed = true, record.Delete
		}
		switch {
		case w.over != nil && w.over():
			return downstream.ErrGone
		case time.Since(began) >= w.longest(ex, err) && (w.again || !isSlow(err)):
			return err
		}
		w.again = true // above all, a process that was paused has missed a reply, and is to ask again
		if !ex.session.Pause() {
			return err
		}
	}
}

// reclaim looks why the record is not the expected one. A change was made, and the store could
// not say so any more, where the record is the one that follows it: another replica that has
// taken the call over says so in that one, and has its own last word in a later one.
func (sc *storedCall) reclaim(ex *Exchange, last, remove bool) (made bool, err error) {
	found, err := Find(ex.session, Meant{Stream: sc.record.Stream, Is: isFlow, Owed: true})
	defer found.Over()
	switch {
	case err != nil:
		return false, err
	case found == nil && last && sc.removed:
		return true, nil
	case found == nil:
		return sc.missing(ex, last, remove)
	case found.version < sc.version && found.Waits():
		// The store has come back without its last moment. What this replica knows of the call is newer, also where it had just
		// taken it over: a question that was answered is not to wait once more.
	case found.version != sc.version+1:
		return false, downstream.ErrGone
	case !found.Waits() && last:
		return true, nil
	case !found.Waits() || found.Home() != ex.end.opt.Replica:
		return false, downstream.ErrGone
	}
	sc.version = found.version
	return false, nil
}

// missing says what becomes of a change to a record that is not there.
func (sc *storedCall) missing(ex *Exchange, last, remove bool) (made bool, err error) {
	switch vanished, err := ex.session.Vanished(); {
	case err != nil:
		return false, err
	case vanished && last: // with all its calls, so that nobody else has this one
		return true, nil
	case !vanished && sc.isLost(ex):
		sc.version = 0
		return remove, nil
	}
	sc.kept.Release() // its session was ended, perhaps while the change was on its way
	sc.room = 0
	return false, downstream.ErrGone
}

// isLost reports whether a record that is not there, though its session is, can only be one that the store has lost: it has come back
// without its last moment, in which the call asked for the first time. What another replica comes to say of a call that it has taken over
// is there for longer.
func (sc *storedCall) isLost(ex *Exchange) bool {
	now := time.Now().Round(0)
	return sc.version > 0 && now.Before(sc.at.Add(ex.end.opt.Retention/2)) && now.Before(sc.expires)
}
