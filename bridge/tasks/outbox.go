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

// passLocked hands a notification to a request that waits for the task, or keeps it for the next one.
func (t *Task) passLocked(msg downstream.Message) {
	size := len(msg.Params)
	if w := t.newestLocked(); w != nil {
		out := w.out
		t.outbox = append(t.outbox, func() { out.Send(msg) })
	} else if len(t.queue) < maxQueue && t.queued+size <= maxQueuedBytes && t.waits.Grow(size) == nil {
		t.queue, t.queued = append(t.queue, msg), t.queued+size
	}
}

// askLocked hands what is open to a request that waits for the task, as far as it was not asked that before.
func (t *Task) askLocked() {
	w := t.newestLocked()
	if w == nil {
		return
	}
	for i := range t.open {
		if q := &t.open[i]; q.msg.Method != "" && !slices.Contains(w.asked, q.id) {
			out, msg := w.out, q.msg
			t.outbox = append(t.outbox, func() { out.Send(msg) })
			w.asked, q.heard = append(w.asked, q.id), true
		}
	}
}

// newestLocked returns the newest request that waits for the task: of those whose client listens, if
// any does. nil: none waits.
func (t *Task) newestLocked() (newest *waiter) {
	t.forgetDesertersLocked()
	for i := range t.waiters {
		if w := &t.waiters[i]; newest == nil || w.out.Attached() || !newest.out.Attached() {
			newest = w
		}
	}
	return newest
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

// closeLocked notes that a question is open no more, and reports whether nobody has heard of it.
func (t *Task) closeLocked(id jsonrpc.ID) (unheard bool) {
	i := slices.IndexFunc(t.open, func(q question) bool { return q.id == id })
	if i < 0 {
		return false
	}
	unheard = !t.open[i].heard
	t.open = slices.Delete(t.open, i, i+1)
	_ = t.held.Set(t.askedLocked())
	if len(t.open) == 0 && t.status == inputRequired {
		t.setLocked(working)
	}
	return unheard
}

// askedLocked is what the open questions are charged for, in bytes.
func (t *Task) askedLocked() (size int) {
	for i := range t.open {
		size += len(t.open[i].msg.Params) + len(t.open[i].words)
	}
	return size
}

func (t *Task) setLocked(status string) {
	if t.status != status {
		t.status, t.updated = status, time.Now()
	}
}

func (t *Task) overLocked() bool {
	return t.status == completed || t.status == failed || t.status == cancelled
}
