package boltstore

import (
	"cmp"
	"context"
	"math"
	"slices"

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

// aheadLeast is how many times the journal is as large as what is not worth a write to the file of its own.
const aheadLeast = 16

// after notes that all is in the file that the journal had up to here: one more time comes when half of
// the rest is full.
func (a *ahead) after(at, size int64) {
	a.next = at + (size-at)/2
	if size-at < size/aheadLeast {
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
	for session, of := range s.recent {
		for i := range of {
			a.brought = append(a.brought, brought{session, of[i]})
			of[i].below = true // from now on the file is to be told when it is removed
		}
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
// what it had: all of them are on the disk before. After an error all of it is recent still, and
// goes there when the journal is full, where an error shows.
func (s *Store) bringAhead() error {
	if s.relaxed {
		if err := s.journal.sync(); err != nil {
			return err
		}
	}
	slices.SortFunc(s.ahead.brought, func(a, b brought) int {
		return cmp.Or(compareSessions(a.session, b.session), a.compare(b.kind, b.id))
	})
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
	select {
	case <-a.over:
	default:
		if !wait {
			return
		}
		<-a.over
	}
	if a.err == nil {
		s.mu.Lock()
		s.recent.forget(a.brought)
		s.mu.Unlock()
	}
	a.over, a.brought = nil, nil
}
