package bridge

import (
	"hash/maphash"
	"slices"
	"time"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/jsonrpc"
)

// overtaken knows of the cancellations that came before their call: from the same
// batch, from right behind it on a shared connection, or over a connection of
// their own. Nothing but time and the ids of requests that are over tells these
// from cancellations that came too late, and those must not end a later call that
// has the id again: some clients give every request the same one.
type overtaken struct {
	cancels []earlyCancel // oldest first
	over    [16]uint32    // hashes of the ids of the requests that ended last
	next    uint8         // of over
}

type earlyCancel struct {
	id        jsonrpc.ID
	principal string
	until     time.Time
}

// Bounds of overtaken: a call may be this late, so many of a session may be, and
// longer ids are nobody's.
const (
	maxOvertaken  = time.Second
	maxEarly      = 32
	maxOvertakeID = 256
)

var idSeed = maphash.MakeSeed()

func hashID(id jsonrpc.ID) uint32 { return uint32(maphash.String(idSeed, string(id))) }

// ended notes that the request with this id is over.
func (o *overtaken) ended(id jsonrpc.ID) {
	o.over[o.next%uint8(len(o.over))] = hashID(id)
	o.next++
}

// keep takes a cancellation that found no call.
func (o *overtaken) keep(id jsonrpc.ID, principal string) {
	if id == "" || len(id) > maxOvertakeID {
		return
	}
	if slices.Contains(o.over[:], hashID(id)) {
		return
	}
	now := time.Now()
	for len(o.cancels) > 0 && (len(o.cancels) >= maxEarly || now.After(o.cancels[0].until)) {
		o.cancels = o.cancels[1:]
	}
	o.cancels = append(o.cancels, earlyCancel{id, principal, now.Add(maxOvertaken)})
}

// take reports whether the call was cancelled before it came.
func (o *overtaken) take(k *call) bool {
	for i, c := range o.cancels {
		if c.id != k.req.ID || !k.of(downstream.Caller{Principal: c.principal}) {
			continue
		}
		o.cancels = slices.Delete(o.cancels, i, i+1)
		o.ended(c.id)
		return !time.Now().After(c.until)
	}
	return false
}
