package boltstore

import (
	"bytes"
	"context"
	"slices"
	"time"

	"github.com/mcpbridge/bridge/sessions/store"
	bolt "go.etcd.io/bbolt"
)

// Commit implements store.Store.
func (s *Store) Commit(ctx context.Context, session string, changes ...store.Change) error {
	if err := store.Check(session, changes); err != nil {
		return err
	}
	return s.do(ctx, func(b *bolt.Bucket) error {
		now := time.Now()
		versions := make([]uint64, len(changes))
		for i, c := range changes {
			at := store.Address{Session: session, Kind: c.Kind, ID: c.ID}
			if version, _, _, ok := decode(b.Get(keyOf(at)), now); ok {
				versions[i] = version
			}
			if c.Replaces != store.Any && c.Replaces != versions[i] {
				return &store.ConflictError{Address: at}
			}
		}
		for i, c := range changes {
			if err := change(b, session, c, versions[i]+1, now); err != nil {
				return err
			}
		}
		return nil
	})
}

// change makes one change that applies.
func change(b *bolt.Bucket, session string, c store.Change, version uint64, now time.Time) error {
	key := keyOf(store.Address{Session: session, Kind: c.Kind, ID: c.ID})
	if c.Delete {
		return b.Delete(key)
	}
	return b.Put(key, encode(version, now.Add(c.TTL), c.Value))
}

// Get implements store.Store.
func (s *Store) Get(ctx context.Context, at store.Address) (store.Record, error) {
	if err := s.usable(ctx); err != nil {
		return store.Record{}, err
	}
	var r store.Record
	found := false
	err := s.view(func(b *bolt.Bucket) { r, found = record(at, b.Get(keyOf(at)), time.Now()) })
	if err == nil && !found {
		err = store.ErrNotFound
	}
	return r, err
}

// record returns a copy of a record; ok is false when there is none, or no longer.
func record(at store.Address, raw []byte, now time.Time) (r store.Record, ok bool) {
	version, ttl, value, ok := decode(raw, now)
	return store.Record{Address: at, Version: version, TTL: ttl, Value: bytes.Clone(value)}, ok
}

// Load implements store.Store.
func (s *Store) Load(ctx context.Context, session string) ([]store.Record, error) {
	if err := s.usable(ctx); err != nil {
		return nil, err
	}
	var list []store.Record
	err := s.view(func(b *bolt.Bucket) {
		now := time.Now()
		prefix := prefixOf(session)
		c := b.Cursor()
		for key, raw := c.Seek(prefix); bytes.HasPrefix(key, prefix); key, raw = c.Next() {
			if r, ok := record(addressOf(key), raw, now); ok {
				list = append(list, r)
			}
		}
	})
	return list, err
}

// Touch implements store.Store.
func (s *Store) Touch(ctx context.Context, touches ...store.Touch) error {
	return s.do(ctx, func(b *bolt.Bucket) error {
		now := time.Now()
		for _, touch := range touches {
			key := keyOf(store.Address{Session: touch.Session, Kind: store.Session})
			version, _, value, ok := decode(b.Get(key), now)
			if !ok {
				continue
			}
			if err := b.Put(key, encode(version, now.Add(touch.TTL), value)); err != nil {
				return err
			}
		}
		return nil
	})
}

// End implements store.Store.
func (s *Store) End(ctx context.Context, session string) error {
	return s.do(ctx, func(b *bolt.Bucket) error {
		prefix := prefixOf(session)
		var keys [][]byte // a cursor is not to be used after a deletion
		c := b.Cursor()
		for key, _ := c.Seek(prefix); bytes.HasPrefix(key, prefix); key, _ = c.Next() {
			keys = append(keys, bytes.Clone(key))
		}
		return remove(b, keys)
	})
}

func remove(b *bolt.Bucket, keys [][]byte) error {
	for _, key := range keys {
		if err := b.Delete(key); err != nil {
			return err
		}
	}
	return nil
}

// List implements store.Store.
func (s *Store) List(ctx context.Context, after string, limit int) (store.Page, error) {
	if err := s.usable(ctx); err != nil {
		return store.Page{}, err
	}
	var page store.Page
	err := s.view(func(b *bolt.Bucket) {
		now := time.Now()
		c := b.Cursor()
		last := ""
		for key, raw := seekAfter(c, after); key != nil; key, raw = c.Next() {
			at := addressOf(key)
			if at.Session != last && len(page.Records) >= limit {
				page.Next = last
				return
			}
			last = at.Session
			if version, ttl, _, ok := decode(raw, now); ok {
				page.Records = append(page.Records, store.Record{Address: at, Version: version, TTL: ttl})
			}
		}
	})
	return page, err
}

// seekAfter moves to the first record behind a session's; "" is before all.
func seekAfter(c *bolt.Cursor, session string) (key, raw []byte) {
	if session == "" {
		return c.First()
	}
	prefix := prefixOf(session)
	for key, raw = c.Seek(prefix); bytes.HasPrefix(key, prefix); key, raw = c.Next() {
	}
	return key, raw
}

// Watch implements store.Store: the file is locked, so that nobody else has it.
func (s *Store) Watch(func(string)) bool { return false }

// Ping implements store.Store.
func (s *Store) Ping(ctx context.Context) error {
	return s.do(ctx, func(*bolt.Bucket) error { return nil })
}

// What tend does each time.
const (
	tendEvery = time.Second
	sweepStep = 5000 // records looked at
)

// tend removes what has expired, a stretch of the file at a time, and brings what
// was acknowledged to the disk.
func (s *Store) tend() {
	tick := time.NewTicker(tendEvery)
	defer tick.Stop()
	var next []byte
	for {
		select {
		case <-s.stop:
			return
		case <-tick.C:
		}
		next = s.sweep(next, sweepStep)
		s.giveBack()
		if s.relaxed {
			_ = s.db.Sync() // an error shows in the next commit, too
		}
	}
}

// sweep looks at so many records from a key on, removes those that have expired, and
// returns where to go on.
func (s *Store) sweep(from []byte, most int) (next []byte) {
	var expired [][]byte
	now := time.Now()
	err := s.view(func(b *bolt.Bucket) {
		c := b.Cursor()
		key, raw := c.Seek(from)
		for ; key != nil && most > 0; key, raw = c.Next() {
			most--
			if _, _, _, ok := decode(raw, now); !ok {
				expired = append(expired, bytes.Clone(key))
			}
		}
		next = bytes.Clone(key)
	})
	if err != nil || len(expired) == 0 {
		return next
	}
	_ = s.do(context.Background(), func(b *bolt.Bucket) error { // what stays is found next time
		return remove(b, slices.DeleteFunc(expired, func(key []byte) bool {
			_, _, _, ok := decode(b.Get(key), now)
			return ok // renewed meanwhile
		}))
	})
	return next
}
