package redisstore

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/mcpbridge/bridge/internal/redistest"
	"github.com/mcpbridge/bridge/sessions/store"
)

// What a process has changed itself it reads at once: the server's word on the copy that it had
// comes behind the reply to the change.
func TestOwnChangesAreReadAtOnce(t *testing.T) {
	s := open(t, "redis://"+redistest.Start(t).Addr())
	for i := range 3_000 {
		name := fmt.Sprint("session", i)
		at := store.Address{Session: name, Kind: store.Session}
		if _, err := s.Get(background, at); !errors.Is(err, store.ErrNotFound) {
			t.Fatal(err)
		}
		change := store.Change{Kind: store.Session, TTL: time.Hour, Value: []byte("1")}
		if err := s.Commit(background, name, change); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Get(background, at); err != nil {
			t.Fatalf("%d, made: %v", i, err)
		}
		change.Replaces, change.Value = 1, []byte("2")
		if err := s.Commit(background, name, change); err != nil {
			t.Fatal(err)
		}
		if r, err := s.Get(background, at); err != nil || r.Version != 2 {
			t.Fatalf("%d, replaced: %v, %v", i, r, err)
		}
		if err := s.End(background, name); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Get(background, at); !errors.Is(err, store.ErrNotFound) {
			t.Fatalf("%d, ended: %v", i, err)
		}
	}
}
