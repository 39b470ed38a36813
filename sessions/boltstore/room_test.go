package boltstore

import (
	"fmt"
	"math"
	"os"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"

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

// Small changes of many sessions, beside whose records large ones stand: the engine wrote those anew, and had all of a transaction
// in memory.
func TestSmallChangesLeaveLargeRecordsAlone(t *testing.T) {
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
func TestWhereAnEndMakesRoomLargeRecordsAreLeftAlone(t *testing.T) {
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

// meet has so many sessions, in a bubble, each about to keep a value of this size; ends tells how each one went.
func meet(s *Store, sessions, size int) (ends chan error) {
	ends = make(chan error, sessions)
	text := strings.Repeat("x", size)
	for i := range sessions {
		go func() { ends <- s.Commit(background, store.Name(fmt.Sprint(i)), put("f", text)) }()
	}
	synctest.Wait()
	return ends
}

func TestLargeChangesThatMeetAreWrittenInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, pathIn(t), Options{})
		proceed := held(s)
		const sessions, size = 40, 1 << 20
		ends := meet(s, sessions, size)
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

// What was removed makes room for the rest, and is on the disk then; the last second of a relaxed journal is not, and a crash of the machine takes it.
func TestACrashOfTheMachineLeavesNoHalfCommitsWhereRoomIsMade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // no second passes meanwhile
		const sessions = 12
		s := large(t, sessions, 1<<20)
		info, err := os.Stat(s.db.Path())
		if err != nil {
			t.Fatal(err)
		}
		s.db.MaxSize = int(info.Size()) // the disk is full
		s.ahead.next = math.MaxInt64    // what was recent would be in the file already
		var frames []int64
		for i := range sessions {
			frames = append(frames, s.journal.at)
			commit(t, s, store.Name(fmt.Sprint(i)), store.Change{Kind: store.Flow, ID: "f", Replaces: 1, Delete: true}, put("g", strings.Repeat("y", 600<<10)))
		}
		before := transactions(t, s)
		s.mu.RLock() // so that what was removed has left the file, and the rest is not there yet
		ends := make(chan error, 1)
		go func() { ends <- s.settleWithRoom(s.state(), nil) }()
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
		if at := int(onDisk); at < sessions {
			change(t, path+".journal", func(text []byte) []byte { clear(text[frames[at]:end]); return text })
		}
		again := open(t, path, Options{Relaxed: true})
		for i := range sessions {
			list, err := again.Load(background, store.Name(fmt.Sprint(i)))
			if err != nil || len(list) != 1 {
				t.Errorf("session %d has %d records: %v", i, len(list), err)
			}
		}
		if n := kept(t, s); n != sessions {
			t.Errorf("%d records, want %d", n, sessions)
		}
	})
}
