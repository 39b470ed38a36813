package session

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/mcpbridge/bridge/sessions"
	"github.com/mcpbridge/bridge/sessions/store"
)

// A set that is waited for says so as long as a session may come back from its store, and no longer.
func TestASetKeepsWhatLeftMemoryForAsLongAsItsRecordLasts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		if NewSet(Options{MaxSessions: 1, IdleTimeout: time.Minute}).Keeps() {
			t.Error("a set without a store keeps something")
		}
		set := NewSet(Options{Store: store.NewMemory(1), MaxSessions: 1, IdleTimeout: time.Minute, Logger: zerolog.Nop()})
		defer set.Close()
		lasts := set.keeper.ttl()
		is := func(what string, want bool) {
			t.Helper()
			if got := set.Keeps(); got != want {
				t.Errorf("%s: %t", what, got)
			}
		}
		is("after the start", true) // of what was there before
		time.Sleep(lasts)
		is("when that has expired", false)
		for _, cause := range []sessions.Cause{sessions.Removed, sessions.Expired, sessions.Rested, sessions.Evicted} {
			s := &Session{set: set, stored: &stored{version: 1}}
			set.keeper.ended(s, cause)
			is(fmt.Sprint("after the end of a session by cause ", cause), cause == sessions.Rested || cause == sessions.Evicted)
			time.Sleep(lasts)
			is("later", false)
		}
	})
}
