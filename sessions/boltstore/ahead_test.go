package boltstore

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/bridge/sessions/store"
	bolt "go.etcd.io/bbolt"
)

// behind is a store whose file is being written to, and does not get on with it until proceed is called. All that was
// committed is on its way there: two records of each of some sessions, whose names are numbers.
func behind(t *testing.T, opt Options) (s *Store, proceed func()) {
	t.Helper()
	opt.journal = 32 << 10
	s = open(t, pathIn(t), opt)
	tx, err := s.db.Begin(true)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; s.ahead.over == nil; i++ {
		commit(t, s, store.Name(fmt.Sprint(i)), put("kept", strings.Repeat("x", 500)), put("other", strings.Repeat("y", 500)))
	}
	over := s.ahead.over
	return s, func() {
		if err := tx.Rollback(); err != nil {
			t.Error(err)
		}
		<-over
	}
}

// values returns what a session has, by id.
func values(t *testing.T, s *Store, session string) map[string]string {
	t.Helper()
	list, err := s.Load(background, session)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, r := range list {
		out[r.ID] = string(r.Value)
	}
	return out
}

// TestCommitsGoOnWhileTheFileIsWritten: they replace and remove what is on its way there, and what
// they said is what there is: at once, when all has been brought there, and after a crash before and after that.
func TestCommitsGoOnWhileTheFileIsWritten(t *testing.T) {
	for name, opt := range map[string]Options{"strict": {}, "relaxed": {Relaxed: true}} {
		t.Run(name, func(t *testing.T) {
			s, proceed := behind(t, opt)
			changed, emptied, ended := store.Name("0"), store.Name("1"), store.Name("2")
			commit(t, s, changed, store.Change{Kind: store.Flow, ID: "kept", Replaces: 1, Value: []byte("new"), TTL: time.Hour})
			commit(t, s, emptied, store.Change{Kind: store.Flow, ID: "kept", Replaces: 1, Delete: true})
			if err := s.End(background, ended); err != nil {
				t.Fatal(err)
			}
			check := func(when string, s *Store) {
				t.Helper()
				if v := values(t, s, changed); v["kept"] != "new" || len(v["other"]) != 500 {
					t.Errorf("%s: the value that was replaced is %.10q, the other one has %d bytes", when, v["kept"], len(v["other"]))
				}
				if v := values(t, s, emptied); len(v) != 1 || len(v["other"]) != 500 {
					t.Errorf("%s: %d records where one of two was removed", when, len(v))
				}
				if v := values(t, s, ended); len(v) != 0 {
					t.Errorf("%s: an ended session has %d records", when, len(v))
				}
				if v := values(t, s, store.Name("3")); len(v) != 2 {
					t.Errorf("%s: %d records of a session that nobody changed", when, len(v))
				}
			}
			afterCrash := func(when string) {
				t.Helper()
				path := pathIn(t)
				copyOf(t, s.db.Path(), path)
				check(when, open(t, path, Options{}))
			}
			check("under way", s)
			afterCrash("a crash under way")
			proceed()
			afterCrash("a crash before it was noted")
			commit(t, s, store.Name("more"), put("f", "x"))
			if n := len(s.recent); n > 4 {
				t.Errorf("%d sessions are recent still", n)
			}
			check("afterwards", s)
			afterCrash("a crash afterwards")
			if err := s.settle(s.state()); err != nil {
				t.Fatal(err)
			}
			check("with all in the file", s)
			if s.journal.at != 0 {
				t.Error("the journal did not begin anew")
			}
		})
	}
}

// TestAFullJournalWaitsForWhatIsOnItsWay: what is older must not come into the file behind what is newer.
func TestAFullJournalWaitsForWhatIsOnItsWay(t *testing.T) {
	s, proceed := behind(t, Options{Relaxed: true})
	session, generation, version := store.Name("0"), s.journal.generation, uint64(1)
	replace := func() error {
		value := fmt.Appendf(nil, "%d %s", version, strings.Repeat("z", 900))
		err := s.Commit(background, session, store.Change{Kind: store.Flow, ID: "kept", Replaces: version, Value: value, TTL: time.Hour})
		version++
		return err
	}
	for s.journal.at+1000 < s.journal.size {
		if err := replace(); err != nil {
			t.Fatal(err)
		}
	}
	full := make(chan error, 1)
	go func() { full <- replace() }()
	proceed()
	if err := <-full; err != nil {
		t.Fatal(err)
	}
	if s.journal.generation == generation {
		t.Error("the journal did not begin anew")
	}
	path := s.db.Path()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if v := values(t, open(t, path, Options{}), session)["kept"]; !strings.HasPrefix(v, fmt.Sprint(version-1, " ")) {
		t.Errorf("the last value is %.10q", v)
	}
}

// TestWhoWritesToTheFileWaitsForWhatIsOnItsWay: what that brings is older.
func TestWhoWritesToTheFileWaitsForWhatIsOnItsWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, pathIn(t), Options{Relaxed: true})
		over := make(chan struct{})
		if err := s.do(background, func(*batch) error { s.ahead.over = over; return nil }); err != nil {
			t.Fatal(err)
		}
		written := make(chan error, 1)
		go func() { written <- s.Ping(background) }()
		synctest.Wait()
		if len(written) > 0 {
			t.Error("the file was written to before what is older")
		}
		close(over)
		if err := <-written; err != nil {
			t.Error(err)
		}
	})
}

// TestWhoReadsAndWhoWritesLeaveTheFileRoomToGrow: to map it anew takes that nobody looks at it.
func TestWhoReadsAndWhoWritesLeaveTheFileRoomToGrow(t *testing.T) {
	s := open(t, pathIn(t), Options{Relaxed: true, journal: 64 << 10})
	var all sync.WaitGroup
	for i := range 8 {
		session := store.Name(fmt.Sprint(i))
		all.Go(func() {
			for n := range 60 {
				if err := s.Commit(background, session, put(fmt.Sprint(n), strings.Repeat("x", 4000))); err != nil {
					t.Error(err)
					return
				}
				if _, err := s.Load(background, session); err != nil {
					t.Error(err)
				}
				if _, err := s.List(background, "", 20); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	for i := range 8 {
		if v := values(t, s, store.Name(fmt.Sprint(i))); len(v) != 60 {
			t.Errorf("session %d has %d records of 60", i, len(v))
		}
	}
}

// heldUp is told of each look at the file as it begins.
type heldUp struct {
	bolt.DefaultLogger
	next func() // at the next one; nil: nothing
}

func (l *heldUp) Debugf(format string, v ...any) {
	if next := l.next; next != nil && strings.HasPrefix(format, "Starting a new transaction") && v[0] == false {
		l.next = nil
		next()
	}
}

func (*heldUp) Debug(...any)            {}
func (*heldUp) Infof(string, ...any)    {}
func (*heldUp) Info(...any)             {}
func (*heldUp) Errorf(string, ...any)   {}
func (*heldUp) Error(...any)            {}
func (*heldUp) Warningf(string, ...any) {}
func (*heldUp) Warning(...any)          {}

// TestAFileThatGrowsIsWhole: whoever looks whether its end is missing may see it as it was before, or after.
func TestAFileThatGrowsIsWhole(t *testing.T) {
	l := new(heldUp)
	db, err := bolt.Open(pathIn(t), 0o600, &bolt.Options{Logger: l})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	l.next = func() {
		err := db.Update(func(tx *bolt.Tx) error {
			b, err := tx.CreateBucket(bucketName)
			if err != nil {
				return err
			}
			return b.Put([]byte("k"), make([]byte, 1<<20))
		})
		if err != nil {
			t.Error(err)
		}
	}
	if err := wanting(db); err != nil {
		t.Error(err)
	}
}

// TestWhatWasBroughtIsForgotten: but nothing that has taken its place.
func TestWhatWasBroughtIsForgotten(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		r, want := recent{}, map[store.Address]string{}
		var list []brought
		for session := range 4 {
			name := store.Name(fmt.Sprint(session))
			for id := range random.IntN(8) {
				at := store.Address{Session: name, Kind: store.Flow, ID: fmt.Sprint(id)}
				before := entry{raw: []byte("before")}
				if random.IntN(4) == 0 {
					before.raw = nil
				}
				switch random.IntN(4) {
				case 0: // it came since
					r.set(at, before)
					want[at] = string(before.raw)
				case 1: // it was replaced
					list = append(list, brought{name, recentEntry{at.Kind, at.ID, before}})
					r.set(at, entry{raw: []byte("since")})
					want[at] = "since"
				case 2: // it is gone
					list = append(list, brought{name, recentEntry{at.Kind, at.ID, before}})
				default:
					list = append(list, brought{name, recentEntry{at.Kind, at.ID, before}})
					r.set(at, before)
				}
			}
		}
		r.forget(list)
		left := map[store.Address]string{}
		for session, e := range r.all() {
			left[e.at(session)] = string(e.raw)
		}
		if !maps.Equal(left, want) {
			t.Fatalf("left are %v, want %v", left, want)
		}
	}
}
