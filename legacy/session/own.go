package session

import (
	"crypto/sha256"
	"encoding/base32"

	"github.com/mcpbridge/bridge/sessions"
)

// An id of a session carries a mark, by which this endpoint knows it for one of its own wherever the session
// is: in memory, in the store, or ended, also in another process and at another replica. A server that speaks
// the clients' own revision has sessions, too, and is never shown one of the bridge's. To clients an id
// has no form. The mark is made of what names the endpoint and its server, so that a bridge in front of
// another bridge takes none of that one's for its own; it protects nothing, the rest of the id does.
const (
	randomPart = 26 // what sessions.NewID makes
	markPart   = 6  // 30 bits: somebody else's id has it by chance once in a thousand million
)

// newID returns the id of a new session.
func (set *Set) newID() string {
	id := sessions.NewID()
	return id + set.mark(id)
}

func (set *Set) mark(random string) string {
	sum := sha256.Sum256([]byte("session\n" + set.opt.StoreScope + "\n" + random))
	return base32.StdEncoding.EncodeToString(sum[:5])[:markPart]
}

// marked reports whether an id was made here, or where the same endpoint was served.
func (set *Set) marked(id string) bool {
	return len(id) == randomPart+markPart && id[randomPart:] == set.mark(id[:randomPart])
}

// Owns reports whether an id is that of a session of this endpoint, live or ended. Those from before
// ids had marks are known while they are in memory, and for a time after they ended here.
func (set *Set) Owns(id string) bool {
	if set.marked(id) || set.Holds(id) {
		return true
	}
	_, ended := set.past.Get(id)
	return ended
}

// passed takes note of a session that has ended and whose id does not say whose it is.
func (set *Set) passed(id string) {
	if !set.marked(id) {
		_ = set.past.Add("", id, struct{}{}) // the oldest makes room
	}
}
