package boltstore

import (
	"context"
	"iter"
	"runtime"
	"runtime/debug"
	"slices"
	"time"

	"github.com/mcpbridge/bridge/sessions/store"
	bolt "go.etcd.io/bbolt"
)

// do has a change carried out: here and now where that waits for no disk and nobody else
// writes, otherwise on the goroutine that does.
func (s *Store) do(ctx context.Context, apply func(*batch) error) error {
	return s.give(ctx, &request{apply: apply})
}

// give has a request carried out.
func (s *Store) give(ctx context.Context, r *request) error {
	if err := s.usable(ctx); err != nil {
		return err
	}
	q := &s.queue
	q.mu.Lock()
	if q.closed {
		q.mu.Unlock()
		return store.ErrClosed
	}
	mine := !q.writing
	if mine {
		q.writing = true
		s.running.Add(1)
	}
	own := mine && s.relaxed
	if !own {
		r.done = make(chan struct{})
	}
	q.waiting = append(q.waiting, r)
	q.mu.Unlock()
	switch {
	case own:
		s.writeOwn()
		return r.err
	case mine:
		go s.write()
	}
	return r.wait(ctx)
}

// wait returns what became of a request that the writer has.
func (r *request) wait(ctx context.Context) error {
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

// writeOwn carries out the change of the goroutine that it is called on, and what others bring by
// then; what comes meanwhile is left to a goroutine of its own.
func (s *Store) writeOwn() {
	runtime.Gosched()
	s.commit(s.next())
	if s.goOn() {
		go s.write()
	} else {
		s.running.Done()
	}
}

// gather is how long the writer waits for more to share a write that waits for the disk,
// when some wait already: those who are alone wait for nobody. Where none waits for the disk it
// lets those go first who are ready to run, which costs nobody anything who is alone, either: on a
// busy machine a write is for several, and it is most of what a change costs.
const gather = 200 * time.Microsecond

// write carries out what waits until nothing does.
func (s *Store) write() {
	defer s.running.Done()
	for {
		s.commit(s.next())
		if !s.goOn() {
			return
		}
		if s.relaxed {
			runtime.Gosched()
		} else {
			time.Sleep(gather)
		}
	}
}

// commit carries out requests, which share a write unless the file takes nothing: then ends have room of their own.
func (s *Store) commit(requests []*request) {
	if !s.short {
		err := s.carryOut(requests, false)
		if err == nil || !s.short {
			answer(requests, err)
			return
		}
	}
	var ends, others []*request
	left := sessionsOf{}
	for _, r := range requests {
		if r.ends && !left.have(r) {
			ends = append(ends, r)
			continue
		}
		others = append(others, r)
		left.add(r)
	}
	if len(ends) > 0 {
		answer(ends, s.carryOut(ends, true))
	}
	if len(others) > 0 {
		answer(others, s.carryOut(others, false))
	}
}

// carryOut carries out requests with one write. One that doesn't apply changes nothing and
// leaves the others alone. ends: they are all that they do. After an error nothing was done.
func (s *Store) carryOut(requests []*request, ends bool) error {
	s.catchUp(false)
	b := &s.batch
	*b = batch{below: &s.below, recent: s.recent, done: b.done[:0]}
	err := s.look()
	if err == nil {
		err = s.apply(b, requests)
	}
	switch {
	case err != nil:
	case s.short && slices.ContainsFunc(b.done, func(d done) bool { return d.frees }):
		err = s.makeRoom(b, ends)
	default:
		err = s.keep(b, requests)
	}
	if err != nil {
		s.below.end()
		s.mu.Lock()
		b.takeBack()
		s.mu.Unlock()
	}
	clear(b.done) // it is to keep nothing alive
	if cap(b.done) > maxBatch {
		b.done = nil
	}
	if err == nil {
		s.goAhead()
	}
	return err
}

// answer tells those who wait what became of their requests, together.
func answer(requests []*request, err error) {
	for _, r := range requests {
		if err != nil {
			r.err = plain(err)
		}
		if r.done != nil {
			close(r.done)
		}
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
	if s.ahead.over != nil { // it may be about to map the file anew, for which it waits until nobody looks at it
		s.below.end()
	}
	return b.err
}

// keep writes down what was done. When the journal is full all that it has goes into the file, and what was
// done is done anew: it goes to the journal then, too.
func (s *Store) keep(b *batch, requests []*request) error {
	switch {
	case !b.toFile && len(b.done) == 0:
		if b.tells {
			_ = s.journal.write(nil, false, s.journal.size) // there is no need for it
		}
		return nil
	case !b.toFile && s.journal.write(b.done, !s.relaxed, s.journal.size) == nil:
		return nil
	case s.journal.at == 0: // nothing else is recent
		return s.settle(s.state())
	}
	s.mu.Lock()
	b.takeBack()
	s.mu.Unlock()
	if err := s.settleWithRoom(s.state(), nil); err != nil {
		return err
	}
	if err := s.apply(b, requests); err != nil {
		return err
	}
	if len(b.done) == 0 || s.journal.write(b.done, !s.relaxed, s.journal.size) == nil {
		return nil
	}
	return s.settle(s.state())
}

// settle brings all that is recent into the file, as a whole or not at all, and begins the journal anew.
func (s *Store) settle(state byte) error {
	generation := generationOf(s.journal.number + 1)
	err := s.update(func(tx *bolt.Tx) error {
		b := tx.Bucket(bucketName)
		if err := bring(b, s.recent.all()); err != nil {
			return err
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
	s.ahead.after(0, s.journal.size)
	s.giveBack()
	return nil
}

// bring makes the file's records those that are recent.
func bring(b *bolt.Bucket, entries iter.Seq2[string, *recentEntry]) error {
	now := time.Now()
	for session, e := range entries {
		if err := e.bring(b, session, now); err != nil {
			return err
		}
	}
	return nil
}

// bring makes the file's record that which is recent.
func (e *recentEntry) bring(b *bolt.Bucket, session string, now time.Time) error {
	if _, _, _, ok := decode(e.raw, now); ok {
		return write(b, keyOf(e.at(session)), e.raw)
	}
	if e.below {
		return remove(b, keyOf(e.at(session)))
	}
	return nil
}

// update changes the file, behind what is on its way there.
func (s *Store) update(change func(*bolt.Tx) error) error {
	s.below.end()
	s.catchUp(true)
	return s.change(change)
}

// change looks at the file first: when a transaction fails the engine reads all of it,
// on a goroutine whose panics nobody can catch.
func (s *Store) change(change func(*bolt.Tx) error) (err error) {
	if err := wanting(s.db); err != nil {
		return plain(err)
	}
	defer guard(&err)
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	return plain(s.db.Update(change))
}
