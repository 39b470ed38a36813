package boltstore

import (
	"bytes"
	"runtime/debug"
	"slices"
	"time"

	"github.com/mcpbridge/bridge/sessions/store"
	bolt "go.etcd.io/bbolt"
)

// recent is what the journal has and the file has not yet: by session, then by kind and
// id. The journal's size bounds it.
type recent map[string]map[string]entry

type entry struct {
	raw   []byte // as the file will have it; nil: removed
	below bool   // the file has one of this address
}

func inSession(at store.Address) string { return string(at.Kind) + at.ID }

func nameOf(session, inSession string) store.Address {
	return store.Address{Session: session, Kind: store.Kind(inSession[0]), ID: inSession[1:]}
}

func (r recent) get(at store.Address) (entry, bool) {
	e, ok := r[at.Session][inSession(at)]
	return e, ok
}

func (r recent) has(at store.Address) bool {
	_, ok := r.get(at)
	return ok
}

func (r recent) set(at store.Address, e entry) {
	of := r[at.Session]
	if of == nil {
		of = map[string]entry{}
		r[at.Session] = of
	}
	of[inSession(at)] = e
}

func (r recent) drop(at store.Address) {
	of := r[at.Session]
	delete(of, inSession(at))
	if len(of) == 0 {
		delete(r, at.Session)
	}
}

// batch is what requests that share a write look at and change.
type batch struct {
	below  *bolt.Bucket
	recent recent
	done   []done // in order
	toFile bool   // the journal is not enough
}

// done is a change of recent, with what was there before.
type done struct {
	at     store.Address
	raw    []byte
	before entry
	had    bool
}

// get returns what there is at an address, nil for nothing.
func (b *batch) get(at store.Address) []byte {
	if e, ok := b.recent.get(at); ok {
		return e.raw
	}
	return b.below.Get(keyOf(at))
}

// put changes what there is at an address; nil removes it.
func (b *batch) put(at store.Address, raw []byte) {
	before, had := b.recent.get(at)
	b.done = append(b.done, done{at, raw, before, had})
	below := before.below
	if !had {
		below = b.below.Get(keyOf(at)) != nil // again, which costs little: its pages are at hand
	}
	if raw == nil && !below {
		b.recent.drop(at) // the file never gets to know of it
		return
	}
	b.recent.set(at, entry{raw, below})
}

// takeBack undoes all that was done.
func (b *batch) takeBack() {
	for _, d := range slices.Backward(b.done) {
		if d.had {
			b.recent.set(d.at, d.before)
		} else {
			b.recent.drop(d.at)
		}
	}
}

// commit carries out requests with one write. One that doesn't apply changes nothing and
// leaves the others alone.
func (s *Store) commit(requests []*request) {
	b := &batch{recent: s.recent}
	err := s.look()
	if err == nil {
		err = s.apply(b, requests)
	}
	if err == nil {
		err = s.keep(b)
	}
	if err != nil {
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

func (s *Store) apply(b *batch, requests []*request) error {
	return s.view(func(below *bolt.Bucket) {
		s.mu.Lock()
		defer s.mu.Unlock()
		b.below = below
		for _, r := range requests {
			r.err = r.apply(b)
		}
	})
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

// settle brings all that is recent into the file, and begins the journal anew.
func (s *Store) settle(state byte) error {
	now := time.Now()
	at := make([]store.Address, 0, len(s.recent))
	for session, of := range s.recent {
		for name := range of {
			at = append(at, nameOf(session, name))
		}
	}
	slices.SortFunc(at, func(a, b store.Address) int { return bytes.Compare(keyOf(a), keyOf(b)) })
	generation := newGeneration()
	err := s.update(func(tx *bolt.Tx) error {
		b := tx.Bucket(bucketName)
		for _, at := range at {
			if err := s.bring(b, at, now); err != nil {
				return err
			}
		}
		return tx.Bucket(journalBucket).Put(journalKey, mark(state, generation, s.journal.size))
	})
	if err != nil {
		return err
	}
	s.mu.Lock()
	clear(s.recent)
	s.mu.Unlock()
	s.journal.begin(generation)
	return nil
}

// bring makes the file's record that which is recent.
func (s *Store) bring(b *bolt.Bucket, at store.Address, now time.Time) error {
	e, _ := s.recent.get(at)
	if _, _, _, ok := decode(e.raw, now); ok {
		return b.Put(keyOf(at), e.raw)
	}
	if e.below {
		return b.Delete(keyOf(at))
	}
	return nil
}

// update looks at the file first: when a transaction fails the engine reads all of it,
// on a goroutine whose panics nobody can catch.
func (s *Store) update(change func(*bolt.Tx) error) (err error) {
	if err := wanting(s.db); err != nil {
		return plain(err)
	}
	defer guard(&err)
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	return plain(s.db.Update(change))
}
