package boltstore

import (
	"bytes"
	"math"
	"runtime/debug"
	"time"

	"github.com/mcpbridge/bridge/sessions/store"
	bolt "go.etcd.io/bbolt"
)

// The engine has a page of the file, and all that hangs on it, in memory several times until its transaction is made. A value
// that is longer than a page hangs on one with up to three others, and all of them are written
// anew when a small one beside them changes: what a hundred sessions change may be all of a file that is larger
// than the memory. So what the journal has goes into the file in parts, of which each can be done for itself:
// after a crash between two the journal still has it all.

const (
	mostTouched = 8 << 20 // bytes of long values that one part writes anew, but for the last record's
	longValue   = 4 << 10 // from which on one hangs on its page
	beside      = 4       // how many records on either side may be written anew with one
)

// settleInParts is settle where all that is recent is in the journal, but for these changes: what they leave comes last, as a whole. A part
// is on the disk once it is in the file, and what a relaxed journal has need not be: without a sync before it a commit would
// be there by half after a crash of the machine.
func (s *Store) settleInParts(state byte, but []done) error {
	fresh := make(map[store.Address]bool, len(but))
	for i := range but {
		fresh[but[i].at] = true
	}
	err := s.bringAll(state, fresh)
	if err == nil {
		return nil
	}
	s.short = true
	// Where the disk is full there is room once what was removed has left the file.
	if s.journal.sync() != nil || s.bring(math.MaxInt, func(at store.Address, e *recentEntry) bool { return e.raw == nil && !fresh[at] }) != nil {
		return err
	}
	return s.bringAll(state, fresh)
}

// bringAll brings all that is recent into the file, in parts and what is fresh at the end, and begins the journal anew.
func (s *Store) bringAll(state byte, fresh map[store.Address]bool) error {
	parts, err := s.parts(fresh)
	if len(parts) > 0 && s.journal.sync() != nil {
		parts = nil
	}
	for _, entries := range parts {
		if err == nil {
			err = s.bring(entries, func(at store.Address, _ *recentEntry) bool { return !fresh[at] })
		}
		s.giveBack()
	}
	if err == nil {
		err = s.settle(state)
	}
	return err
}

// bring brings the first of the recent entries that are meant into the file, at most so many, and forgets them.
func (s *Store) bring(most int, meant func(store.Address, *recentEntry) bool) error {
	now := time.Now()
	var brought []store.Address
	err := s.update(func(tx *bolt.Tx) error {
		b := tx.Bucket(bucketName)
		for session, e := range s.recent.all() {
			if len(brought) == most {
				break
			}
			at := e.at(session)
			if !meant(at, e) {
				continue
			}
			if err := e.bring(b, session, now); err != nil {
				return err
			}
			brought = append(brought, at)
		}
		return nil
	})
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, at := range brought {
		s.recent.drop(at)
	}
	return nil
}

// parts returns of how many entries the parts are, in order, but for the last one, which has what is fresh, too.
func (s *Store) parts(fresh map[store.Address]bool) (entries []int, err error) {
	s.below.end()
	if err := wanting(s.db); err != nil {
		return nil, plain(err)
	}
	defer guard(&err)
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	of, err := s.below.records()
	if err != nil {
		return nil, plain(err)
	}
	t, n := touched{cursor: of.Cursor()}, 0
	for session, e := range s.recent.all() {
		at := e.at(session)
		if fresh[at] {
			continue
		}
		if t.bytes > mostTouched {
			entries = append(entries, n)
			n, t.bytes = 0, 0
		}
		n++
		t.add(keyOf(at), len(e.raw))
	}
	return entries, nil
}

// touched adds up the long values that are written anew with records, which come in order.
type touched struct {
	cursor *bolt.Cursor
	last   []byte // up to which key they were counted
	bytes  int
}

// add adds those beside a key, and the new value itself.
func (t *touched) add(key []byte, size int) {
	end := key
	t.cursor.Seek(key) // the record itself, or the one behind it
	t.count(key, size)
	for range beside {
		at, raw := t.cursor.Prev()
		if at == nil {
			break
		}
		t.count(at, len(raw))
	}
	at, raw := t.cursor.Seek(key)
	for range beside {
		if at == nil {
			break
		}
		if !bytes.Equal(at, key) {
			t.count(at, len(raw))
		}
		end = at
		at, raw = t.cursor.Next()
	}
	t.last = end
}

func (t *touched) count(key []byte, size int) {
	if size >= longValue && bytes.Compare(key, t.last) > 0 {
		t.bytes += size
	}
}
