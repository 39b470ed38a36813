package sessionstest

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcpbridge/bridge/sessions/store"
)

// heard are the names that a store has called, and how often.
type heard struct{ names sync.Map }

func (h *heard) note(name string) {
	n, _ := h.names.LoadOrStore(name, new(atomic.Int64))
	n.(*atomic.Int64).Add(1)
}

// of returns how often a session was named, or that any may have changed.
func (h *heard) of(name string) (n int64) {
	for _, called := range []string{name, ""} {
		if count, ok := h.names.Load(called); ok {
			n += count.(*atomic.Int64).Load()
		}
	}
	return n
}

func (h *heard) none() bool {
	none := true
	h.names.Range(func(any, any) bool { none = false; return none })
	return none
}

// watching: whoever has read a session's record hears when it changes or ends, whether that
// happens here or at another one who shares the engine; nobody hears anything of an engine that one
// process alone has.
func watching(t *testing.T, e Engine) {
	s := e.Open(t)
	t.Cleanup(func() { _ = s.Close() })
	var h heard
	shared := s.Watch(h.note)
	writers := map[string]store.Store{"here": s}
	if shared && e.Another != nil {
		other := e.Another(t, s)
		t.Cleanup(func() { _ = other.Close() })
		writers["at another"] = other
	}
	for where, writer := range writers {
		name := session()
		at := store.Address{Session: name, Kind: store.Session}
		must(t, writer.Commit(background, name, put(store.Session, "", 0, "1")))
		for version, change := range []func() error{
			func() error { return writer.Commit(background, name, put(store.Session, "", 1, "2")) },
			func() error {
				return writer.Commit(background, name, put(store.Session, "", 2, "3"), put(store.Flow, "f", 0, "f"))
			},
			func() error { return writer.End(background, name) },
		} {
			if _, err := s.Get(background, at); err != nil {
				t.Fatalf("%s, version %d: %v", where, version, err)
			}
			before := h.of(name)
			must(t, change())
			if shared {
				eventually(t, "word of a change made "+where, func() bool { return h.of(name) > before })
			}
		}
		eventually(t, "the end of a record that was read before", func() bool { // no copy outlives the word of it
			_, err := s.Get(background, at)
			return errors.Is(err, store.ErrNotFound)
		})
	}
	if !shared && !h.none() {
		t.Error("a store of one process has told of changes")
	}
}

// contested: of two who share an engine and change the same records, each by the version that it has
// read, exactly one succeeds each time, and neither loses a change of the other.
func contested(t *testing.T, e Engine) {
	s := e.Open(t)
	t.Cleanup(func() { _ = s.Close() })
	parties := []store.Store{s, s}
	if e.Another != nil {
		parties[1] = e.Another(t, s)
		t.Cleanup(func() { _ = parties[1].Close() })
	}
	const rounds = 50
	name := session()
	at := store.Address{Session: name, Kind: store.Flow, ID: "f"}
	must(t, s.Commit(background, name, put(store.Flow, "f", 0, "")))
	var all sync.WaitGroup
	won := make([]int, len(parties))
	for i, party := range parties {
		all.Go(func() {
			for won[i] < rounds {
				record, err := loaded(party, at)
				if err != nil {
					t.Error(err)
					return
				}
				err = party.Commit(background, name, put(store.Flow, "f", record.Version, string(record.Value)+string(rune('a'+i))))
				var conflict *store.ConflictError
				switch {
				case err == nil:
					won[i]++
				case !errors.As(err, &conflict):
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	record, err := loaded(s, at)
	must(t, err)
	if record.Version != 1+2*rounds || len(record.Value) != 2*rounds {
		t.Errorf("%d changes were acknowledged, the record has version %d and %d of them", 2*rounds, record.Version, len(record.Value))
	}
	must(t, s.Touch(background, store.Touch{Session: name, TTL: time.Hour})) // of a session without a record: nothing to do
}
