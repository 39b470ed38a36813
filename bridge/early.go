package bridge

import (
	"hash/maphash"
	"slices"
	"time"

	"github.com/mcpbridge/bridge/bridge/call"
	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/jsonrpc"
)

// earlyCancels knows of the cancellations that came before their call: from the same
// batch, from right behind it on a shared connection, or over a connection of
// their own. Nothing but time and the ids of requests that are over tells these
// from cancellations that came too late, and those must not end a later call that
// has the id again: some clients give every request the same one. It is guarded by
// the table's lock.
type earlyCancels struct {
	waiting []earlyCancel // oldest first
	over    [16]uint32    // ring of hashes: the ids of the requests that ended last
	next    uint8         // place in the ring
}

type earlyCancel struct {
	id        jsonrpc.ID
	principal string
	until     time.Time
}

const (
	earlyCancelLife  = time.Second // how much later than its cancellation a call may come
	maxEarlyCancels  = 32          // that one session may leave waiting; the oldest make room
	maxEarlyCancelID = 256         // bytes of an id; cancellations of longer ones are not kept
)

var idSeed = maphash.MakeSeed()

func hashID(id jsonrpc.ID) uint32 { return uint32(maphash.String(idSeed, string(id))) }

// ended notes that the request with this id is over.
func (e *earlyCancels) ended(id jsonrpc.ID) {
	e.over[e.next%uint8(len(e.over))] = hashID(id)
	e.next++
}

// keep takes a cancellation that found no call. One of who may not be the session's owner takes the
// place of none.
func (e *earlyCancels) keep(id jsonrpc.ID, caller downstream.Caller) {
	if id == "" || len(id) > maxEarlyCancelID {
		return
	}
	if e.knows(id) {
		return
	}
	now := time.Now()
	for len(e.waiting) > 0 && (len(e.waiting) >= maxEarlyCancels && !caller.Unproven || now.After(e.waiting[0].until)) {
		e.waiting = e.waiting[1:]
	}
	if len(e.waiting) >= maxEarlyCancels {
		return
	}
	e.waiting = append(e.waiting, earlyCancel{id, caller.Principal, now.Add(earlyCancelLife)})
}

// knows reports whether a request with this id ended lately.
func (e *earlyCancels) knows(id jsonrpc.ID) bool { return slices.Contains(e.over[:], hashID(id)) }

// take reports whether the call was cancelled before it came.
func (e *earlyCancels) take(k *call.Call) bool {
	for i, c := range e.waiting {
		if c.id != k.ID() || !k.Of(downstream.Caller{Principal: c.principal}) {
			continue
		}
		e.waiting = slices.Delete(e.waiting, i, i+1)
		e.ended(c.id)
		return !time.Now().After(c.until)
	}
	return false
}
