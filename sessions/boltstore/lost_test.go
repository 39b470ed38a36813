package boltstore

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/mcpbridge/bridge/sessions/store"
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
