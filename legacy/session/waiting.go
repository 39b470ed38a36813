package session

import (
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/hop"
	"github.com/mcpbridge/bridge/jsonrpc"
)

// Calls that may be answered with what is pending, and wait for the same one to be made again, are in
// the memory of one replica, and the same one may reach another. The session's record says which:
// that is written before a client is told of their first question, and every replica that has the
// session in memory hears of it; and once more when a person has answered it since: of equal calls at
// several replicas the one told of last is found. Nothing takes an entry back before its time: whoever
// is handed a call for which none waits serves it as any other.

// waiting is where a call waits for the same one.
type waiting struct {
	Call  uint64               `json:"call"` // downstream.Likeness
	At    downstream.ReplicaID `json:"at"`
	Until time.Time            `json:"until"`
}

// waitingCalls are the entries of a session, those whose time ends last first.
type waitingCalls struct {
	list atomic.Pointer[[]waiting] // never changed; nil: there are none
}

// maxWaiting bounds how many of them a session's record has; those that end first make room.
const maxWaiting = 64

// at is Session.WaitsAt.
func (k *waitingCalls) at(msg *jsonrpc.Message, header http.Header) downstream.ReplicaID {
	list := k.list.Load()
	if list == nil {
		return 0
	}
	call, now := downstream.Likeness(msg, hop.Person("", header)), time.Now()
	for _, w := range *list {
		if w.Call == call && w.Until.After(now) {
			return w.At
		}
	}
	return 0
}

// here reports whether there is one of a replica's.
func (k *waitingCalls) here(replica downstream.ReplicaID) bool {
	now := time.Now()
	return slices.ContainsFunc(k.all(), func(w waiting) bool { return w.At == replica && w.Until.After(now) })
}

// adopt adds entries, one caller at a time. Of two for one call the later counts.
func (k *waitingCalls) adopt(more []waiting) {
	if len(more) == 0 {
		return
	}
	now := time.Now()
	list := slices.Concat(more, k.all())
	slices.SortStableFunc(list, func(a, b waiting) int { return b.Until.Compare(a.Until) })
	var kept []waiting
	for _, w := range list {
		known := slices.ContainsFunc(kept, func(other waiting) bool { return other.Call == w.Call })
		if len(kept) < maxWaiting && !known && w.Until.After(now) {
			kept = append(kept, w)
		}
	}
	if kept == nil {
		k.list.Store(nil)
		return
	}
	k.list.Store(&kept)
}

// all returns all entries.
func (k *waitingCalls) all() []waiting {
	if list := k.list.Load(); list != nil {
		return *list
	}
	return nil
}

// tellAll tells a server of calls that nobody needs any more: see elsewhere.
func tellAll(tell []func()) {
	for _, one := range tell {
		one()
	}
}
