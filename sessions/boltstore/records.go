package boltstore

import (
	"bytes"
	"context"
	"iter"
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
	return s.give(ctx, &request{session: session, size: store.SizeOf(changes), apply: func(b *batch) error {
		now := time.Now()
		type state struct {
			entry
			version uint64
		}
		was := make([]state, 0, 4) // on the stack, for as many as there are as a rule
		for _, c := range changes {
			at := store.Address{Session: session, Kind: c.Kind, ID: c.ID}
			one := state{entry: b.get(at)}
			if version, _, _, ok := decode(one.raw, now); ok {
				one.version = version
			}
			if c.Replaces != store.Any && c.Replaces != one.version {
				return &store.ConflictError{Address: at}
			}
			was = append(was, one)
		}
		put := func(i int, life time.Duration) {
			c, raw := &changes[i], []byte(nil)
			if !c.Delete {
				raw = encode(was[i].version+1, now.Add(life), c.Value)
			}
			b.put(store.Address{Session: session, Kind: c.Kind, ID: c.ID}, was[i].entry, raw)
		}
		last := -1
		for i := range changes {
			if changes[i].WithCalls {
				last = i
			} else {
				put(i, changes[i].TTL)
			}
		}
		if last >= 0 {
			put(last, b.lifeOf(session, changes[last].TTL, now))
		}
		return nil
	}})
}

// Get implements store.Store.
func (s *Store) Get(ctx context.Context, at store.Address) (store.Record, error) {
	if err := s.usable(ctx); err != nil {
		return store.Record{}, err
	}
	s.mu.RLock()
	e, here := s.recent.get(at)
	s.mu.RUnlock()
	r, found := record(at, e.raw, time.Now())
	var err error
	if !here {
		err = s.view(func(b *bolt.Bucket) { r, found = wholeRecord(b, at, b.Get(keyOf(at)), time.Now()) })
		s.haveRead(len(r.Value))
	}
	if err == nil && !found {
		err = store.ErrNotFound
	}
	return r, err
}

// Size implements store.Sizer.
func (s *Store) Size(ctx context.Context, at store.Address) (size int, err error) {
	if err := s.usable(ctx); err != nil {
		return 0, err
	}
	found, now := false, time.Now()
	look := func(raw []byte) {
		_, _, value, ok := decode(raw, now)
		size, found = len(value), ok
		if length, _, ok := isInPieces(raw); ok {
			size = int(length)
		}
	}
	s.mu.RLock()
	e, here := s.recent.get(at)
	s.mu.RUnlock()
	look(e.raw)
	if !here {
		err = s.view(func(b *bolt.Bucket) { look(b.Get(keyOf(at))) })
	}
	if err == nil && !found {
		err = store.ErrNotFound
	}
	return size, err
}

// record returns a copy of a record; ok is false when there is none, or no longer.
func record(at store.Address, raw []byte, now time.Time) (r store.Record, ok bool) {
	version, ttl, value, ok := decode(raw, now)
	return store.Record{Address: at, Version: version, TTL: ttl, Value: bytes.Clone(value)}, ok
}

// head is wholeRecord without the value.
func head(_ *bolt.Bucket, at store.Address, raw []byte, now time.Time) (r store.Record, ok bool) {
	version, ttl, _, ok := decode(raw, now)
	return store.Record{Address: at, Version: version, TTL: ttl}, ok
}

// Load implements store.Store.
func (s *Store) Load(ctx context.Context, session string) ([]store.Record, error) {
	return s.read(ctx, session, wholeRecord)
}

// Glance implements store.Glancer.
func (s *Store) Glance(ctx context.Context, session string) ([]store.Record, error) {
	return s.read(ctx, session, head)
}

// read returns what there is of a session, each record as made reads it from the file.
func (s *Store) read(ctx context.Context, session string, made func(*bolt.Bucket, store.Address, []byte, time.Time) (store.Record, bool)) ([]store.Record, error) {
	if err := s.usable(ctx); err != nil {
		return nil, err
	}
	var list []store.Record
	defer func() {
		for i := range list {
			s.haveRead(len(list[i].Value))
		}
	}()
	s.mu.RLock()
	defer s.mu.RUnlock()
	now := time.Now()
	err := s.view(func(b *bolt.Bucket) {
		s.recent.records(b, session, func(at store.Address, raw []byte) {
			if r, ok := made(b, at, raw, now); ok {
				list = append(list, r)
			}
		})
	})
	slices.SortFunc(list, func(a, b store.Record) int { return a.Compare(b.Address) })
	return list, err
}

// within returns what the file has of a session.
func within(b *bolt.Bucket, session string) iter.Seq2[[]byte, []byte] {
	return func(yield func(key, raw []byte) bool) {
		prefix := prefixOf(session)
		c := b.Cursor()
		for key, raw := c.Seek(prefix); bytes.HasPrefix(key, prefix) && yield(key, raw); key, raw = c.Next() {
		}
	}
}

// Touch implements store.Store.
func (s *Store) Touch(ctx context.Context, touches ...store.Touch) error {
	return s.give(ctx, &request{touches: touches, apply: func(b *batch) error {
		now := time.Now()
		for _, touch := range touches {
			at := store.Address{Session: touch.Session, Kind: store.Session}
			was := b.whole(at)
			if version, _, value, ok := decode(was.raw, now); ok {
				life := touch.TTL
				if touch.WithCalls {
					life = b.lifeOf(touch.Session, life, now)
				}
				b.put(at, was, encode(version, now.Add(life), value))
			}
		}
		return nil
	}})
}

// End implements store.Store.
func (s *Store) End(ctx context.Context, session string) error {
	return s.give(ctx, &request{session: session, ends: true, apply: func(b *batch) error {
		for _, e := range slices.Clone(b.recent[session]) {
			b.free(e.at(session), e.entry)
		}
		b.file(func(of *bolt.Bucket) {
			for key, raw := range within(of, session) {
				b.free(addressOf(key), entry{raw, true})
			}
		})
		return nil
	}})
}

// List implements store.Store.
func (s *Store) List(ctx context.Context, after string, limit int) (store.Page, error) {
	if err := s.usable(ctx); err != nil {
		return store.Page{}, err
	}
	if err := wanting(s.db); err != nil {
		return store.Page{}, plain(err)
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	var page store.Page
	err := s.view(func(b *bolt.Bucket) {
		now := time.Now()
		add := func(at store.Address, raw []byte) {
			if version, ttl, _, ok := decode(raw, now); ok {
				page.Records = append(page.Records, store.Record{Address: at, Version: version, TTL: ttl})
			}
		}
		last := after
		for session := range s.sessionsLocked(b, after) {
			if len(page.Records) >= limit {
				page.Next = last
				return
			}
			last = session
			s.recent.records(b, session, add)
		}
	})
	return page, err
}

// sessionsLocked returns the sessions behind one, in order: the file's, and those that are recent.
func (s *Store) sessionsLocked(b *bolt.Bucket, after string) iter.Seq[string] {
	return func(yield func(string) bool) {
		news := s.recent.inOrder()
		if at, found := slices.BinarySearchFunc(news, after, compareSessions); found {
			news = news[at+1:]
		} else {
			news = news[at:]
		}
		c := b.Cursor()
		key := seekAfter(c, after)
		for key != nil || len(news) > 0 {
			var session string
			if key != nil {
				session = addressOf(key).Session
			}
			if len(news) > 0 && (key == nil || compareSessions(news[0], session) <= 0) {
				session, news = news[0], news[1:]
			}
			if !yield(session) {
				return
			}
			if key != nil && addressOf(key).Session == session {
				key = seekAfter(c, session)
			}
		}
	}
}

// seekAfter moves to the first record behind a session's; "" is before all.
func seekAfter(c *bolt.Cursor, session string) (key []byte) {
	if session == "" {
		key, _ = c.First()
	} else {
		key, _ = c.Seek(append(prefixOf(session), 0xff)) // behind all kinds
	}
	return key
}

// Watch implements store.Store: the file is locked, so that nobody else has it.
func (s *Store) Watch(func(string)) bool { return false }

// Ping implements store.Store. It writes to the file, not only to its journal, for which
// there is room.
func (s *Store) Ping(ctx context.Context) error {
	return s.do(ctx, func(b *batch) error {
		b.toFile = true
		return nil
	})
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
			_ = s.tell()
			_ = s.sync() // an error shows in the next commit, too
		}
	}
}

// tell has the journal say that all it has is on the disk, where that is so and no commit has come since to say it.
func (s *Store) tell() error {
	return s.do(context.Background(), func(b *batch) error {
		b.tells = s.journal.untold()
		return nil
	})
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
	_ = s.do(context.Background(), func(b *batch) error { // what stays is found next time
		for _, key := range expired {
			at := addressOf(key)
			was := b.get(at)
			if _, _, _, ok := decode(was.raw, now); !ok { // else it was renewed meanwhile
				b.free(at, was)
			}
		}
		return nil
	})
	return next
}
