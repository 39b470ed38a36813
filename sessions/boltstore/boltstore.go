// Package boltstore keeps a bridge's sessions in one file: they outlive the process,
// but not the machine. One process at a time can have the file open.
//
// One goroutine at a time writes. What was asked for while it wrote is written together,
// so that many commits share one write to the disk and a lone one waits for nobody. A commit
// goes to a journal beside the file, which is one write in place instead of many all over
// the file, and stays in memory until what is still of use goes into the file, in order: most of it
// now and then while commits go on, the rest when the journal is full.
package boltstore

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpbridge/bridge/sessions/boltstore/pages"
	"github.com/mcpbridge/bridge/sessions/store"
	bolt "go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"
)

// Options are settings of a store.
type Options struct {
	// Relaxed acknowledges changes before they are on the disk, where they are a
	// second later at most. Nothing is lost when the process dies. When the machine
	// does, the last second is.
	Relaxed bool
	// Direct writes into the file itself, without a journal. With Relaxed a crash of the
	// machine may damage it then.
	Direct bool

	journal int64 // bytes; 0: journalSize. Tests have smaller ones.
	mapped  int64 // bytes; 0: mostMapped. The same.
}

// Store is a store.Store in a file.
type Store struct {
	db      *bolt.DB
	relaxed bool
	mapped  int64         // how many bytes of files may be in memory before giveBack does something
	stop    chan struct{} // closed to end the goroutines
	once    sync.Once
	running sync.WaitGroup
	err     error // of closing

	queue queue
	batch batch // the writer's, like what follows

	mu      sync.RWMutex // of recent; none is taken under it
	recent  recent       // changed by the writer alone
	journal *journal     // the writer's
	below   below        // the writer's
	ahead   ahead        // the writer's
	short   bool         // the file took nothing the last time; the writer's
	looked  time.Time    // when the writer last looked whether the file is whole
	lately  atomic.Int64 // bytes of large values that were read since haveRead looked
	damaged atomic.Bool  // somebody who read it found that it is not
}

// ErrInUse says that another process has the file open.
var ErrInUse = errors.New("another process has the store open")

var bucketName = []byte("records")

// lockPatience is how long Open waits for another process to let go of the file.
const lockPatience = time.Second

// Open opens or makes the file, which only its owner may read. ErrCorrupt says that
// it is damaged; it is left as it is then.
func Open(path string, opt Options) (*Store, error) {
	db, err := openFile(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, plain(err))
	}
	s := &Store{db: db, relaxed: opt.Relaxed, stop: make(chan struct{}), recent: recent{}, below: below{db: db}, mapped: cmp.Or(opt.mapped, mostMapped)}
	if err := s.openJournal(path, &opt); err != nil {
		s.below.end()
		return nil, errors.Join(fmt.Errorf("%s: %w", path, plain(err)), db.Close())
	}
	db.NoSync = opt.Relaxed && opt.Direct
	s.running.Go(s.tend)
	return s, nil
}

// mostMapped is how many bytes of files may be mapped into the process and in memory before giveBack
// does something.
const mostMapped = 128 << 20

func openFile(path string) (db *bolt.DB, err error) {
	defer guard(&err)
	if err := checkWhole(path); err != nil {
		return nil, err
	}
	db, err = bolt.Open(path, 0o600, &bolt.Options{
		Timeout: lockPatience,
		// Where free pages are is found out when the file is opened. Otherwise every
		// commit after a flood of flows would write down all that it left.
		NoFreelistSync: true, FreelistType: bolt.FreelistMapType,
	})
	if err != nil {
		return nil, err
	}
	if made(db) { // to write nothing: the disk may be full
		return db, nil
	}
	if err := checkNew(path, "as good as new"); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	err = db.Update(func(tx *bolt.Tx) error {
		_, records := tx.CreateBucketIfNotExists(bucketName)
		_, journal := tx.CreateBucketIfNotExists(journalBucket)
		return errors.Join(records, journal)
	})
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

// made reports whether the file has all that a new one is given.
func made(db *bolt.DB) (all bool) {
	_ = db.View(func(tx *bolt.Tx) error {
		all = tx.Bucket(bucketName) != nil && tx.Bucket(journalBucket) != nil
		return nil
	})
	return all
}

// checkWhole finds out whether the end of the file is missing, which the engine would only
// notice by reading there, and whether its pages are what they say.
func checkWhole(path string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return checkNew(path, "missing")
	case err != nil:
		return err
	case info.IsDir():
		return errors.New("it is a directory; name a file in it")
	case info.Size() == 0:
		return checkNew(path, "empty")
	}
	db, err := bolt.Open(path, 0o600, &bolt.Options{Timeout: lockPatience, ReadOnly: true})
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	if err := wanting(db); err != nil {
		return err
	}
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	return db.View(func(tx *bolt.Tx) error {
		size := db.Info().PageSize
		return pages.Check(file, size, uint64(tx.Size())/uint64(size), uint64(tx.Cursor().Bucket().Root())) //nolint:gosec // sizes are not negative
	})
}

// CheckMissing reports that a file which is not there has lost what it had, as Open would (ErrCorrupt).
func CheckMissing(path string) error {
	if err := checkNew(path, "missing"); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// checkNew finds out whether a file that is empty, or is not there, or to which nothing was written yet,
// has lost what it had: a new store has no journal.
func checkNew(path, is string) error {
	if info, err := os.Stat(path + ".journal"); err == nil && info.Size() > 0 {
		return fmt.Errorf("%w: it is %s, and there is a journal of it (to begin anew, remove both)", store.ErrCorrupt, is)
	}
	return nil
}

// wanting returns an error when the end of the file is missing. It reads nothing that
// may be missing.
func wanting(db *bolt.DB) error {
	return db.View(func(tx *bolt.Tx) error {
		info, err := os.Stat(db.Path()) // not before the transaction began: somebody may be making it larger
		if err == nil && tx.Size() > info.Size() {
			err = fmt.Errorf("%w: it has %d bytes of %d", store.ErrCorrupt, info.Size(), tx.Size())
		}
		return err
	})
}

// plain says in the store's words what the engine means.
func plain(err error) error {
	switch {
	case errors.Is(err, berrors.ErrTimeout):
		return ErrInUse
	case errors.Is(err, berrors.ErrInvalid), errors.Is(err, berrors.ErrChecksum), errors.Is(err, berrors.ErrVersionMismatch),
		errors.Is(err, berrors.ErrIncompatibleValue):
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

func (s *Store) view(look func(*bolt.Bucket)) (err error) {
	defer func() {
		if errors.Is(err, store.ErrCorrupt) {
			s.damaged.Store(true)
		}
	}()
	defer guard(&err)
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	return plain(s.db.View(func(tx *bolt.Tx) error {
		look(tx.Bucket(bucketName))
		return nil
	}))
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
		s.queue.mu.Lock()
		s.queue.closed = true
		s.queue.mu.Unlock()
		s.running.Wait() // for what waits, too
		s.err = errors.Join(s.closeJournal(), s.db.Close())
	})
	return s.err
}

// The form of what is in the file. A key is the length of the session's name, the
// name, the kind and the id; a value is the version, the time of its expiry, and
// what it was given.
const valueHead = 16

func keyOf(at store.Address) []byte { return appendKey(make([]byte, 0, keySize(at)), at) }

func keySize(at store.Address) int { return 2 + len(at.Session) + len(at.ID) }

func appendKey(key []byte, at store.Address) []byte {
	key = append(append(key, byte(len(at.Session))), at.Session...)
	return append(append(key, byte(at.Kind)), at.ID...)
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

// decode reads a value of the file, where it does not lie in pieces; ok is false when the record has expired.
func decode(raw []byte, now time.Time) (version uint64, ttl time.Duration, value []byte, ok bool) {
	if len(raw) < valueHead {
		return 0, 0, nil, false
	}
	ttl = time.UnixMicro(int64(binary.BigEndian.Uint64(raw[8:]))).Sub(now)
	return binary.BigEndian.Uint64(raw) &^ inPieces, ttl, raw[valueHead:], ttl > 0
}
