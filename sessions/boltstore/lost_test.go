package boltstore

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/bridge/sessions/store"
	bolt "go.etcd.io/bbolt"
)

// TestAJournalOfZerosIsRefused: it looks like one in which nothing was written yet.
func TestAJournalOfZerosIsRefused(t *testing.T) {
	for name, opt := range map[string]Options{"strict": {}, "relaxed": {Relaxed: true}} {
		t.Run(name, func(t *testing.T) {
			path, _ := crashed(t, opt)
			change(t, path+".journal", func(text []byte) []byte { clear(text); return text })
			if s, err := Open(path, opt); !errors.Is(err, store.ErrCorrupt) || !strings.Contains(err.Error(), "journal is blank") {
				if err == nil {
					_ = s.Close()
				}
				t.Errorf("got %v", err)
			}
		})
	}
}

// A process that ends before its first commit leaves a journal that is as good as any, and so did earlier builds,
// which left it blank.
func TestAJournalThatWasNotUsedYetIsGood(t *testing.T) {
	for _, earlier := range []bool{false, true} {
		s := open(t, pathIn(t), Options{})
		path := pathIn(t)
		if earlier {
			s.journal.written = false
			if err := s.settle(s.state()); err != nil {
				t.Fatal(err)
			}
		}
		copyOf(t, s.db.Path(), path)
		if earlier {
			change(t, path+".journal", func(text []byte) []byte { clear(text); return text })
		}
		if n := left(t, open(t, path, Options{})); n != 0 {
			t.Errorf("%d are left", n)
		}
	}
}

// What is left of a journal whose frames cannot be brought into the file is never blank.
func TestAJournalThatIsWipedIsNotBlank(t *testing.T) {
	path, _ := crashed(t, Options{})
	s := open(t, path, Options{})
	if err := errors.Join(s.settle(s.state()), s.journal.wipe()); err != nil {
		t.Fatal(err)
	}
	after := pathIn(t)
	copyOf(t, path, after)
	if n := left(t, open(t, after, Options{})); n != 10 {
		t.Errorf("%d of 10 are left", n)
	}
}

// TestFileThatIsMissingIsRefused: its journal is there.
func TestFileThatIsMissingIsRefused(t *testing.T) {
	path, _ := crashed(t, Options{})
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if s, err := Open(path, Options{}); !errors.Is(err, store.ErrCorrupt) || !strings.Contains(err.Error(), "it is missing") {
		if err == nil {
			_ = s.Close()
		}
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it was made: %v", err)
	}
}

// TestAFileThatWentBackIsRefused: the engine takes what was there before the last write when the page is damaged
// that tells of it. What the journal had until then goes missing with it.
func TestAFileThatWentBackIsRefused(t *testing.T) {
	page := int64(os.Getpagesize())
	for name, write := range map[string]func(s *Store){
		"nothing since the start": func(*Store) {},
		"much since the start": func(s *Store) {
			for range 3 {
				if err := s.settle(s.state()); err != nil {
					t.Error(err)
				}
				commit(t, s, store.Name("0"), store.Change{Kind: store.Flow, ID: "f", Replaces: store.Any, Value: []byte("y"), TTL: time.Hour})
			}
		},
		"just now": func(s *Store) {
			if err := s.settle(s.state()); err != nil {
				t.Error(err)
			}
		},
		"an orderly end": func(s *Store) {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			from := pathIn(t)
			s := open(t, from, Options{})
			for i := range 10 {
				commit(t, s, store.Name(fmt.Sprint(i)), put("f", "x"))
			}
			write(s)
			refused := 0
			for _, meta := range []int64{0, page} {
				path := pathIn(t)
				copyOf(t, from, path)
				change(t, path, func(text []byte) []byte { clear(text[meta : meta+512]); return text })
				one, err := Open(path, Options{})
				if errors.Is(err, store.ErrCorrupt) {
					refused++
					continue
				}
				if err != nil {
					t.Fatal(err)
				}
				if n := left(t, one); n != 10 {
					t.Errorf("without the page at %d: %d of 10 are left", meta, n)
				}
				if err := one.Close(); err != nil {
					t.Error(err)
				}
			}
			if refused > 1 {
				t.Error("refused whichever page is damaged")
			}
		})
	}
}

// TestAnOlderCopyOfTheFileIsRefused: beside a journal that goes on from a later one.
func TestAnOlderCopyOfTheFileIsRefused(t *testing.T) {
	s := open(t, pathIn(t), Options{})
	commit(t, s, store.Name("0"), put("f", "x"))
	path := pathIn(t)
	copyOf(t, s.db.Path(), path)
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.settle(s.state()); err != nil {
		t.Fatal(err)
	}
	commit(t, s, store.Name("1"), put("f", "x"))
	copyOf(t, s.db.Path(), path)
	change(t, path, func([]byte) []byte { return before })
	if _, err := Open(path, Options{}); !errors.Is(err, store.ErrCorrupt) || !strings.Contains(err.Error(), "older than its journal") {
		t.Errorf("got %v", err)
	}
}

// TestAJournalOfAnEarlierBuildIsRead: its generations are in no order, and what newer ones have left in it is no
// sign of anything.
func TestAJournalOfAnEarlierBuildIsRead(t *testing.T) {
	s := open(t, pathIn(t), Options{})
	settle := func() {
		if err := s.settle(s.state()); err != nil {
			t.Fatal(err)
		}
	}
	for range 10 {
		settle()
	}
	for i := range 5 {
		commit(t, s, store.Name(fmt.Sprint("before", i)), put("f", strings.Repeat("x", 100)))
	}
	settle()
	const unordered = 0x0123456789abcdef
	err := s.update(func(tx *bolt.Tx) error {
		return tx.Bucket(journalBucket).Put(journalKey, mark(s.state(), unordered, s.journal.size))
	})
	if err != nil {
		t.Fatal(err)
	}
	s.journal.begin(unordered)
	commit(t, s, store.Name("0"), put("f", "x"))
	path := s.db.Path()
	for i := range 3 { // one after the other, as newer ones go on
		again := pathIn(t)
		copyOf(t, path, again)
		s := open(t, again, Options{})
		if n := left(t, s); n != 1+i {
			t.Errorf("%d are left, of %d", n, 1+i)
		}
		commit(t, s, store.Name(fmt.Sprint(1+i)), put("f", "x"))
		path = again
	}
}
