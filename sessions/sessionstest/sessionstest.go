// Package sessionstest is the contract of package store as a test suite: an engine
// that passes it can keep a bridge's sessions.
//
//	func TestContract(t *testing.T) {
//		sessionstest.Run(t, sessionstest.Engine{Open: func(t *testing.T) store.Store { … }})
//	}
package sessionstest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcpbridge/bridge/sessions/store"
)

// Engine is what the suite tests.
type Engine struct {
	// Open returns a store that may hold records of other tests, but of none of
	// this suite's sessions. It is closed by the suite.
	Open func(t *testing.T) store.Store
	// Crash ends a store without a word, as if its process were killed, and opens
	// what it left. It is nil where nothing is left.
	Crash func(t *testing.T, s store.Store) store.Store
	// Another opens the same engine once more, as another replica has it. It is nil where one
	// process alone can have it.
	Another func(t *testing.T, s store.Store) store.Store
}

// Run runs the suite.
func Run(t *testing.T, e Engine) {
	for name, test := range map[string]func(*testing.T, store.Store){
		"a record's life":                  recordsLife,
		"all changes or none":              allOrNone,
		"one of many takes a record over":  oneWins,
		"any version":                      anyVersion,
		"values and ids are bytes":         bytesStay,
		"values are the writer's again":    valuesNotKept,
		"large values are like others":     largeValues,
		"sessions share nothing":           apart,
		"records expire":                   expiry,
		"touching postpones expiry":        touching,
		"a session outlives its calls":     calling,
		"an ended session leaves nothing":  ending,
		"listing finds everything":         listing,
		"commits that nobody takes":        refusals,
		"a context that is done":           contextDone,
		"leases are records like others":   leases,
		"many sessions at once":            manyAtOnce,
		"a closed store says that it is":   closed,
		"a store that works can be pinged": ping,
	} {
		t.Run(name, func(t *testing.T) {
			s := e.Open(t)
			t.Cleanup(func() { _ = s.Close() })
			test(t, s)
		})
	}
	t.Run("who has read a record hears of its changes", func(t *testing.T) { watching(t, e) })
	t.Run("two who change the same record", func(t *testing.T) { contested(t, e) })
	t.Run("any operations in any order", func(t *testing.T) { agreesWithModel(t, e) })
}

// long is a lifetime that no test reaches.
const long = time.Hour

var background = context.Background()

// session returns a name that no other call returns.
var session = func() func() string {
	var mu sync.Mutex
	n, seed := 0, time.Now().UnixNano()
	return func() string {
		mu.Lock()
		defer mu.Unlock()
		n++
		return store.Name(fmt.Sprint(seed, n))
	}
}()

func put(kind store.Kind, id string, replaces uint64, value string) store.Change {
	return store.Change{Kind: kind, ID: id, Replaces: replaces, TTL: long, Value: []byte(value)}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantConflict(t *testing.T, err error, at store.Address) {
	t.Helper()
	var conflict *store.ConflictError
	if !errors.As(err, &conflict) || conflict.Address != at {
		t.Fatalf("got %v, want a conflict at %s", err, at)
	}
}

// wantRecord checks one record, both ways of reading it.
func wantRecord(t *testing.T, s store.Store, at store.Address, version uint64, value string) {
	t.Helper()
	wantSize(t, s, at, value)
	for way, read := range map[string]func() (store.Record, error){
		"Get":   func() (store.Record, error) { return s.Get(background, at) },
		"Load":  func() (store.Record, error) { return loaded(s, at) },
		"Fresh": func() (store.Record, error) { return store.Fresh(background, s, at) },
	} {
		r, err := read()
		if err != nil {
			t.Fatalf("%s %s: %v", way, at, err)
		}
		if r.Address != at || r.Version != version || string(r.Value) != value || r.Err != nil {
			t.Fatalf("%s %s: got version %d of %s with %q, %v; want version %d with %q", way, at, r.Version, r.Address, r.Value, r.Err, version, value)
		}
		if r.TTL <= 0 || r.TTL > long+time.Second {
			t.Fatalf("%s %s: lives for %v", way, at, r.TTL)
		}
	}
}

// wantSize checks what a store says of the size of a value, which a seal may make a little longer.
func wantSize(t *testing.T, s store.Store, at store.Address, value string) {
	t.Helper()
	if size, err := store.Size(background, s, at); err != nil || size < len(value) || size > len(value)+64 {
		t.Fatalf("%s: got %d bytes, %v; want %d", at, size, err, len(value))
	}
}

func loaded(s store.Store, at store.Address) (store.Record, error) {
	list, err := s.Load(background, at.Session)
	if err != nil {
		return store.Record{}, err
	}
	if i := slices.IndexFunc(list, func(r store.Record) bool { return r.Address == at }); i >= 0 {
		return list[i], nil
	}
	return store.Record{}, store.ErrNotFound
}

func wantNone(t *testing.T, s store.Store, at store.Address) {
	t.Helper()
	if r, err := s.Get(background, at); !errors.Is(err, store.ErrNotFound) {
		t.Fatalf("Get %s: got version %d, %v; want none", at, r.Version, err)
	}
	if size, err := store.Size(background, s, at); !errors.Is(err, store.ErrNotFound) {
		t.Fatalf("Size %s: got %d bytes, %v; want none", at, size, err)
	}
	if r, err := loaded(s, at); !errors.Is(err, store.ErrNotFound) {
		t.Fatalf("Load %s: got version %d, %v; want none", at, r.Version, err)
	}
}

func recordsLife(t *testing.T, s store.Store) {
	name := session()
	at := store.Address{Session: name, Kind: store.Flow, ID: "f1"}
	wantNone(t, s, at)
	must(t, s.Commit(background, name, put(store.Flow, "f1", 0, "asked")))
	wantRecord(t, s, at, 1, "asked")
	must(t, s.Commit(background, name, put(store.Flow, "f1", 1, "answered")))
	wantRecord(t, s, at, 2, "answered")
	must(t, s.Commit(background, name, store.Change{Kind: store.Flow, ID: "f1", Replaces: 2, Delete: true}))
	wantNone(t, s, at)
	must(t, s.Commit(background, name, put(store.Flow, "f1", 0, "another")))
	wantRecord(t, s, at, 1, "another")
}

func allOrNone(t *testing.T, s store.Store) {
	name := session()
	at := func(id string) store.Address { return store.Address{Session: name, Kind: store.Flow, ID: id} }
	must(t, s.Commit(background, name, put(store.Flow, "a", 0, "1"), put(store.Flow, "b", 0, "1")))
	must(t, s.Commit(background, name, put(store.Flow, "b", 1, "2")))

	err := s.Commit(background, name, put(store.Flow, "a", 1, "x"), put(store.Flow, "b", 1, "x"), put(store.Flow, "c", 0, "x"))
	wantConflict(t, err, at("b"))
	wantRecord(t, s, at("a"), 1, "1")
	wantRecord(t, s, at("b"), 2, "2")
	wantNone(t, s, at("c"))

	wantConflict(t, s.Commit(background, name, put(store.Flow, "a", 0, "x")), at("a"))
	wantConflict(t, s.Commit(background, name, put(store.Flow, "c", 1, "x")), at("c"))
	wantConflict(t, s.Commit(background, name, store.Change{Kind: store.Flow, ID: "a", Replaces: 9, Delete: true}), at("a"))
	wantConflict(t, s.Commit(background, name, store.Change{Kind: store.Flow, ID: "c", Replaces: 1, Delete: true}), at("c"))
	wantRecord(t, s, at("a"), 1, "1")
}

// oneWins: of many who replace the same version exactly one succeeds.
func oneWins(t *testing.T, s store.Store) {
	name := session()
	must(t, s.Commit(background, name, put(store.Flow, "f", 0, "of the dead")))
	const replicas = 16
	errs := make(chan error, replicas)
	for i := range replicas {
		go func() { errs <- s.Commit(background, name, put(store.Flow, "f", 1, fmt.Sprint(i))) }()
	}
	won := 0
	for range replicas {
		err := <-errs
		var conflict *store.ConflictError
		switch {
		case err == nil:
			won++
		case !errors.As(err, &conflict):
			t.Error(err)
		}
	}
	if won != 1 {
		t.Errorf("%d of %d took the record over", won, replicas)
	}
}

func anyVersion(t *testing.T, s store.Store) {
	name := session()
	at := store.Address{Session: name, Kind: store.LastWord, ID: "7"}
	must(t, s.Commit(background, name, put(store.LastWord, "7", store.Any, "a")))
	wantRecord(t, s, at, 1, "a")
	must(t, s.Commit(background, name, put(store.LastWord, "7", store.Any, "b")))
	wantRecord(t, s, at, 2, "b")
	drop := store.Change{Kind: store.LastWord, ID: "7", Replaces: store.Any, Delete: true}
	must(t, s.Commit(background, name, drop))
	wantNone(t, s, at)
	must(t, s.Commit(background, name, drop)) // nothing there: nothing to do
}

func bytesStay(t *testing.T, s store.Store) {
	name := session()
	value := string([]byte{0, 1, 2, 0xff, '\r', '\n', '"', '{'})
	must(t, s.Commit(background, name, put(store.Session, "", 0, value)))
	wantRecord(t, s, store.Address{Session: name, Kind: store.Session}, 1, value)
	large := string(bytes.Repeat([]byte{0xfe, 0}, 1<<20))
	for _, id := range []string{"1", "10", "s", "with space", "a:b", "{x}", "nul\x00byte", "\xff\xfe", "ÿ", strings.Repeat("i", store.MaxID)} {
		must(t, s.Commit(background, name, put(store.Flow, id, 0, "of "+id), put(store.LastWord, id, 0, "")))
		wantRecord(t, s, store.Address{Session: name, Kind: store.Flow, ID: id}, 1, "of "+id)
		wantRecord(t, s, store.Address{Session: name, Kind: store.LastWord, ID: id}, 1, "")
	}
	must(t, s.Commit(background, name, put(store.Flow, "1", 1, large)))
	wantRecord(t, s, store.Address{Session: name, Kind: store.Flow, ID: "1"}, 2, large)
}

// largeValues: those that an engine may have take another way than others.
func largeValues(t *testing.T, s store.Store) {
	name := session()
	own, call := store.Address{Session: name, Kind: store.Session}, store.Address{Session: name, Kind: store.Flow, ID: "f"}
	var version uint64
	for _, size := range []int{store.Large - 40, store.Large - 1, store.Large, store.Large + 1, 1, 4 * store.Large, 5 * store.Large} {
		value := strings.Repeat("v", size)
		must(t, s.Commit(background, name, put(own.Kind, "", version, value)))
		must(t, s.Commit(background, name, put(call.Kind, call.ID, version, value)))
		version++
		wantRecord(t, s, own, version, value)
		wantRecord(t, s, call, version, value)
		wantConflict(t, s.Commit(background, name, put(call.Kind, call.ID, version+1, value)), call)
		wantConflict(t, s.Commit(background, name, put(own.Kind, "", 0, value)), own)
		wantConflict(t, s.Commit(background, name, put(store.Flow, "new", version, value)), store.Address{Session: name, Kind: store.Flow, ID: "new"})
	}
	must(t, s.Commit(background, name, put(own.Kind, "", version, "small"), put(call.Kind, call.ID, store.Any, strings.Repeat("v", store.Large))))
	wantRecord(t, s, own, version+1, "small")
	must(t, s.Touch(background, store.Touch{Session: name, TTL: long}))
	must(t, s.Commit(background, name, store.Change{Kind: call.Kind, ID: call.ID, Replaces: version + 1, Delete: true}))
	wantNone(t, s, call)
	must(t, s.Commit(background, name, put(call.Kind, call.ID, 0, strings.Repeat("v", store.Large))))
	must(t, s.End(background, name))
	wantNone(t, s, own)
	wantNone(t, s, call)
}

// valuesNotKept: who wrote a value uses its memory for the next one.
func valuesNotKept(t *testing.T, s store.Store) {
	name := session()
	changes := []store.Change{put(store.Session, "", 0, "of a session"), put(store.Flow, "f", 0, "of a call")}
	must(t, s.Commit(background, name, changes...))
	for _, c := range changes {
		clear(c.Value)
	}
	wantRecord(t, s, store.Address{Session: name, Kind: store.Session}, 1, "of a session")
	wantRecord(t, s, store.Address{Session: name, Kind: store.Flow, ID: "f"}, 1, "of a call")
}

func apart(t *testing.T, s store.Store) {
	one, other := session(), session()
	longer := one + "0"
	for _, name := range []string{one, other, longer} {
		must(t, s.Commit(background, name, put(store.Session, "", 0, name), put(store.Flow, "f", 0, name)))
	}
	must(t, s.End(background, one))
	for _, name := range []string{other, longer} {
		wantRecord(t, s, store.Address{Session: name, Kind: store.Session}, 1, name)
		wantRecord(t, s, store.Address{Session: name, Kind: store.Flow, ID: "f"}, 1, name)
		must(t, s.End(background, name))
	}
}

func refusals(t *testing.T, s store.Store) {
	name := session()
	for what, err := range map[string]error{
		"no session":             s.Commit(background, "", put(store.Flow, "f", 0, "")),
		"a session's long name":  s.Commit(background, strings.Repeat("n", store.MaxID+1), put(store.Flow, "f", 0, "")),
		"a flow without an id":   s.Commit(background, name, put(store.Flow, "", 0, "")),
		"a session with an id":   s.Commit(background, name, put(store.Session, "x", 0, "")),
		"a long id":              s.Commit(background, name, put(store.Flow, strings.Repeat("i", store.MaxID+1), 0, "")),
		"no lifetime":            s.Commit(background, name, store.Change{Kind: store.Flow, ID: "f"}),
		"the same address twice": s.Commit(background, name, put(store.Flow, "f", 0, ""), put(store.Flow, "f", 1, "")),
	} {
		var conflict *store.ConflictError
		if err == nil || errors.As(err, &conflict) {
			t.Errorf("%s: got %v", what, err)
		}
	}
	if list, err := s.Load(background, name); err != nil || len(list) > 0 {
		t.Errorf("left %v, %v", list, err)
	}
}
