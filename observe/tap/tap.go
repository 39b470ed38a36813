package tap

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpbridge/bridge/observe"
)

// Tap keeps the latest messages that went by, while somebody looks. When nobody does
// it costs one atomic load per message.
type Tap struct {
	open     atomic.Bool
	sessions atomic.Uint64
	calls    atomic.Uint64

	mu     sync.Mutex
	ring   []observe.Event // made when somebody looks first
	seq    uint64          // of the newest event; it stands at seq % len(ring)
	until  time.Time       // when nobody looks any more
	timer  *time.Timer
	closed bool
}

// kept is how many events there are at most.
const kept = 8192

// Look opens the tap for as long as d from now on.
func (t *Tap) Look(d time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if until := time.Now().Add(d); until.After(t.until) {
		t.until = until
	}
	if t.closed || t.open.Load() {
		return
	}
	if t.ring == nil {
		t.ring = make([]observe.Event, kept)
	}
	t.open.Store(true)
	t.timer = time.AfterFunc(d, t.tire)
}

// tire closes the tap when nobody has looked for long enough.
func (t *Tap) tire() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if left := time.Until(t.until); left > 0 && !t.closed {
		t.timer.Reset(left)
		return
	}
	t.open.Store(false)
}

// Close ends it.
func (t *Tap) Close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	t.open.Store(false)
	if t.timer != nil {
		t.timer.Stop()
	}
}

// note keeps an event.
func (t *Tap) note(e observe.Event) {
	e.Method, e.ID = clip(e.Method), clip(e.ID)
	e.At = time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.seq++
	e.Seq = t.seq
	t.ring[t.seq%kept] = e
}

// maxText bounds what peers write into an event, in bytes.
const maxText = 64

// clip bounds a peer's text, and lets go of the message that it is a part of.
func clip(text string) string {
	if len(text) > maxText {
		text = text[:maxText] + "…"
	}
	return string(append([]byte(nil), text...))
}

// Of returns the latest events of a session that are still kept, oldest first.
func (t *Tap) Of(session uint64, most int) []observe.Event {
	t.mu.Lock()
	defer t.mu.Unlock()
	var found []observe.Event
	for back := uint64(0); t.ring != nil && back < min(t.seq, kept) && len(found) < most; back++ {
		if e := &t.ring[(t.seq-back)%kept]; e.Session == session {
			found = append(found, *e)
		}
	}
	for i, j := 0, len(found)-1; i < j; i, j = i+1, j-1 {
		found[i], found[j] = found[j], found[i]
	}
	return found
}
