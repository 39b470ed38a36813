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
			sc.unsure = false
			return nil
		}
		if errors.Is(err, downstream.ErrGone) {
			made := false
			made, err = sc.reclaim(ex, last)
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
func (sc *storedCall) reclaim(ex *Exchange, last bool) (made bool, err error) {
	found, err := Find(ex.session, Meant{Stream: sc.record.Stream, Is: isFlow, Owed: true})
	defer found.Over()
	switch {
	case err != nil:
		return false, err
	case found == nil && last:
		removed := sc.removed
		if !removed {
			removed, err = ex.session.Vanished() // with all its calls, so that nobody else has this one
		}
		if removed || err != nil {
			return removed, err
		}
		return false, downstream.ErrGone
	case found == nil: // its session was ended, perhaps while the change was on its way
		sc.kept.Release()
		sc.room = 0
		return false, downstream.ErrGone
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
