package boltstore

import (
	"fmt"
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
	look := func() (transactions, bytes int64) {
		err := s.db.View(func(tx *bolt.Tx) error {
			transactions = int64(tx.ID())
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		stats := s.db.Stats()
		return transactions, stats.TxStats.GetPageAlloc()
	}
	before, had := look()
	work()
	after, has := look()
	return (has - had) / max(after-before, 1)
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
	if err := s.bring(14, func(*recentEntry) bool { return true }); err != nil {
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
