package boltstore

import (
	"context"
	"math"

	bolt "go.etcd.io/bbolt"
)

// ahead brings what is recent into the file while commits go on, so that little is left to do, for
// which they wait, when the journal is full. What it has brought stays in the journal: to read that again
// after a crash changes nothing, since a frame says what there is and not what is different.
type ahead struct {
	next    int64         // how full the journal is to be for the next time
	over    chan struct{} // closed when the goroutine is done; nil: there is none
	brought []brought     // what it brings
	err     error         // may be read when over is closed
}

type brought struct {
	session string
	recentEntry
}

// aheadLeast is the part of the journal that is not worth a write to the file of its own.
const aheadLeast = 16

// after notes that all is in the file that the journal had up to here: one more time comes when half of
// the rest is full.
func (a *ahead) after(at, size int64) {
	if a.next = at + (size-at)/2; size-at < size/aheadLeast {
		a.next = math.MaxInt64
	}
}

// goAhead begins to bring what is recent into the file, when there is enough of it.
func (s *Store) goAhead() {
	a := &s.ahead
	if a.over != nil || s.short || s.journal.failed || s.journal.at == 0 || s.journal.at < a.next {
		return
	}
	a.after(s.journal.at, s.journal.size)
	s.below.end() // the file may be about to be mapped anew
	s.mu.Lock()
	for session, e := range s.recent.all() {
		a.brought = append(a.brought, brought{session, *e})
		e.below = true // from now on the file is to be told when it is removed
	}
	s.mu.Unlock()
	a.over = make(chan struct{})
	s.running.Go(func() {
		a.err = s.bringAhead()
		close(a.over)
		_ = s.do(context.Background(), func(*batch) error { return nil }) // nobody else may come to forget it
	})
}

// bringAhead has in the file what is to go there. A frame that is lost must not be followed by
// what it had: all of them are on the disk before.
func (s *Store) bringAhead() error {
	if s.relaxed {
		if err := s.journal.sync(); err != nil {
			return err
		}
	}
	return s.change(func(tx *bolt.Tx) error {
		return bring(tx.Bucket(bucketName), func(yield func(string, *recentEntry) bool) {
			for i := range s.ahead.brought {
				if b := &s.ahead.brought[i]; !yield(b.session, &b.recentEntry) {
					return
				}
			}
		})
	})
}

// catchUp forgets what has been brought into the file, for which it waits if it is to.
func (s *Store) catchUp(wait bool) {
	a := &s.ahead
	if a.over == nil {
		return
	}
	if !wait {
		select {
		case <-a.over:
		default:
			return
		}
	}
	<-a.over
	a.over = nil
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range a.brought {
		if b := &a.brought[i]; a.err == nil {
			s.recent.forget(b.at(b.session), b.raw)
		}
	}
	a.brought = nil
}
