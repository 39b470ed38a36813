package boltstore

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/bridge/sessions/sessionstest"
	"github.com/mcpbridge/bridge/sessions/store"
	bolt "go.etcd.io/bbolt"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var background = context.Background()

func open(t *testing.T, path string, opt Options) *Store {
	t.Helper()
	s, err := Open(path, opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func pathIn(t *testing.T) string { return filepath.Join(t.TempDir(), "sessions.db") }

// crash opens a copy of what the store has in its file this moment, which is what a
// kill leaves, and then ends the first one.
func crash(opt Options) func(*testing.T, store.Store) store.Store {
	return func(t *testing.T, s store.Store) store.Store {
		t.Helper()
		path := pathIn(t)
		copyOf(t, s.(*Store).db.Path(), path)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		return open(t, path, opt)
	}
}

// copyOf copies a store with its journal.
func copyOf(t *testing.T, from, to string) {
	t.Helper()
	for _, suffix := range []string{"", ".journal"} {
		text, err := os.ReadFile(from + suffix)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(to+suffix, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// smallJournal has commits reach the file soon.
const smallJournal = 16 << 10

func TestContract(t *testing.T) {
	for name, opt := range map[string]Options{
		"strict": {journal: 256 << 10}, "relaxed": {Relaxed: true, journal: 256 << 10}, "small journal": {journal: smallJournal},
		"direct": {Direct: true}, "direct and relaxed": {Direct: true, Relaxed: true},
	} {
		t.Run(name, func(t *testing.T) {
			sessionstest.Run(t, sessionstest.Engine{
				Open:  func(t *testing.T) store.Store { return open(t, pathIn(t), opt) },
				Crash: crash(opt),
			})
		})
	}
}

func put(id string, value string) store.Change {
	return store.Change{Kind: store.Flow, ID: id, TTL: time.Hour, Value: []byte(value)}
}

func commit(t *testing.T, s *Store, session string, changes ...store.Change) {
	t.Helper()
	if err := s.Commit(background, session, changes...); err != nil {
		t.Fatal(err)
	}
}

func TestTheFileIsItsOwnersAlone(t *testing.T) {
	path := pathIn(t)
	open(t, path, Options{})
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("got %v, %v", info.Mode(), err)
	}
}

func TestOneProcessHasTheFile(t *testing.T) {
	path := pathIn(t)
	open(t, path, Options{})
	if _, err := Open(path, Options{}); err == nil || !strings.Contains(err.Error(), "another process") {
		t.Errorf("got %v", err)
	}
}

func TestDamagedFilesAreRefusedAndLeftAsTheyAre(t *testing.T) {
	path := pathIn(t)
	s := open(t, path, Options{})
	for i := range 50 {
		commit(t, s, store.Name(fmt.Sprint(i)), put("f", strings.Repeat("x", 5000)))
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{
		"no store":      []byte(strings.Repeat("not a store\n", 1000)),
		"half of it":    whole[:len(whole)/2],
		"its beginning": whole[:3*os.Getpagesize()],
		"a few bytes":   whole[:100],
	} {
		t.Run(name, func(t *testing.T) {
			path := pathIn(t)
			if err := os.WriteFile(path, text, 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := Open(path, Options{}); !errors.Is(err, store.ErrCorrupt) || !strings.Contains(err.Error(), path) {
				t.Errorf("got %v", err)
			}
			if after, _ := os.ReadFile(path); string(after) != string(text) {
				t.Error("the file was changed")
			}
		})
	}
}

// Whatever a page says of itself, the start ends with a sentence, or goes on.
func TestAFileWithADamagedPageIsRefusedOrServed(t *testing.T) {
	path := pathIn(t)
	s := open(t, path, Options{Direct: true})
	for i := range 50 {
		commit(t, s, store.Name(fmt.Sprint(i)), put("f", strings.Repeat("x", 500)))
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	refused := 0
	page := os.Getpagesize()
	type damage struct {
		at   int
		text string
	}
	damages := []damage{{0, strings.Repeat("\x00", 16)}, {0, strings.Repeat("\xff", 16)}, {0, strings.Repeat("\x01", 64)}}
	const head = 16
	for field := range 8 { // of where keys and values are, and how long
		damages = append(damages, damage{head + 4*field, "\xff\xff\xff\xff"}, damage{head + 4*field, "\x00\xf0\x00\x00"})
	}
	for at := 2 * page; at < len(whole); at += page {
		for _, damage := range damages {
			text := slices.Clone(whole)
			copy(text[at+damage.at:], damage.text)
			path := pathIn(t)
			if err := os.WriteFile(path, text, 0o600); err != nil {
				t.Fatal(err)
			}
			s, err := Open(path, Options{Direct: true})
			switch {
			case err == nil:
				_ = s.Close()
			case errors.Is(err, store.ErrCorrupt) && strings.Contains(err.Error(), path):
				refused++
			default:
				t.Errorf("page %d: %v", at/page, err)
			}
		}
	}
	if refused == 0 {
		t.Error("no damage was found")
	}
}

func TestFileThatIsCutWhileOpenIsAnErrorAndNoCrash(t *testing.T) {
	path := pathIn(t)
	s := open(t, path, Options{journal: smallJournal})
	for i := range 200 {
		commit(t, s, store.Name(fmt.Sprint(i)), put("f", strings.Repeat("x", 5000)))
	}
	if err := os.Truncate(path, int64(4*os.Getpagesize())); err != nil {
		t.Fatal(err)
	}
	failed := 0
	for i := range 200 {
		_, get := s.Get(background, store.Address{Session: store.Name(fmt.Sprint(i)), Kind: store.Flow, ID: "f"})
		if errors.Is(get, store.ErrCorrupt) {
			failed++
		}
	}
	if failed == 0 {
		t.Error("nobody noticed")
	}
	if err := s.Commit(background, store.Name("1"), put("g", "x")); !errors.Is(err, store.ErrCorrupt) {
		t.Errorf("commit: got %v", err)
	}
}

func TestExpiredRecordsLeaveTheFile(t *testing.T) {
	s := open(t, pathIn(t), Options{})
	session := store.Name("s")
	var changes []store.Change
	for i := range 10 {
		c := put(fmt.Sprint(i), "brief")
		c.TTL = time.Millisecond
		changes = append(changes, c)
	}
	commit(t, s, session, append(changes, put("lasting", "x"))...)
	if err := s.Ping(background); err != nil {
		t.Fatal(err)
	}
	for left := 11; left > 1; {
		for next := s.sweep(nil, 3); next != nil; {
			next = s.sweep(next, 3)
		}
		if err := s.Ping(background); err != nil { // what was swept leaves the file
			t.Fatal(err)
		}
		if err := s.view(func(b *bolt.Bucket) { left = b.Stats().KeyN }); err != nil {
			t.Fatal(err)
		}
	}
	if list, err := s.Load(background, session); err != nil || len(list) != 1 {
		t.Errorf("got %v, %v", list, err)
	}
}

// held has the writer, in a bubble, held up in the middle of a write until proceed is called.
func held(s *Store) (proceed func()) {
	time.Sleep(2 * gather) // the writer before may not have ended, and would wait for more to share a write
	wait := make(chan struct{})
	go func() {
		_ = s.do(background, func(*batch) error {
			<-wait
			return nil
		})
	}()
	synctest.Wait()
	return func() { close(wait) }
}

// TestCommitsThatMeetShareAWrite: the writer is held up by one transaction while
// others queue.
func TestCommitsThatMeetShareAWrite(t *testing.T) {
	path := pathIn(t)
	synctest.Test(t, func(t *testing.T) {
		s, err := Open(path, Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = s.Close() }()
		const clients = 50
		proceed := held(s)
		before := s.journal.next
		for i := range clients {
			go func() { _ = s.Commit(background, store.Name(fmt.Sprint(i)), put("f", "x")) }()
		}
		synctest.Wait()
		proceed()
		time.Sleep(gather)
		synctest.Wait()
		if n := s.journal.next - before; n == 0 || n > clients/2 {
			t.Errorf("%d commits took %d writes", clients, n)
		}
		page, err := s.List(background, "", clients)
		if err != nil || len(page.Records) != clients {
			t.Errorf("kept %d records, %v", len(page.Records), err)
		}
	})
}

func TestConflictLeavesOthersOfItsTransactionAlone(t *testing.T) {
	path := pathIn(t)
	synctest.Test(t, func(t *testing.T) {
		s, err := Open(path, Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = s.Close() }()
		proceed := held(s)
		errs := make(chan error, 3)
		for range 3 {
			go func() { errs <- s.Commit(background, "session", put("f", "x")) }()
		}
		synctest.Wait()
		proceed()
		won := 0
		for range 3 {
			if err := <-errs; err == nil {
				won++
			}
		}
		if won != 1 {
			t.Errorf("%d made the same record", won)
		}
	})
}

// TestChangeThatWasBegunIsWaitedFor: a process that was paused finds its time up, and the
// change made.
func TestChangeThatWasBegunIsWaitedFor(t *testing.T) {
	path := pathIn(t)
	synctest.Test(t, func(t *testing.T) {
		s, err := Open(path, Options{journal: smallJournal})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = s.Close() }()
		go func() {
			_ = s.do(background, func(*batch) error {
				time.Sleep(5500 * time.Millisecond)
				return nil
			})
		}()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(background, 5*time.Second)
		defer cancel()
		if err := s.Commit(ctx, "session", put("f", "x")); err != nil {
			t.Error(err)
		}
	})
}

// TestReadyChangesShareAWrite: where no write waits for the disk, many at a time still make few.
func TestReadyChangesShareAWrite(t *testing.T) {
	s := open(t, pathIn(t), Options{Relaxed: true})
	const changes = 64
	before := s.journal.next
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	var all sync.WaitGroup
	for i := range changes {
		all.Go(func() {
			if err := s.Commit(background, store.Name(fmt.Sprint(i)), put("f", "x")); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if writes := s.journal.next - before; writes > changes/4 {
		t.Errorf("%d changes took %d writes", changes, writes)
	}
}
