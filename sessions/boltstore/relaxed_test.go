package boltstore

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/bridge/sessions/store"
)

// relaxed returns a store of which a process left behind ten commits, and where in its journal the frames begin; before
// each of the commits in synced all that there was had come to the disk. It is called where no second passes meanwhile.
func relaxed(t *testing.T, synced ...int) (path string, frames []int64) {
	t.Helper()
	s := open(t, pathIn(t), Options{Relaxed: true, journal: smallJournal})
	next := 0
	for i := range 11 {
		for ; next < len(synced) && synced[next] == i; next++ {
			if err := errors.Join(s.tell(), s.sync()); err != nil {
				t.Fatal(err)
			}
		}
		frames = append(frames, s.journal.at)
		if i < 10 {
			commit(t, s, store.Name(fmt.Sprint(i)), put("f", strings.Repeat("x", 100)))
		}
	}
	path = pathIn(t)
	copyOf(t, s.db.Path(), path)
	return path, frames
}

// damaged opens a copy of the store after its journal was changed, and returns how many of its commits are
// left; -1: it was refused.
func damaged(t *testing.T, path string, edit func(text []byte)) int {
	t.Helper()
	after := pathIn(t)
	copyOf(t, path, after)
	change(t, after+".journal", func(text []byte) []byte { edit(text); return text })
	before := bytes.Clone(journalOf(t, after))
	s, err := Open(after, Options{Relaxed: true, journal: smallJournal})
	if errors.Is(err, store.ErrCorrupt) && strings.Contains(err.Error(), "its journal is damaged at byte") {
		if !bytes.Equal(before, journalOf(t, after)) {
			t.Error("it was changed")
		}
		return -1
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	return left(t, s)
}

func journalOf(t *testing.T, path string) (text []byte) {
	t.Helper()
	change(t, path+".journal", func(now []byte) []byte { text = now; return now })
	return text
}

// What came to the disk seconds ago is there after a crash of the machine, too: that it is not is damage, and what stands
// behind it is not lost without a word.
func TestARelaxedJournalIsDamagedWhereItWasOnTheDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path, frames := relaxed(t, 3, 6, 9)
		for i := range 10 {
			for name, edit := range map[string]func(text []byte){
				"a flipped bit": func(text []byte) { text[frames[i]+100] ^= 1 },
				"a blank frame": func(text []byte) { clear(text[frames[i]:frames[i+1]]) },
			} {
				want := -1
				if i == 9 { // of which nobody knows whether it was on the disk
					want = 9
				}
				if n := damaged(t, path, edit); n != want {
					t.Errorf("frame %d, %s: %d are left, want %d", i, name, n, want)
				}
			}
		}
	})
}

// The machine may have kept any part of the last second, in any order.
func TestWhatOfTheLastSecondDidNotComeToTheDiskIsNoDamage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path, frames := relaxed(t, 4)
		random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the same each time
		for range 50 {
			first := 10
			n := damaged(t, path, func(text []byte) {
				for i := 9; i >= 4; i-- {
					if random.IntN(2) == 0 {
						first = i
						clear(text[frames[i]+random.Int64N(40) : frames[i+1]])
					}
				}
			})
			if n != first {
				t.Errorf("%d are left, want %d", n, first)
			}
		}
	})
}

// Nothing has to come behind what is on the disk for damage to be seen: two seconds later the journal says so itself.
func TestARelaxedJournalThatRestsSaysWhatIsOnTheDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path, frames := relaxed(t, 10, 10, 10, 10)
		if n := damaged(t, path, func(text []byte) { text[frames[2]+100] ^= 1 }); n != -1 {
			t.Errorf("%d are left", n)
		}
		if n := damaged(t, path, func([]byte) {}); n != 10 {
			t.Errorf("without damage %d are left", n)
		}
		if size := frames[10] - frames[9]; size > frames[9]-frames[8]+frameHead+syncedSize {
			t.Errorf("it goes on saying so: %d bytes", size)
		}
	})
}

// A journal that begins anew says nothing of what was in it before.
func TestARelaxedJournalThatBeginsAnewSaysNothingOfTheOneBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, pathIn(t), Options{Relaxed: true, journal: smallJournal})
		for i := range 5 {
			commit(t, s, store.Name(fmt.Sprint(i)), put("f", "x"))
		}
		if err := errors.Join(s.sync(), s.settle(s.state())); err != nil {
			t.Fatal(err)
		}
		first := s.journal.at
		for i := range 5 {
			commit(t, s, store.Name(fmt.Sprint(i)), store.Change{Kind: store.Flow, ID: "f", Replaces: store.Any, Value: []byte("y"), TTL: time.Hour})
		}
		path := pathIn(t)
		copyOf(t, s.db.Path(), path)
		if n := damaged(t, path, func(text []byte) { clear(text[first : first+frameHead]) }); n != 5 {
			t.Errorf("%d of 5 are left", n)
		}
	})
}

// Earlier builds have said nothing of what is on the disk.
func TestARelaxedJournalOfAnEarlierBuildMayHaveHoles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path, frames := relaxed(t)
		if n := damaged(t, path, func(text []byte) { clear(text[frames[5]:frames[6]]) }); n != 5 {
			t.Errorf("%d of 5 are left", n)
		}
	})
}

// A commit costs the disk as much as before: it says so once a second.
func TestAFrameSaysOnlyOnceWhatIsOnTheDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, frames := relaxed(t, 4)
		plain := frames[1] - frames[0]
		for i := range 10 {
			want := plain
			if i == 4 {
				want += syncedSize
			}
			if size := frames[i+1] - frames[i]; size != want {
				t.Errorf("frame %d has %d bytes, want %d", i, size, want)
			}
		}
	})
}
