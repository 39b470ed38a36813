package boltstore

import (
	"slices"

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
	below  *below
	recent recent
	done   []done // in order
	toFile bool   // the journal is not enough
	frees  bool   // it makes room
	err    error  // of looking at the file
}

// done is a change of recent, with what was there before.
type done struct {
	at     store.Address
	raw    []byte
	before entry
	had    bool
}

// file calls look with what the file has.
func (b *batch) file(look func(*bolt.Bucket)) {
	var of *bolt.Bucket
	if b.err == nil {
		of, b.err = b.below.records()
	}
	if b.err == nil {
		look(of)
	}
}

// below is what the file has, as the writer looks at it: in one transaction for as long as
// it writes nothing there. To begin one for each commit costs more than to look.
type below struct {
	db *bolt.DB
	tx *bolt.Tx // nil until it is looked at
	of *bolt.Bucket
}

func (f *below) records() (*bolt.Bucket, error) {
	if f.tx != nil {
		return f.of, nil
	}
	tx, err := f.db.Begin(false)
	if err != nil {
		return nil, err
	}
	f.tx, f.of = tx, tx.Bucket(bucketName)
	return f.of, nil
}

// end lets go of the file: nothing can be written to it before.
func (f *below) end() {
	if f.tx != nil {
		_ = f.tx.Rollback()
		f.tx, f.of = nil, nil
	}
}

// get returns what there is at an address.
func (b *batch) get(at store.Address) entry {
	e, ok := b.recent.get(at)
	if !ok {
		b.file(func(of *bolt.Bucket) { e.raw = of.Get(keyOf(at)) })
		e.below = e.raw != nil
	}
	return e
}

// put changes what get has returned for an address; nil removes it.
func (b *batch) put(at store.Address, was entry, raw []byte) {
	before, had := b.recent.get(at)
	b.done = append(b.done, done{at, raw, before, had})
	if raw == nil && !was.below {
		b.recent.drop(at) // the file never gets to know of it
		return
	}
	b.recent.set(at, entry{raw, was.below})
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
