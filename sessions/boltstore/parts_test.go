package boltstore

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/bridge/sessions/store"
	bolt "go.etcd.io/bbolt"
)

// large is a store in whose file so many sessions have a call of this size, and which gives pages back whenever it looks.
func large(t *testing.T, sessions, size int) *Store {
	t.Helper()
	opt := Options{Relaxed: true, mapped: 1}
	path := pathIn(t)
	s := open(t, path, opt)
	text := strings.Repeat("x", size)
	for i := range sessions {
		commit(t, s, store.Name(fmt.Sprint(i)), put("f", text))
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return open(t, path, opt)
}

// written returns how many bytes each transaction of the file had, about, while work was done.
func written(t *testing.T, s *Store, work func()) (each int64) {
	t.Helper()
	bytes := func() int64 { stats := s.db.Stats(); return stats.TxStats.GetPageAlloc() }
	before, had := transactions(t, s), bytes()
	work()
	return (bytes() - had) / max(transactions(t, s)-before, 1)
}

// transactions returns how many the file has seen.
func transactions(t *testing.T, s *Store) (n int64) {
	t.Helper()
	err := s.db.View(func(tx *bolt.Tx) error {
		n = int64(tx.ID())
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// Small changes of many sessions, beside whose records large ones stand: the engine writes those anew, and has all of a transaction
// in memory.
func TestSmallChangesBesideLargeRecordsGoIntoTheFileInParts(t *testing.T) {
	const sessions = 60
	s := large(t, sessions, 1<<20)
	each := written(t, s, func() {
		for i := range sessions {
			commit(t, s, store.Name(fmt.Sprint(i)), put("g", "small"))
		}
		if err := s.Ping(background); err != nil {
			t.Fatal(err)
		}
	})
	if most := int64(24 << 20); each > most {
		t.Errorf("a transaction has %d bytes, more than %d", each, most)
	}
	if n := kept(t, s); n != 2*sessions {
		t.Errorf("%d records, want %d", n, 2*sessions)
	}
}

// The same after a disk that was full, where what is ended makes room: whether the journal has taken the end or not.
func TestWhereAnEndMakesRoomAllElseGoesIntoTheFileInParts(t *testing.T) {
	for name, fails := range map[string]bool{"the journal takes it": false, "the journal takes nothing": true} {
		t.Run(name, func(t *testing.T) {
			const sessions = 60
			s := large(t, sessions, 1<<20)
			for i := range sessions {
				commit(t, s, store.Name(fmt.Sprint(i)), put("g", "small"))
			}
			each := written(t, s, func() {
				s.short, s.journal.failed = true, fails
				if err := s.End(background, store.Name("0")); err != nil {
					t.Fatal(err)
				}
			})
			if most := int64(24 << 20); each > most {
				t.Errorf("a transaction has %d bytes, more than %d", each, most)
			}
			if len(s.recent) > 0 || s.short {
				t.Errorf("%d sessions did not get there; short: %v", len(s.recent), s.short)
			}
			if n := kept(t, crash(Options{Relaxed: true})(t, s).(*Store)); n != 2*sessions-2 {
				t.Errorf("%d of %d are left", n, 2*sessions-2)
			}
		})
	}
}

func TestLargeChangesThatMeetAreWrittenInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, pathIn(t), Options{})
		proceed := held(s)
		const sessions, size = 40, 1 << 20
		ends := make(chan error, sessions)
		text := strings.Repeat("x", size)
		for i := range sessions {
			go func() { ends <- s.Commit(background, store.Name(fmt.Sprint(i)), put("f", text)) }()
		}
		synctest.Wait()
		each := written(t, s, func() {
			proceed()
			for range sessions {
				if err := <-ends; err != nil {
					t.Error(err)
				}
			}
		})
		if most := int64(24 << 20); each > most {
			t.Errorf("a transaction has %d bytes, more than %d", each, most)
		}
		if n := kept(t, s); n != sessions {
			t.Errorf("%d records, want %d", n, sessions)
		}
	})
}

// kept returns how many records there are.
func kept(t *testing.T, s *Store) int {
	t.Helper()
	page, err := s.List(background, "", 1000)
	if err != nil {
		t.Fatal(err)
	}
	return len(page.Records)
}

func TestACrashBetweenTwoPartsLosesNothing(t *testing.T) {
	s := open(t, pathIn(t), Options{})
	for i := range 10 {
		commit(t, s, store.Name(fmt.Sprint(i)), put("f", "old"), put("g", "old"))
	}
	if err := s.Ping(background); err != nil { // which brings them into the file
		t.Fatal(err)
	}
	for i := range 10 {
		commit(t, s, store.Name(fmt.Sprint(i)), store.Change{Kind: store.Flow, ID: "f", Replaces: 1, TTL: time.Hour, Value: []byte("new")},
			store.Change{Kind: store.Flow, ID: "g", Replaces: store.Any, Delete: true}, put("h", "new"))
	}
	if err := s.bring(14, func(store.Address, *recentEntry) bool { return true }); err != nil {
		t.Fatal(err)
	}
	check := func(s *Store) {
		t.Helper()
		for i := range 10 {
			list, err := s.Load(background, store.Name(fmt.Sprint(i)))
			if err != nil || len(list) != 2 || list[0].Version != 2 || string(list[0].Value) != "new" || string(list[1].Value) != "new" {
				t.Errorf("session %d: %+v, %v", i, list, err)
			}
		}
	}
	check(s)
	s = crash(Options{})(t, s).(*Store)
	check(s)
	commit(t, s, store.Name("0"), store.Change{Kind: store.Flow, ID: "h", Replaces: 1, Delete: true})
	if n := left(t, s); n != 19 {
		t.Errorf("%d of 19 are left", n)
	}
}

// A part is on the disk once it is in the file; the last second of a relaxed journal is not, and a crash of the machine takes it.
func TestACrashOfTheMachineBetweenTwoPartsLeavesNoHalfCommits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // no second passes meanwhile
		const sessions = 12
		s := large(t, sessions, 1<<20)
		var frames []int64
		for i := range sessions {
			frames = append(frames, s.journal.at)
			commit(t, s, store.Name(fmt.Sprint(i)), put("g", "small"), put("h", "small"))
		}
		before := transactions(t, s)
		s.mu.RLock() // so that the first part is in the file, and no second one
		ends := make(chan error, 1)
		go func() { ends <- s.settleInParts(s.state(), nil) }()
		for transactions(t, s) == before {
			runtime.Gosched()
		}
		path := pathIn(t)
		copyOf(t, s.db.Path(), path)
		end, onDisk := s.journal.at, s.journal.onDisk()
		s.mu.RUnlock()
		if err := <-ends; err != nil {
			t.Fatal(err)
		}
		if at := int(onDisk) - 1; at < sessions { // the first frame is of no commit
			change(t, path+".journal", func(text []byte) []byte { clear(text[frames[max(at, 0)]:end]); return text })
		}
		again := open(t, path, Options{Relaxed: true})
		for i := range sessions {
			list, err := again.Load(background, store.Name(fmt.Sprint(i)))
			if err != nil {
				t.Fatal(err)
			}
			if n := len(list) - 1; n != 0 && n != 2 {
				t.Errorf("session %d has %d of the two records of a commit", i, n)
			}
		}
	})
}
