package redisstore

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/bridge/internal/redistest"
	"github.com/mcpbridge/bridge/sessions/store"
)

// TestTheFirstLayoutIsLeftAlone: what bridges of the first layout keep of calls is none of
// this one's, and the other way round; the session's own record is of both.
func TestTheFirstLayoutIsLeftAlone(t *testing.T) {
	server := redistest.Start(t)
	s := open(t, "redis://"+server.Addr())
	session := store.Name("s")
	tag := "mcp-bridge:{" + session + "}"
	server.Must("SET", tag+":s", "3 of a session", "PX", "3600000")
	server.Must("HSET", tag+":r", "f7", "of a call", ":f7", "2 99999999999999")
	list, err := s.Load(background, session)
	if err != nil || len(list) != 1 || list[0].Version != 3 || string(list[0].Value) != "of a session" {
		t.Errorf("it reads %v, %v", list, err)
	}
	c := flow("another")
	c.ID, c.Replaces = "7", 0
	if err := s.Commit(background, session, c); err != nil {
		t.Error(err)
	}
	page, err := s.List(background, "", 100)
	if err != nil || len(page.Records) != 2 {
		t.Errorf("it lists %v, %v", page, err)
	}
	if fields := server.Do("HLEN", tag+":r"); fields != ":2" {
		t.Errorf("the older one has %s fields", fields)
	}
	if err := s.End(background, session); err != nil {
		t.Error(err)
	}
	if own, other := server.Do("EXISTS", tag+":s", tag+":f7", tag+":i"), server.Do("EXISTS", tag+":r"); own != ":0" || other != ":1" {
		t.Errorf("%s of its own keys are left, %s of the older one's", own, other)
	}
}

// TestIndexesForgetWhatIsGone: a session that asks and asks takes no more of the server than
// what is kept of it, and its index ends with the last record.
func TestIndexesForgetWhatIsGone(t *testing.T) {
	server := redistest.Start(t)
	s := open(t, "redis://"+server.Addr())
	session := store.Name("s")
	c := flow("x")
	c.Replaces = 0
	commit := func(n int) {
		t.Helper()
		c.ID = strconv.Itoa(n)
		if err := s.Commit(background, session, c); err != nil {
			t.Fatal(err)
		}
	}
	commit(0)
	c.TTL = time.Millisecond
	members := func() int {
		n, err := strconv.Atoi(strings.TrimPrefix(server.Do("SCARD", s.base(session)+indexName), ":"))
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	n := 1
	for ; n < 10*lookEvery; n++ {
		commit(n)
	}
	for ; members() > lookAt && n < 100_000; n++ {
		commit(n)
	}
	if most := members(); most > lookAt {
		t.Errorf("of %d records %d are in the index", n, most)
	}
	if left := server.Do("PTTL", s.base(session)+indexName); strings.HasPrefix(left, ":-") {
		t.Errorf("the index lives for %s", left)
	}
}

// TestIndexesOutliveTheirRecords: whatever is written in whatever order, by one or by two.
func TestIndexesOutliveTheirRecords(t *testing.T) {
	server := redistest.Start(t)
	one, two := open(t, "redis://"+server.Addr()), open(t, "redis://"+server.Addr())
	session := store.Name("s")
	for i, ttl := range []time.Duration{time.Minute, time.Hour, time.Minute, 3 * time.Hour, time.Second, 5 * time.Hour} {
		for name, s := range map[string]*Store{"one": one, "two": two} {
			c := flow("x")
			c.ID, c.Replaces, c.TTL = fmt.Sprint(name, i), 0, ttl
			if err := s.Commit(background, session, c); err != nil {
				t.Fatal(err)
			}
			c.Replaces, c.TTL = 1, 2*ttl
			if err := s.Commit(background, session, c); err != nil {
				t.Fatal(err)
			}
			left, err := strconv.ParseInt(strings.TrimPrefix(server.Do("PTTL", s.base(session)+indexName), ":"), 10, 64)
			if err != nil || time.Duration(left)*time.Millisecond < 2*ttl-time.Minute {
				t.Fatalf("a record lives for %v, its index for %d ms, %v", 2*ttl, left, err)
			}
			drop := store.Change{Kind: store.Flow, ID: c.ID, Replaces: 2, Delete: true}
			if err := s.Commit(background, session, drop); err != nil {
				t.Fatal(err)
			}
		}
	}
	if server.Do("EXISTS", one.base(session)+indexName) != ":1" {
		t.Error("an index begins anew, without its expiry")
	}
}

// TestIndexesOutliveTheEndOfTheirSession: what a replica made after it, who knew nothing of it, stays, and no longer than it should.
func TestIndexesOutliveTheEndOfTheirSession(t *testing.T) {
	server := redistest.Start(t)
	s, other := open(t, "redis://"+server.Addr()), open(t, "redis://"+server.Addr())
	session := store.Name("s")
	commit := func(c store.Change) {
		t.Helper()
		if err := s.Commit(background, session, c); err != nil {
			t.Fatal(err)
		}
	}
	commit(store.Change{Kind: store.Flow, ID: "another", TTL: time.Hour})
	if err := other.End(background, session); err != nil {
		t.Fatal(err)
	}
	commit(store.Change{Kind: store.Flow, ID: "7", TTL: time.Hour, Value: []byte("made")})
	commit(store.Change{Kind: store.Flow, ID: "another", Replaces: store.Any, Delete: true})
	list, err := other.Load(background, session)
	if err != nil || len(list) != 1 || string(list[0].Value) != "made" {
		t.Errorf("it reads %v, %v", list, err)
	}
	if ttl := server.Do("PTTL", s.base(session)+indexName); len(ttl) < 7 || ttl[1] == '-' {
		t.Errorf("the index lives %s ms", ttl)
	}
}

// TestWhatIsNoRecordIsLeftAlone: somebody else who writes to the server cannot keep a
// session's records, or the leases of replicas, from being read.
func TestWhatIsNoRecordIsLeftAlone(t *testing.T) {
	server := redistest.Start(t)
	s := open(t, "redis://"+server.Addr())
	session := store.Name("s")
	c := flow("x")
	c.ID, c.Replaces = "7", 0
	if err := s.Commit(background, session, c); err != nil {
		t.Fatal(err)
	}
	base := s.base(session)
	server.Must("SADD", base+indexName, "", "f8", "f9", "zz", "gone")
	server.Must("SET", base, "1 of nothing")
	server.Must("SET", base+"f8", "no version")
	server.Must("HSET", base+"f9", "a", "b")
	server.Must("LPUSH", base+"s", "x")
	server.Must("SET", base+"zz", "-1 x")
	list, err := s.Load(background, session)
	if err != nil || len(list) != 1 || list[0].ID != "7" {
		t.Errorf("it reads %v, %v", list, err)
	}
	page, err := s.List(background, "", 100)
	if err != nil || len(page.Records) != 1 {
		t.Errorf("it lists %v, %v", page, err)
	}
}

// TestAForgedVersionIsNoFailureOfTheServer: whoever can write one key has the store count
// neither as unreachable nor as damaged.
func TestAForgedVersionIsNoFailureOfTheServer(t *testing.T) {
	server := redistest.Start(t)
	s := open(t, "redis://"+server.Addr())
	watched := store.NewMonitored(s, func(up bool, why error) { t.Errorf("up: %v, %v", up, why) })
	t.Cleanup(func() { _ = watched.Close() })
	for i, forged := range []string{"99999999999999999999 x", "9999999999999999999999999 x", "1000000000000000 x", "-1 x", "7", "x", " ", ""} {
		at := store.Address{Session: store.Name(strconv.Itoa(i)), Kind: store.Flow, ID: "1"}
		own := store.Address{Session: at.Session, Kind: store.Session}
		server.Must("SADD", s.base(at.Session)+indexName, "f1")
		server.Must("SET", s.keyOf(at), forged)
		server.Must("SET", s.keyOf(own), forged)
		for _, at := range []store.Address{at, own} {
			if r, err := watched.Get(background, at); !errors.Is(err, store.ErrNotFound) {
				t.Errorf("%q: it reads %v, %v", forged, r, err)
			}
		}
		if list, err := watched.Load(background, at.Session); err != nil || len(list) != 0 {
			t.Errorf("%q: it loads %v, %v", forged, list, err)
		}
		change := store.Change{Kind: store.Flow, ID: "1", Replaces: store.Any, Value: []byte("new"), TTL: time.Minute}
		if err := watched.Commit(background, at.Session, change); err != nil {
			t.Errorf("%q: %v", forged, err)
		}
		if r, err := watched.Get(background, at); err != nil || string(r.Value) != "new" {
			t.Errorf("%q: what replaces it is %v, %v", forged, r, err)
		}
	}
	list := store.Address{Session: store.Name("list"), Kind: store.Session}
	server.Must("LPUSH", s.keyOf(list), "x")
	if _, err := watched.Get(background, list); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("of a list it says %v", err)
	}
	conflict := (*store.ConflictError)(nil)
	change := store.Change{Kind: store.Session, Replaces: 1, Value: []byte("new"), TTL: time.Minute}
	if err := watched.Commit(background, list.Session, change); !errors.As(err, &conflict) {
		t.Errorf("what replaces the record that was there is told %v", err)
	}
	change.Replaces = store.Any
	if err := watched.Commit(background, list.Session, change); err != nil {
		t.Errorf("what replaces anything is told %v", err)
	}
}
