package boltstore

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/bridge/sessions/store"
	bolt "go.etcd.io/bbolt"
)

// crashed returns a store that a process left behind in which ten commits were
// acknowledged, and where in its journal the frames begin.
func crashed(t *testing.T, opt Options) (path string, frames []int64) {
	t.Helper()
	s := open(t, pathIn(t), opt)
	for i := range 10 {
		frames = append(frames, s.journal.at)
		commit(t, s, store.Name(fmt.Sprint(i)), put("f", strings.Repeat("x", 100)))
	}
	path = pathIn(t)
	copyOf(t, s.db.Path(), path)
	return path, append(frames, s.journal.at)
}

// left counts the commits that are there.
func left(t *testing.T, s *Store) (n int) {
	t.Helper()
	for i := range 10 {
		list, err := s.Load(background, store.Name(fmt.Sprint(i)))
		if err != nil {
			t.Fatal(err)
		}
		n += len(list)
	}
	return n
}

func change(t *testing.T, path string, edit func(text []byte) []byte) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, edit(text), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestTornWriteWasAcknowledgedToNobody: a crash in the middle of the last frame leaves the others.
func TestTornWriteWasAcknowledgedToNobody(t *testing.T) {
	path, frames := crashed(t, Options{})
	change(t, path+".journal", func(text []byte) []byte {
		clear(text[frames[9]+40 : frames[10]])
		return text
	})
	if n := left(t, open(t, path, Options{})); n != 9 {
		t.Errorf("%d of 9 are left", n)
	}
}

// TestDamagedJournalIsRefused: what was acknowledged is not lost without a word.
func TestDamagedJournalIsRefused(t *testing.T) {
	for name, edit := range map[string]func(text []byte, frames []int64) []byte{
		"a flipped bit":      func(text []byte, frames []int64) []byte { text[frames[4]+40] ^= 1; return text },
		"a hole":             func(text []byte, frames []int64) []byte { clear(text[:frames[5]]); return text },
		"its end is missing": func(text []byte, frames []int64) []byte { return text[:frames[5]] },
	} {
		t.Run(name, func(t *testing.T) {
			path, frames := crashed(t, Options{})
			change(t, path+".journal", func(text []byte) []byte { return edit(text, frames) })
			before, _ := os.ReadFile(path + ".journal")
			if _, err := Open(path, Options{}); !errors.Is(err, store.ErrCorrupt) || !strings.Contains(err.Error(), "journal") {
				t.Errorf("got %v", err)
			}
			if after, _ := os.ReadFile(path + ".journal"); !bytes.Equal(before, after) {
				t.Error("it was changed")
			}
		})
	}
	path, _ := crashed(t, Options{})
	if err := os.Remove(path + ".journal"); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(path, Options{}); !errors.Is(err, store.ErrCorrupt) || !strings.Contains(err.Error(), "missing") {
		t.Errorf("without one: got %v", err)
	}
}

// TestRelaxedJournalMayHaveHoles: the machine died before all of it was on the disk. What
// follows is lost, and the store can be used.
func TestRelaxedJournalMayHaveHoles(t *testing.T) {
	path, frames := crashed(t, Options{Relaxed: true})
	change(t, path+".journal", func(text []byte) []byte {
		clear(text[frames[5]:frames[6]])
		return text
	})
	if n := left(t, open(t, path, Options{Relaxed: true})); n != 5 {
		t.Errorf("%d of 5 are left", n)
	}
}

// TestJournalOfAnOrderlyEndIsNotNeeded: all is in the file then.
func TestJournalOfAnOrderlyEndIsNotNeeded(t *testing.T) {
	s := open(t, pathIn(t), Options{})
	for i := range 10 {
		commit(t, s, store.Name(fmt.Sprint(i)), put("f", "x"))
	}
	path := s.db.Path()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(path + ".journal"); err != nil {
		t.Fatal(err)
	}
	if n := left(t, open(t, path, Options{})); n != 10 {
		t.Errorf("%d of 10 are left", n)
	}
}

// TestJournalThatFailsIsDoneWithout: commits go into the file then.
func TestJournalThatFailsIsDoneWithout(t *testing.T) {
	s := open(t, pathIn(t), Options{})
	commit(t, s, store.Name("0"), put("f", "x"))
	if err := s.journal.file.Close(); err != nil {
		t.Fatal(err)
	}
	for i := range 9 {
		commit(t, s, store.Name(fmt.Sprint(i+1)), put("f", "x"))
	}
	if n := left(t, s); n != 10 {
		t.Errorf("%d of 10 are left", n)
	}
}

// TestWhatIsOverNeverReachesTheFile: a call that ends before the journal is full.
func TestWhatIsOverNeverReachesTheFile(t *testing.T) {
	s := open(t, pathIn(t), Options{})
	for range 100 {
		commit(t, s, store.Name("a"), put("f", "x"))
		commit(t, s, store.Name("a"), store.Change{Kind: store.Flow, ID: "f", Replaces: 1, Delete: true})
	}
	if len(s.recent) != 0 {
		t.Errorf("%d sessions are to be written", len(s.recent))
	}
}

func FuzzJournal(f *testing.F) {
	f.Add([]byte("\x00\x05\x00\x00\x00\x03\x01afid12"))
	f.Fuzz(func(_ *testing.T, payload []byte) { read(nil, payload) })
}

// TestTheJournalCanBeTurnedOffAndOn: with what a crash has left in it.
func TestTheJournalCanBeTurnedOffAndOn(t *testing.T) {
	path, _ := crashed(t, Options{})
	for i, opt := range []Options{{Direct: true}, {}, {Direct: true, Relaxed: true}, {Relaxed: true}} {
		s := open(t, path, opt)
		if n := left(t, s); n != 10 {
			t.Fatalf("%d of 10 are left after %d openings", n, i)
		}
		commit(t, s, store.Name("later"), store.Change{Kind: store.Flow, ID: fmt.Sprint(i), TTL: time.Hour})
		if used := s.journal.at > 0; used == opt.Direct {
			t.Errorf("direct: %v, and the journal is in use: %v", opt.Direct, used)
		}
		after := pathIn(t) // as a crash leaves it
		copyOf(t, path, after)
		path = after
		if opt.Direct {
			if err := os.WriteFile(path+".journal", nil, 0o600); err != nil { // of no use
				t.Fatal(err)
			}
		}
	}
	list, err := open(t, path, Options{}).Load(background, store.Name("later"))
	if err != nil || len(list) != 4 {
		t.Errorf("%d of 4 are there, %v", len(list), err)
	}
}

// TestFileThatLostAllItHadIsRefused: it is empty, and its journal is not. One that was made empty is a new store.
func TestFileThatLostAllItHadIsRefused(t *testing.T) {
	path, _ := crashed(t, Options{})
	if err := os.Truncate(path, 0); err != nil {
		t.Fatal(err)
	}
	if s, err := Open(path, Options{}); !errors.Is(err, store.ErrCorrupt) || !strings.Contains(err.Error(), path) {
		if err == nil {
			_ = s.Close()
		}
		t.Errorf("got %v", err)
	}
	if info, err := os.Stat(path); err != nil || info.Size() != 0 {
		t.Errorf("it was not left as it is: %v, %v", info, err)
	}
	if err := os.Remove(path + ".journal"); err != nil {
		t.Fatal(err)
	}
	if n := left(t, open(t, path, Options{})); n != 0 {
		t.Errorf("a new store has %d records", n)
	}
}

func TestDirectoryIsNoStore(t *testing.T) {
	if _, err := Open(t.TempDir(), Options{}); err == nil || !strings.Contains(err.Error(), "is a directory") {
		t.Errorf("got %v", err)
	}
}

// On a full disk what is ended makes room, for whatever shares its write. Where it makes too little, a commit that shares it
// was made as a whole or not at all: what it removes stays with what it puts.
func TestACommitBesideAnEndThatMakesTooLittleRoomChangesNothing(t *testing.T) {
	path := pathIn(t)
	synctest.Test(t, func(t *testing.T) {
		s, err := Open(path, Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = s.Close() }()
		ended, lives := store.Name("ended"), store.Name("lives")
		commit(t, s, ended, put("f", "x"))
		commit(t, s, lives, put("f", "old"))
		if err := s.Ping(background); err != nil { // both are in the file
			t.Fatal(err)
		}
		proceed := held(s)
		results := make(chan error, 2)
		go func() { results <- s.End(background, ended) }()
		go func() {
			results <- s.Commit(background, lives, store.Change{Kind: store.Flow, ID: "f", Replaces: store.Any, Delete: true}, put("g", "new"))
		}()
		synctest.Wait()
		s.journal.failed, s.short = true, true
		s.recent.set(store.Address{Session: strings.Repeat("x", bolt.MaxKeySize), Kind: store.Flow, ID: "f"}, entry{raw: encode(1, time.Now().Add(time.Hour), nil)}) // which no file takes
		proceed()
		for range 2 {
			if err := <-results; err == nil {
				t.Error("a change that was not kept was acknowledged")
			}
		}
		list, err := s.Load(background, lives)
		if err != nil || len(list) != 1 || list[0].ID != "f" || string(list[0].Value) != "old" {
			t.Errorf("of the session that goes on there is %v, %v", list, err)
		}
	})
}

// TestWhatIsRecentIsListed: also where the file takes nothing, because the disk is full; to list writes nothing.
func TestWhatIsRecentIsListed(t *testing.T) {
	s := open(t, pathIn(t), Options{})
	for i := range 6 {
		commit(t, s, store.Name(fmt.Sprint(i)), put("f", "x"))
	}
	if err := s.settle(s.state()); err != nil {
		t.Fatal(err)
	}
	inFile := s.journal.number
	for i := range 4 {
		commit(t, s, store.Name(fmt.Sprint(i+6)), put("f", "x"))
		commit(t, s, store.Name(fmt.Sprint(i)), put("g", "x"))
	}
	commit(t, s, store.Name("5"), store.Change{Kind: store.Flow, ID: "f", Replaces: 1, Delete: true})
	for _, limit := range []int{1, 3, 100} {
		counts := map[string]int{}
		for after, more := "", true; more; more = after != "" {
			page, err := s.List(background, after, limit)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range page.Records {
				counts[r.Session]++
			}
			after = page.Next
		}
		for i, most := range [10]int{2, 2, 2, 2, 1, 0, 1, 1, 1, 1} {
			if n := counts[store.Name(fmt.Sprint(i))]; n != most {
				t.Errorf("%d at a time: session %d has %d records, want %d", limit, i, n, most)
			}
		}
	}
	if s.journal.number != inFile {
		t.Error("it has written to the file")
	}
}
