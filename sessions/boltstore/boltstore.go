// Package boltstore keeps a bridge's sessions in one file: they outlive the process,
// but not the machine. One process at a time can have the file open.
//
// A single goroutine writes. What was asked for while it wrote goes into its next
// transaction together, so that many commits share one write to the disk and a lone
// one waits for nobody.
package boltstore

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime/debug"
	"sync"
	"time"

	"github.com/mcpbridge/bridge/sessions/store"
	bolt "go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"
)

// Options are settings of a store.
type Options struct {
	// Relaxed acknowledges changes before they are on the disk, where they are a
	// second later at most. Nothing is lost when the process dies. When the machine
	// does, the last second is, and the file may be damaged.
	Relaxed bool
}

// Store is a store.Store in a file.
type Store struct {
	db      *bolt.DB
	relaxed bool
	queue   chan *request // to the writer, who takes what is there at once
	stop    chan struct{} // closed to end the goroutines
	once    sync.Once
	running sync.WaitGroup
	err     error // of closing
}

// request is a change that waits for the writer.
type request struct {
	apply func(*bolt.Bucket) error // changes nothing when it fails
	err   error                    // may be read when done is closed
	done  chan struct{}
}

// ErrInUse says that another process has the file open.
var ErrInUse = errors.New("another process has the store open")

var bucketName = []byte("records")

// maxBatch bounds how many requests share a transaction.
const maxBatch = 1024

// lockPatience is how long Open waits for another process to let go of the file.
const lockPatience = time.Second

// Open opens or makes the file, which only its owner may read. ErrCorrupt says that
// it is damaged; it is left as it is then.
func Open(path string, opt Options) (*Store, error) {
	db, err := openFile(path, opt)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, plain(err))
	}
	s := &Store{db: db, relaxed: opt.Relaxed, queue: make(chan *request), stop: make(chan struct{})}
	s.running.Go(s.write)
	s.running.Go(s.tend)
	return s, nil
}

func openFile(path string, opt Options) (db *bolt.DB, err error) {
	defer guard(&err)
	if err := checkLength(path); err != nil {
		return nil, err
	}
	db, err = bolt.Open(path, 0o600, &bolt.Options{
		Timeout: lockPatience, NoSync: opt.Relaxed,
		// Where free pages are is found out when the file is opened. Otherwise every
		// commit after a flood of flows would write down all that it left.
		NoFreelistSync: true, FreelistType: bolt.FreelistMapType,
	})
	if err != nil {
		return nil, err
	}
	err = db.Update(func(tx *bolt.Tx) error {
		_, err := tx.CreateBucketIfNotExists(bucketName)
		return err
	})
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

// checkLength finds out whether the end of the file is missing, which the engine
// would only notice by reading there.
func checkLength(path string) error {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && info.Size() == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	db, err := bolt.Open(path, 0o600, &bolt.Options{Timeout: lockPatience, ReadOnly: true})
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	return wanting(db)
}

// wanting returns an error when the end of the file is missing. It reads nothing that
// may be missing.
func wanting(db *bolt.DB) error {
	info, err := os.Stat(db.Path())
	if err != nil {
		return err
	}
	return db.View(func(tx *bolt.Tx) error {
		if tx.Size() > info.Size() {
			return fmt.Errorf("%w: it has %d bytes of %d", store.ErrCorrupt, info.Size(), tx.Size())
		}
		return nil
	})
}

// plain says in the store's words what the engine means.
func plain(err error) error {
	switch {
	case errors.Is(err, berrors.ErrTimeout):
		return ErrInUse
	case errors.Is(err, berrors.ErrInvalid), errors.Is(err, berrors.ErrChecksum), errors.Is(err, berrors.ErrVersionMismatch):
		return fmt.Errorf("%w: %w", store.ErrCorrupt, err)
	case errors.Is(err, berrors.ErrDatabaseNotOpen):
		return store.ErrClosed
	}
	return err
}

// guard makes an error of the panic that a damaged file causes. To be deferred.
func guard(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("%w: %v", store.ErrCorrupt, p)
	}
}

// write is the goroutine that writes.
func (s *Store) write() {
	for {
		select {
		case <-s.stop:
			return
		case first := <-s.queue:
			s.commit(s.gather(first))
		}
	}
}

// gather returns the requests that wait by now.
func (s *Store) gather(first *request) []*request {
	batch := []*request{first}
	for len(batch) < maxBatch {
		select {
		case r := <-s.queue:
			batch = append(batch, r)
		default:
			return batch
		}
	}
	return batch
}

// commit carries out requests in one transaction. One that doesn't apply changes
// nothing and leaves the others alone.
func (s *Store) commit(batch []*request) {
	err := s.update(func(b *bolt.Bucket) error {
		for _, r := range batch {
			r.err = r.apply(b)
		}
		return nil
	})
	for _, r := range batch {
		if err != nil {
			r.err = err
		}
		close(r.done)
	}
}

// update looks at the file first: when a transaction fails the engine reads all of it,
// on a goroutine whose panics nobody can catch.
func (s *Store) update(change func(*bolt.Bucket) error) (err error) {
	if err := wanting(s.db); err != nil {
		return plain(err)
	}
	defer guard(&err)
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	return plain(s.db.Update(func(tx *bolt.Tx) error { return change(tx.Bucket(bucketName)) }))
}

func (s *Store) view(look func(*bolt.Bucket)) (err error) {
	defer guard(&err)
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	return plain(s.db.View(func(tx *bolt.Tx) error {
		look(tx.Bucket(bucketName))
		return nil
	}))
}

// do has the writer carry out a change.
func (s *Store) do(ctx context.Context, apply func(*bolt.Bucket) error) error {
	if err := s.usable(ctx); err != nil {
		return err
	}
	r := &request{apply: apply, done: make(chan struct{})}
	select {
	case s.queue <- r:
	case <-s.stop:
		return store.ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case <-r.done:
		return r.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *Store) usable(ctx context.Context) error {
	select {
	case <-s.stop:
		return store.ErrClosed
	default:
		return ctx.Err()
	}
}

// Close implements store.Store. What was acknowledged is on the disk when it returns.
func (s *Store) Close() error {
	s.once.Do(func() {
		close(s.stop)
		s.running.Wait()
		if s.relaxed {
			s.err = s.db.Sync()
		}
		s.err = errors.Join(s.err, s.db.Close())
	})
	return s.err
}

// The form of what is in the file. A key is the length of the session's name, the
// name, the kind and the id; a value is the version, the time of its expiry, and
// what it was given.
const valueHead = 16

func keyOf(at store.Address) []byte {
	return append(append(prefixOf(at.Session), byte(at.Kind)), at.ID...)
}

func prefixOf(session string) []byte {
	return append([]byte{byte(len(session))}, session...)
}

func addressOf(key []byte) store.Address {
	end := 1 + int(key[0])
	return store.Address{Session: string(key[1:end]), Kind: store.Kind(key[end]), ID: string(key[end+1:])}
}

func encode(version uint64, until time.Time, value []byte) []byte {
	out := make([]byte, 0, valueHead+len(value))
	out = binary.BigEndian.AppendUint64(out, version)
	out = binary.BigEndian.AppendUint64(out, uint64(until.UnixMicro()))
	return append(out, value...)
}

// decode reads a value of the file; ok is false when the record has expired.
func decode(raw []byte, now time.Time) (version uint64, ttl time.Duration, value []byte, ok bool) {
	if len(raw) < valueHead {
		return 0, 0, nil, false
	}
	ttl = time.UnixMicro(int64(binary.BigEndian.Uint64(raw[8:]))).Sub(now)
	return binary.BigEndian.Uint64(raw), ttl, raw[valueHead:], ttl > 0
}
