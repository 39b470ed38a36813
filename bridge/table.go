package bridge

import (
	"slices"
	"sync"

	"github.com/mcpbridge/bridge/bridge/call"
	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mrtr"
)

// table is where a session finds its calls again: by the ids of their requests, by those
// of their questions, and by which has waited longest. It implements call.Tables.
type table struct {
	mu        sync.Mutex
	closed    error // why no call comes in any more; nil: they do
	calls     []*call.Call
	early     earlyCancels
	questions questions
	most      int      // calls that wait at the same time; the oldest makes room
	waiting   *waiting // nil until one does
}

// waiting are the calls that wait for their client. Those of who may not be the session's
// owner take no room from the owner's.
type waiting struct{ owners, unproven mrtr.Suspended[*call.Call] }

func newWaiting(most int) *waiting {
	return &waiting{mrtr.NewSuspended[*call.Call](most), mrtr.NewSuspended[*call.Call](most)}
}

// add returns the call that must make room for this one; nil: none.
func (w *waiting) add(k *call.Call) (evicted *call.Call) {
	of := &w.owners
	if k.Unproven() {
		of = &w.unproven
	}
	oldest, full := of.Add(k)
	if full && oldest != k {
		return oldest
	}
	return nil
}

// remove is idempotent.
func (w *waiting) remove(k *call.Call) {
	if w != nil {
		w.owners.Remove(k)
		w.unproven.Remove(k)
	}
}

// Enter implements call.Tables.
func (t *table) Enter(k *call.Call) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.closed != nil:
		return t.closed
	case !k.Hosted() && t.early.take(k):
		return downstream.ErrCancelled
	}
	t.calls = append(t.calls, k)
	return nil
}

// Exit implements call.Tables. It is idempotent.
func (t *table) Exit(k *call.Call) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if i := slices.Index(t.calls, k); i >= 0 {
		last := len(t.calls) - 1
		t.calls[i], t.calls[last] = t.calls[last], nil
		t.calls = t.calls[:last]
		t.early.ended(k.ID())
	}
	t.waiting.remove(k)
}

// Ended implements call.Tables.
func (t *table) Ended(id jsonrpc.ID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.early.ended(id)
}

// Await implements call.Tables.
func (t *table) Await(k *call.Call, id jsonrpc.ID, key string, invites bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.questions.add(id, key, k, invites)
}

// Drop implements call.Tables.
func (t *table) Drop(id jsonrpc.ID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.questions.remove(id)
}

// Suspend implements call.Tables.
func (t *table) Suspend(k *call.Call) (evicted *call.Call) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.waiting == nil {
		t.waiting = newWaiting(t.most)
	}
	return t.waiting.add(k)
}

// Resumed implements call.Tables.
func (t *table) Resumed(k *call.Call) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.waiting.remove(k)
}

// underWay returns the calls that have not ended.
func (t *table) underWay() []*call.Call {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.calls)
}

// question returns the one that went out under id; nil: it is not open.
func (t *table) question(id jsonrpc.ID) *openQuestion {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.questions.find(id)
}

// asked returns the question that went out under id, if caller may answer it; nil: there
// is none.
func (t *table) asked(caller downstream.Caller, id jsonrpc.ID) *openQuestion {
	q := t.question(id)
	if q == nil || !q.call.Of(caller) {
		return nil
	}
	return q
}

// answered takes the question that went out under id, and reports whether it was open.
func (t *table) answered(id jsonrpc.ID) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	open := t.questions.find(id) != nil
	t.questions.remove(id)
	return open
}

// knows reports whether a call of the caller's goes by the id.
func (t *table) knows(caller downstream.Caller, id jsonrpc.ID) bool {
	return slices.ContainsFunc(t.underWay(), func(k *call.Call) bool { return k.GoesBy() == id && k.Of(caller) })
}

// meant returns the call that a cancellation of id means, and how many it could mean:
// some clients send every request with the same id, and then it is unknowable which one
// is meant, and none is (B-1). Where it means none and may come early, it is kept for a call about to come.
func (t *table) meant(caller downstream.Caller, id jsonrpc.ID, early bool) (k *call.Call, found int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, one := range t.calls {
		if one.GoesBy() == id && !one.Hosted() && one.Of(caller) { // a hosted task's request was answered; tasks/cancel ends it
			k = one
			found++
		}
	}
	switch {
	case found > 1:
		k = nil
	case found == 0 && early:
		t.early.keep(id, caller)
	}
	return k, found
}

// close lets no call in any more, for this reason, and returns those that are to be ended.
func (t *table) close(why error) []*call.Call {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = why
	return slices.Clone(t.calls)
}
