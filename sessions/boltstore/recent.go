package boltstore

import (
	"bytes"
	"cmp"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"
	"unsafe"

	"github.com/mcpbridge/bridge/sessions/store"
	bolt "go.etcd.io/bbolt"
)

// recent is what the journal has and the file has not yet, as far as it is known: by session, there in the order of
// kind and id. The journal's size bounds it.
type recent map[string][]recentEntry

type entry struct {
	raw   []byte // as the file will have it; nil: removed
	below bool   // the file has one of this address
}

type recentEntry struct {
	kind store.Kind
	id   string
	entry
}

func (e *recentEntry) at(session string) store.Address {
	return store.Address{Session: session, Kind: e.kind, ID: e.id}
}

// records adds what there is of a session: in the file, and recently.
func (r recent) records(b *bolt.Bucket, session string, add func(at store.Address, raw []byte)) {
	for key, raw := range within(b, session) {
		if at := addressOf(key); !r.has(at) {
			add(at, raw)
		}
	}
	for _, e := range r[session] {
		add(e.at(session), e.raw)
	}
}

// compare orders the entries of a session.
func (e *recentEntry) compare(kind store.Kind, id string) int {
	if e.kind != kind {
		return cmp.Compare(e.kind, kind)
	}
	return cmp.Compare(e.id, id)
}

// find returns where in its session an address is, or would be. It is spelled out: with a
// function to call each address would be memory of its own.
func (r recent) find(at store.Address) (of []recentEntry, i int, found bool) {
	of = r[at.Session]
	i, end := 0, len(of)
	for i < end {
		middle := int(uint(i+end) >> 1)
		if of[middle].compare(at.Kind, at.ID) < 0 {
			i = middle + 1
		} else {
			end = middle
		}
	}
	return of, i, i < len(of) && of[i].compare(at.Kind, at.ID) == 0
}

func (r recent) get(at store.Address) (entry, bool) {
	if of, i, found := r.find(at); found {
		return of[i].entry, true
	}
	return entry{}, false
}

// all returns the entries, and whose they are, in the order of the file.
func (r recent) all() iter.Seq2[string, *recentEntry] {
	return func(yield func(string, *recentEntry) bool) {
		for _, session := range r.inOrder() {
			of := r[session]
			for i := range of {
				if !yield(session, &of[i]) {
					return
				}
			}
		}
	}
}

// inOrder returns the sessions as the file has them: a key begins with the length of the name.
func (r recent) inOrder() []string {
	names := slices.AppendSeq(make([]string, 0, len(r)), maps.Keys(r))
	slices.SortFunc(names, compareSessions)
	return names
}

func compareSessions(a, b string) int {
	return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b))
}

func (r recent) has(at store.Address) bool {
	_, ok := r.get(at)
	return ok
}

func (r recent) set(at store.Address, e entry) {
	of, i, found := r.find(at)
	if found {
		of[i].entry = e
		return
	}
	r[at.Session] = slices.Insert(of, i, recentEntry{at.Kind, at.ID, e})
}

func (r recent) drop(at store.Address) {
	of, i, found := r.find(at)
	switch {
	case !found:
	case len(of) == 1:
		delete(r, at.Session)
	default:
		r[at.Session] = slices.Delete(of, i, i+1)
	}
}

// brought is what was brought into the file.
type brought struct {
	session string
	recentEntry
}

// forget drops what was brought into the file, unless something else has taken its place. It is in order.
func (r recent) forget(list []brought) {
	for len(list) > 0 {
		session := list[0].session
		others := slices.IndexFunc(list, func(b brought) bool { return b.session != session })
		if others < 0 {
			others = len(list)
		}
		if left := without(r[session], list[:others]); len(left) > 0 {
			r[session] = left
		} else {
			delete(r, session)
		}
		list = list[others:]
	}
}

// without returns the entries of a session that were not brought.
func without(of []recentEntry, list []brought) []recentEntry {
	return slices.DeleteFunc(of, func(e recentEntry) bool {
		for len(list) > 0 && list[0].compare(e.kind, e.id) < 0 {
			list = list[1:]
		}
		return len(list) > 0 && list[0].compare(e.kind, e.id) == 0 && unsafe.SliceData(list[0].raw) == unsafe.SliceData(e.raw)
	})
}

// batch is what requests that share a write look at and change.
type batch struct {
	below  *below
	recent recent
	done   []done // in order
	toFile bool   // the journal is not enough
	tells  bool   // the journal is to say what is on the disk, also without a change
	err    error  // of looking at the file
}

// done is a change of recent, with what was there before.
type done struct {
	at     store.Address
	raw    []byte
	before entry
	had    bool
	frees  bool // it removes what nobody wants, and may be made without the rest
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
	db  *bolt.DB
	tx  *bolt.Tx // nil until it is looked at
	of  *bolt.Bucket
	at  *bolt.Cursor // in of; to make one for each look costs more than the look
	key []byte       // that is looked for; used again
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
	f.at = f.of.Cursor()
	return f.of, nil
}

// get returns what the file has at an address, nil for nothing. It must have been looked at.
func (f *below) get(at store.Address) []byte {
	f.key = appendKey(f.key[:0], at)
	if key, raw := f.at.Seek(f.key); bytes.Equal(key, f.key) {
		return raw
	}
	return nil
}

// end lets go of the file: nothing can be written to it before.
func (f *below) end() {
	if f.tx != nil {
		_ = f.tx.Rollback()
		f.tx, f.of, f.at = nil, nil, nil
	}
}

// get returns what there is at an address, of what lies in pieces in the file the head.
func (b *batch) get(at store.Address) entry {
	e, ok := b.recent.get(at)
	if !ok {
		b.file(func(*bolt.Bucket) { e.raw = b.below.get(at) })
		e.below = e.raw != nil
	}
	return e
}

// whole is get for who wants the value.
func (b *batch) whole(at store.Address) entry {
	e := b.get(at)
	if _, _, ok := isInPieces(e.raw); ok {
		b.file(func(of *bolt.Bucket) { e.raw = whole(of, keyOf(at), e.raw) })
	}
	return e
}

// lifeOf returns how long a session's own record lives that is to live for so long, or as long as the others.
func (b *batch) lifeOf(session string, life time.Duration, now time.Time) time.Duration {
	b.file(func(of *bolt.Bucket) {
		b.recent.records(of, session, func(at store.Address, raw []byte) {
			if _, left, _, ok := decode(raw, now); ok && at.Kind != store.Session {
				life = max(life, left)
			}
		})
	})
	return life
}

// put changes what get has returned for an address; nil removes it.
func (b *batch) put(at store.Address, was entry, raw []byte) {
	before, had := b.recent.get(at)
	b.done = append(b.done, done{at: at, raw: raw, before: before, had: had})
	if raw == nil && !was.below {
		b.recent.drop(at) // the file never gets to know of it
		return
	}
	b.recent.set(at, entry{raw, was.below})
}

// free removes what get has returned for an address, of a session that is ended or of a record that has expired:
// that makes room, for what else is done.
func (b *batch) free(at store.Address, was entry) {
	b.put(at, was, nil)
	b.done[len(b.done)-1].frees = true
}

// takeBack undoes all that was done, of which nothing is left then.
func (b *batch) takeBack() {
	for _, d := range slices.Backward(b.done) {
		if d.had {
			b.recent.set(d.at, d.before)
		} else {
			b.recent.drop(d.at)
		}
	}
	clear(b.done)
	b.done = b.done[:0]
}
