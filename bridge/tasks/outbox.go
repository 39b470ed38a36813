package tasks

import (
	"slices"
	"time"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/jsonrpc"
)

// write empties the outbox without the lock: a client that reads slowly holds up
// nobody but whoever began to write, and what others put in meanwhile follows in
// order.
func (t *Task) write() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.writing {
		return
	}
	t.writing = true
	defer func() { t.writing = false }()
	for len(t.outbox) > 0 {
		next := t.outbox[0]
		t.outbox = t.outbox[1:]
		t.unlocked(next)
	}
	t.outbox = nil
}

// unlocked runs f without the lock, which is held again afterwards, whatever f does.
func (t *Task) unlocked(f func()) {
	t.mu.Unlock()
	defer t.mu.Lock()
	f()
}

// finishLocked answers a tasks/result with the outcome.
func (t *Task) finishLocked(w waiter) {
	answer := t.outcome
	answer.ID = w.id
	t.outbox = append(t.outbox, func() { w.out.Finish(answer) })
}

// passLocked hands a message to the newest request that waits for the task and whose
// client is there, or keeps it for the next one.
func (t *Task) passLocked(msg downstream.Message) {
	t.forgetDesertersLocked()
	size := len(msg.Params)
	if n := len(t.waiters); n > 0 {
		out := t.waiters[n-1].out
		t.outbox = append(t.outbox, func() { out.Send(msg) })
	} else if msg.ID != "" || len(t.queue) < maxQueue && t.queued+size <= maxQueuedBytes && t.waits.Grow(size) == nil {
		t.queue, t.queued = append(t.queue, msg), t.queued+size
	}
}

// forgetDesertersLocked ends the requests whose client left.
func (t *Task) forgetDesertersLocked() {
	t.waiters = slices.DeleteFunc(t.waiters, func(w waiter) bool {
		gone := !w.out.Reachable()
		if gone {
			t.outbox = append(t.outbox, w.out.Abandon)
		}
		return gone
	})
}

// withdrawLocked closes a question, and reports whether nobody has heard of it yet.
func (t *Task) withdrawLocked(id jsonrpc.ID) (unheard bool) {
	t.closeLocked(id)
	i := slices.IndexFunc(t.queue, func(m downstream.Message) bool { return m.ID == id })
	if i < 0 {
		return false
	}
	t.queued -= len(t.queue[i].Params)
	t.queue = slices.Delete(t.queue, i, i+1)
	return true
}

// closeLocked notes that a question is open no more.
func (t *Task) closeLocked(id jsonrpc.ID) {
	delete(t.open, id)
	if len(t.open) == 0 && t.status == inputRequired {
		t.setLocked(working)
	}
}

func (t *Task) setLocked(status string) {
	if t.status != status {
		t.status, t.updated = status, time.Now()
	}
}

func (t *Task) overLocked() bool {
	return t.status == completed || t.status == failed || t.status == cancelled
}
