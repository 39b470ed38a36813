package bridge

import (
	"sync/atomic"
	"time"

	"github.com/mcpbridge/bridge/mrtr"
)

// timer rings for a call whenever its flow's clock says so. It stands between the
// runtime's timer and the call: the runtime may go on holding timers that were
// stopped, thousands of them after a rush, and must not hold calls by them.
type timer struct {
	call    atomic.Pointer[call] // nil once the call is over
	runtime *time.Timer
}

func (t *timer) ring() {
	if k := t.call.Load(); k != nil {
		k.tick()
	}
}

// armLocked sets the timer to whatever is due first.
func (k *call) armLocked(now time.Time) {
	if k.flow.State == mrtr.Admitted {
		return // nothing is due before it starts
	}
	wait := k.flow.Clock.Next().Sub(now)
	if k.timer != nil {
		k.timer.runtime.Reset(wait)
		return
	}
	k.timer = new(timer)
	k.timer.call.Store(k)
	k.timer.runtime = time.AfterFunc(wait, k.timer.ring)
}

// disarmLocked stops the timer for good.
func (k *call) disarmLocked() {
	if k.timer != nil {
		k.timer.runtime.Stop()
		k.timer.call.Store(nil)
	}
}

// tick runs in the timer's own goroutine.
func (k *call) tick() {
	defer k.survive()
	if k.pauses() {
		return
	}
	k.drive(mrtr.Tick(!k.looks() || k.out.Reachable()))
}

// pauses reports whether nothing is due because no request waits for the call: but for
// its end, its clock goes on with the next request.
func (k *call) pauses() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	left := time.Until(k.flow.Clock.Deadline)
	if k.kept == nil || k.timer == nil || left <= 0 || k.flow.Over() || k.kept.reply() != nil {
		return false
	}
	k.timer.runtime.Reset(left)
	return true
}

// looks reports whether it is time to look whether the client is there.
func (k *call) looks() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	look := k.flow.Clock.Look
	return !look.IsZero() && !time.Now().Before(look)
}
