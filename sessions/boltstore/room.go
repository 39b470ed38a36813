package boltstore

import (
	"time"

	"github.com/mcpbridge/bridge/sessions/store"
	bolt "go.etcd.io/bbolt"
)

// makeRoom writes down what was done on a disk that may be full: what is freed makes room for all else that is
// recent. It is gone from the file for good then, also where that room is too little: of a session whose end
// fails a part may be left. All else is done as a whole or not at all. ends: nothing else was done, and the journal has room for that which
// needs none on the disk. What is recent may be nowhere else.
func (s *Store) makeRoom(b *batch, ends bool) error {
	limit := s.journal.size
	if ends {
		limit = s.journal.room
	}
	kept := s.journal.write(b.done, !s.relaxed, limit)
	err := s.free(b.done)
	if err != nil && s.journal.spend() {
		err = s.free(b.done)
	}
	switch {
	case kept == nil && err == nil:
		if s.settleWithRoom(s.state(), nil) != nil && s.little() && s.journal.spend() { // what was done is in the journal
			_ = s.settleWithRoom(s.state(), nil)
		}
		return nil
	case kept == nil:
		return nil
	case err == nil:
		err = s.settleWithRoom(s.state(), b.done)
	}
	return err
}

// little reports whether what is recent leaves most of the reserve to those who make more room.
func (s *Store) little() bool {
	bytes := int64(0)
	for _, e := range s.recent.all() {
		bytes += int64(len(e.raw))
	}
	return bytes < s.journal.size/16
}

// free takes out of the file what was freed.
func (s *Store) free(changes []done) error {
	return s.update(func(tx *bolt.Tx) error {
		b := tx.Bucket(bucketName)
		for i := range changes {
			if changes[i].frees {
				if err := remove(b, keyOf(changes[i].at)); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// settleWithRoom is settle where all that is recent is in the journal, but for these changes. Where the disk is full there is room once
// what was removed has left the file; that is on the disk then, and what a relaxed journal has need not be: without a sync before it a
// commit would be there by half after a crash of the machine.
func (s *Store) settleWithRoom(state byte, but []done) error {
	err := s.settle(state)
	if err == nil {
		return nil
	}
	fresh := make(map[store.Address]bool, len(but))
	for i := range but {
		fresh[but[i].at] = true
	}
	if s.journal.sync() != nil || s.bringRemoved(fresh) != nil {
		return err
	}
	return s.settle(state)
}

// bringRemoved takes out of the file what was removed, but for what is fresh, and forgets it.
func (s *Store) bringRemoved(fresh map[store.Address]bool) error {
	now := time.Now()
	var gone []brought
	err := s.update(func(tx *bolt.Tx) error {
		b := tx.Bucket(bucketName)
		for session, e := range s.recent.all() {
			at := e.at(session)
			if e.raw != nil || fresh[at] {
				continue
			}
			if err := e.bring(b, session, now); err != nil {
				return err
			}
			gone = append(gone, brought{session, *e})
		}
		return nil
	})
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.recent.forget(gone)
	return nil
}
