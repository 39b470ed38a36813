package session

import (
	"testing"

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
