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
//
// An idle session has answered initialize and nothing else: that needs no ring.
type earlyCancels struct {
	first uint32   // hash of the id of the request that ended first
	known *cancels // what there is to know since there is more than that; nil: there is not
}

type cancels struct {
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
	if e.first == 0 && e.known == nil {
		e.first = hashID(id)
		return
	}
	e.all().ended(hashID(id))
}

// all returns what there is to know, made on first use.
func (e *earlyCancels) all() *cancels {
	if e.known == nil {
		e.known = new(cancels)
		e.known.ended(e.first)
	}
	return e.known
}

func (c *cancels) ended(hash uint32) {
	c.over[c.next%uint8(len(c.over))] = hash
	c.next++
}

// keep takes a cancellation that found no call. One of who may not be the session's owner takes the
// place of none.
func (e *earlyCancels) keep(id jsonrpc.ID, caller downstream.Caller) {
	if id == "" || len(id) > maxEarlyCancelID {
		return
	}
	c := e.all()
	if slices.Contains(c.over[:], hashID(id)) { // it comes too late
		return
	}
	now := time.Now()
	for len(c.waiting) > 0 && (len(c.waiting) >= maxEarlyCancels && !caller.Unproven || now.After(c.waiting[0].until)) {
		c.waiting = c.waiting[1:]
	}
	if len(c.waiting) >= maxEarlyCancels {
		return
	}
	c.waiting = append(c.waiting, earlyCancel{id, caller.Principal, now.Add(earlyCancelLife)})
}

// take reports whether the call was cancelled before it came.
func (e *earlyCancels) take(k *call.Call) bool {
	if e.known == nil {
		return false
	}
	for i, c := range e.known.waiting {
		if c.id != k.ID() || !k.Of(downstream.Caller{Principal: c.principal}) {
			continue
		}
		e.known.waiting = slices.Delete(e.known.waiting, i, i+1)
		e.ended(c.id)
		return !time.Now().After(c.until)
	}
	return false
}
