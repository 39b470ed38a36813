package sessionstest

import (
	"errors"
	"fmt"
	"testing"

	"github.com/mcpbridge/bridge/sessions/store"
	"pgregory.net/rapid"
)

// model is what a store should hold, of a few sessions.
type model map[store.Address]entry

type entry struct {
	version uint64
	value   string
}

// machine runs the same operations on a store and on its model.
type machine struct {
	t        *testing.T
	store    store.Store
	model    model
	sessions []string
}

// agreesWithModel: whatever is done, in whatever order, with crashes between any two
// operations, the store holds what was acknowledged and nothing else.
func agreesWithModel(t *testing.T, e Engine) {
	s := e.Open(t)
	defer func() { _ = s.Close() }()
	rapid.Check(t, func(r *rapid.T) {
		m := &machine{t: t, store: s, model: model{}, sessions: []string{session(), session()}}
		actions := map[string]func(*rapid.T){
			"commit": m.commit, "end": m.end, "touch": m.touch, "get": m.get, "": m.check,
		}
		if e.Crash != nil {
			actions["crash"] = func(*rapid.T) {
				s = e.Crash(t, s)
				m.store = s
			}
		}
		r.Repeat(actions)
		for _, name := range m.sessions {
			must(t, s.End(background, name))
		}
	})
}

func (m *machine) address(r *rapid.T) store.Address {
	at := store.Address{Session: rapid.SampledFrom(m.sessions).Draw(r, "session"), Kind: rapid.SampledFrom([]store.Kind{store.Session, store.Flow, store.LastWord}).Draw(r, "kind")}
	if at.Kind != store.Session {
		at.ID = rapid.SampledFrom([]string{"1", "2", "10"}).Draw(r, "id")
	}
	return at
}

func (m *machine) commit(r *rapid.T) {
	name := rapid.SampledFrom(m.sessions).Draw(r, "session")
	var changes []store.Change
	after, conflict := model{}, store.Address{}
	for range rapid.IntRange(1, 3).Draw(r, "changes") {
		at := m.address(r)
		at.Session = name
		if _, twice := after[at]; twice {
			continue
		}
		current := m.model[at].version
		c := store.Change{Kind: at.Kind, ID: at.ID, TTL: long, Delete: rapid.Bool().Draw(r, "delete")}
		c.WithCalls = c.Kind == store.Session && rapid.Bool().Draw(r, "with its calls")
		c.Replaces = rapid.SampledFrom([]uint64{current, current, current, store.Any, 0, current + 1}).Draw(r, "replaces")
		c.Value = []byte(rapid.StringN(0, 20, 40).Draw(r, "value"))
		if c.Replaces != store.Any && c.Replaces != current && conflict == (store.Address{}) {
			conflict = at
		}
		after[at] = entry{current + 1, string(c.Value)}
		if c.Delete {
			after[at] = entry{}
		}
		changes = append(changes, c)
	}
	err := m.store.Commit(background, name, changes...)
	if conflict != (store.Address{}) {
		wantConflict(m.t, err, conflict)
		return
	}
	must(m.t, err)
	for at, e := range after {
		if e == (entry{}) {
			delete(m.model, at)
			continue
		}
		m.model[at] = e
	}
}

func (m *machine) end(r *rapid.T) {
	name := rapid.SampledFrom(m.sessions).Draw(r, "session")
	must(m.t, m.store.End(background, name))
	for at := range m.model {
		if at.Session == name {
			delete(m.model, at)
		}
	}
}

func (m *machine) touch(r *rapid.T) {
	var touches []store.Touch
	for _, name := range m.sessions {
		touches = append(touches, store.Touch{Session: name, TTL: long, WithCalls: rapid.Bool().Draw(r, "touched with its calls")})
	}
	must(m.t, m.store.Touch(background, touches...))
}

func (m *machine) get(r *rapid.T) {
	at := m.address(r)
	got, err := m.store.Get(background, at)
	want, exists := m.model[at]
	if exists != (err == nil) || !exists && !errors.Is(err, store.ErrNotFound) {
		r.Fatalf("Get %s: %v, want one: %v", at, err, exists)
	}
	if exists && (got.Version != want.version || string(got.Value) != want.value) {
		r.Fatalf("Get %s: version %d %q, want %v", at, got.Version, got.Value, want)
	}
}

// check compares everything; rapid calls it after each operation.
func (m *machine) check(r *rapid.T) {
	got := model{}
	for _, name := range m.sessions {
		list, err := m.store.Load(background, name)
		must(m.t, err)
		for _, record := range list {
			got[record.Address] = entry{record.Version, string(record.Value)}
		}
	}
	if fmt.Sprint(got) != fmt.Sprint(m.model) {
		r.Fatalf("the store holds %v, want %v", got, m.model)
	}
}
