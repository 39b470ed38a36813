package boltstore

import (
	"bytes"
	"context"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/mcpbridge/bridge/sessions/store"
	bolt "go.etcd.io/bbolt"
)

// queue is what waits for the writer.
type queue struct {
	mu      sync.Mutex
	waiting []*request
	writing bool
	closed  bool
}

// request is a change that waits for the writer.
type request struct {
	apply func(*batch) error // changes nothing when it fails
	err   error              // may be read when done is closed
	done  chan struct{}
}

// maxBatch bounds how many requests share a write.
const maxBatch = 1024

// do has a change carried out: here and now where that waits for no disk and nobody else
// writes, otherwise on the goroutine that does.
func (s *Store) do(ctx context.Context, apply func(*batch) error) error {
	if err := s.usable(ctx); err != nil {
		return err
	}
	r := &request{apply: apply, done: make(chan struct{})}
	q := &s.queue
	q.mu.Lock()
	if q.closed {
		q.mu.Unlock()
		return store.ErrClosed
	}
	q.waiting = append(q.waiting, r)
	mine := !q.writing
	q.writing = true
	if mine {
		s.running.Add(1)
	}
	q.mu.Unlock()
	if mine {
		s.begin()
	}
	select {
	case <-r.done: // by now, as a rule, where that waits for no disk
		return r.err
	default:
	}
	select {
	case <-r.done:
		return r.err
	case <-ctx.Done():
	}
	// It may be that the process was paused, and that nothing is wrong.
	late := time.NewTimer(outcomePatience)
	defer late.Stop()
	select {
	case <-r.done:
		return r.err
	case <-late.C:
		return ctx.Err()
	}
}

// outcomePatience is how long a change that was begun is waited for when its time is up:
// otherwise nobody knows whether it was made.
const outcomePatience = time.Second

// begin has what waits written; the caller has counted it as running.
func (s *Store) begin() {
	if s.relaxed && !s.writeOnce() {
		s.running.Done()
		return
	}
	go func() {
		defer s.running.Done()
		s.write()
	}()
}

// gather is how long the writer waits for more to share a write that waits for the disk,
// when some wait already: those who are alone wait for nobody.
const gather = 200 * time.Microsecond

// write carries out what waits until nothing does.
func (s *Store) write() {
	for s.writeOnce() {
		if !s.relaxed {
			time.Sleep(gather)
		}
	}
}

// writeOnce carries out what waits, and reports whether it is to go on.
func (s *Store) writeOnce() bool {
	q := &s.queue
	q.mu.Lock()
	requests := q.waiting
	q.waiting = nil
	if len(requests) > maxBatch {
		requests, q.waiting = requests[:maxBatch:maxBatch], requests[maxBatch:]
	}
	q.mu.Unlock()
	s.commit(requests)
	q.mu.Lock()
	defer q.mu.Unlock()
	q.writing = len(q.waiting) > 0
	return q.writing
}

// commit carries out requests with one write. One that doesn't apply changes nothing and
// leaves the others alone.
func (s *Store) commit(requests []*request) {
	b := &batch{below: &s.below, recent: s.recent}
	err := s.look()
	if err == nil {
		err = s.apply(b, requests)
	}
	switch {
	case err != nil:
	case b.frees && s.short:
		err = s.makeRoom(b)
	default:
		err = s.keep(b)
	}
	if err != nil {
		s.below.end()
		s.mu.Lock()
		b.takeBack()
		s.mu.Unlock()
	}
	for _, r := range requests {
		if err != nil {
			r.err = plain(err)
		}
		close(r.done)
	}
}

// lookEvery is how often the writer looks whether the file is whole.
const lookEvery = 100 * time.Millisecond

// look reports that the file is damaged: what the journal takes now would be lost with it.
func (s *Store) look() error {
	now := time.Now()
	if now.Sub(s.looked) < lookEvery && !s.damaged.Load() {
		return nil
	}
	if err := wanting(s.db); err != nil {
		return err
	}
	s.looked = now
	s.damaged.Store(false)
	return nil
}

func (s *Store) apply(b *batch, requests []*request) (err error) {
	defer guard(&err)
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range requests {
		r.err = r.apply(b)
	}
	return b.err
}

// keep writes down what was done.
func (s *Store) keep(b *batch) error {
	switch {
	case b.toFile:
	case len(b.done) == 0:
		return nil
	case s.journal.write(b.done, !s.relaxed) == nil:
		return nil
	}
	return s.settle(s.state())
}

// makeRoom writes down what was done on a disk that may be full: what was removed makes room for
// all else that is recent.
func (s *Store) makeRoom(b *batch) error {
	kept := s.journal.write(b.done, !s.relaxed)
	err := s.remove(b.done)
	if err != nil && s.journal.spend() {
		err = s.remove(b.done)
	}
	if err == nil {
		err = s.settle(s.state())
	}
	if kept == nil {
		return nil
	}
	return err
}

// remove takes out of the file what was removed.
func (s *Store) remove(changes []done) error {
	return s.update(func(tx *bolt.Tx) error {
		b := tx.Bucket(bucketName)
		for i := range changes {
			if changes[i].raw == nil {
				if err := b.Delete(keyOf(changes[i].at)); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// settle brings all that is recent into the file, and begins the journal anew.
func (s *Store) settle(state byte) error {
	now := time.Now()
	all := make([]recentRecord, 0, len(s.recent))
	for session, of := range s.recent {
		for i := range of {
			all = append(all, recentRecord{keyOf(of[i].at(session)), of[i].entry})
		}
	}
	slices.SortFunc(all, func(a, b recentRecord) int { return bytes.Compare(a.key, b.key) })
	generation := newGeneration()
	err := s.update(func(tx *bolt.Tx) error {
		b := tx.Bucket(bucketName)
		for i := range all {
			if err := all[i].bring(b, now); err != nil {
				return err
			}
		}
		return tx.Bucket(journalBucket).Put(journalKey, mark(state, generation, s.journal.size))
	})
	if s.short = err != nil; s.short {
		return err
	}
	s.mu.Lock()
	clear(s.recent)
	s.mu.Unlock()
	s.journal.begin(generation)
	return nil
}

// recentRecord is what is recent of one address.
type recentRecord struct {
	key []byte // in the file
	entry
}

// bring makes the file's record that which is recent.
func (r *recentRecord) bring(b *bolt.Bucket, now time.Time) error {
	if _, _, _, ok := decode(r.raw, now); ok {
		return b.Put(r.key, r.raw)
	}
	if r.below {
		return b.Delete(r.key)
	}
	return nil
}

// update looks at the file first: when a transaction fails the engine reads all of it,
// on a goroutine whose panics nobody can catch.
func (s *Store) update(change func(*bolt.Tx) error) (err error) {
	s.below.end()
	if err := wanting(s.db); err != nil {
		return plain(err)
	}
	defer guard(&err)
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	return plain(s.db.Update(change))
}
