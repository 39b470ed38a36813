package session

import (
	"encoding/base32"
	"encoding/binary"
	"hash/fnv"
	"time"

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

// ids makes the ids of an endpoint's sessions, and tells them from those of others.
type ids struct {
	scope string                    // of the endpoint
	past  *sessions.Table[struct{}] // ids without a mark of sessions that have ended
}

func newIDs(scope string, most int, idle time.Duration) *ids {
	return &ids{scope, sessions.NewTable(sessions.TableOptions[struct{}]{Capacity: most, Idle: idle})}
}

// fresh returns the id of a new session.
func (i *ids) fresh() string {
	id := sessions.NewID()
	mark := i.mark(id)
	return id + string(mark[:])
}

func (i *ids) mark(random string) (mark [markPart]byte) {
	h := fnv.New64a()
	_, _ = h.Write([]byte(i.scope))
	_, _ = h.Write([]byte(random))
	var sum [8]byte
	binary.BigEndian.PutUint64(sum[:], h.Sum64())
	var text [8]byte // base32 of five bytes
	base32.StdEncoding.Encode(text[:], sum[:5])
	copy(mark[:], text[:])
	return mark
}

// marked reports whether an id was made here, or where the same endpoint was served.
func (i *ids) marked(id string) bool {
	return len(id) == randomPart+markPart && [markPart]byte([]byte(id[randomPart:])) == i.mark(id[:randomPart])
}

// own reports whether an id is one of the endpoint's. Those from before ids had marks are known for a
// time after their sessions ended here.
func (i *ids) own(id string) bool {
	if i.marked(id) {
		return true
	}
	_, ended := i.past.Get(id)
	return ended
}

// passed takes note of a session that has ended and whose id does not say whose it is. It may have ended here
// before, and come back from the store since.
func (i *ids) passed(id string) {
	if !i.own(id) {
		_ = i.past.Add("", id, struct{}{}) // the oldest makes room
	}
}
