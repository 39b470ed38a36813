package session

import (
	"fmt"
	"testing"
	"time"

	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/sessions"
)

// An endpoint knows the ids that it has made, and those that it made before it was started again, and nobody
// else's. Ids from before they had marks are known for a while after their sessions have ended.
func TestAnEndpointKnowsItsIds_A32(t *testing.T) {
	open := func(scope string) *Set { return NewSet(Options{StoreScope: scope, MaxSessions: 2}) }
	here, again, elsewhere := open("a"), open("a"), open("b")
	id, older := here.ids.fresh(), sessions.NewID()
	if !here.Owns(id) || !again.Owns(id) || elsewhere.Owns(id) || !mcp.IsSessionID(id) {
		t.Errorf("%q is not told from others", id)
	}
	changed := []byte(id)
	changed[0] ^= 1
	for _, foreign := range []string{"", older, older + "AAAAAA", id[1:], id + "A", string(changed), "0b2c7e64c0ab4bb8b1a8d6a26a1c1f6d"} {
		if here.Owns(foreign) {
			t.Errorf("%q is taken for an id of this endpoint", foreign)
		}
	}
	if here.ids.passed(older); !here.Owns(older) || again.Owns(older) {
		t.Error("a session that has ended is not known")
	}
}

// Sessions from before ids had marks come back from the store, and end here again and again: a few of them, then
// more than there are places.
func TestASessionWithoutAMarkEndsAgainAndAgain_A32(t *testing.T) {
	const most = 64
	ids := newIDs("scope", most, time.Hour)
	for range 40 {
		for s := range 8 {
			ids.passed(fmt.Sprint("again", s))
		}
	}
	if known := ids.past.Len(); known != 8 {
		t.Errorf("%d ids of 8 sessions are kept", known)
	}
	for s := range 100 {
		ids.passed(fmt.Sprint("other", s))
	}
	if known := ids.past.Len(); known != most || !ids.own("other99") {
		t.Errorf("of %d ids that fit %d are kept", most, known)
	}
}
