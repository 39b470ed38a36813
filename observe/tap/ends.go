package tap

import (
	"strings"
	"time"

	"github.com/mcpbridge/bridge/observe"
	"github.com/mcpbridge/bridge/rawjson"
)

// keptEnds bounds how many calls that have ended are remembered.
const keptEnds = 512

// remembering is a watcher that remembers calls which have ended: those that are
// unusual always, the others while somebody looks.
type remembering struct {
	observe.Watcher
	tap *Tap
}

// Remember returns watch with the ends of calls remembered.
func (t *Tap) Remember(watch observe.Watcher) observe.Watcher { return &remembering{watch, t} }

// CallEnded implements observe.Watcher.
func (r *remembering) CallEnded(c observe.CallEnd) {
	r.Watcher.CallEnded(c)
	r.tap.pace.count(c.Amiss())
	if c.Unusual() || r.tap.open.Load() {
		r.tap.remember(c)
	}
}

// remember keeps a call that has ended. What it keeps of peers' texts is bounded, and
// holds none of their messages.
func (t *Tap) remember(c observe.CallEnd) {
	if c.Name == "" {
		c.Name, _ = rawjson.Text(c.Tool)
	}
	if c.ID == "" && c.Serial != 0 {
		c.ID = observe.CallID(c.Serial)
	}
	c.Tool, c.Method, c.Name, c.Session = nil, clip(c.Method), clip(c.Name), strings.Clone(c.Session)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ends == nil {
		t.ends = make([]observe.Ended, 0, keptEnds)
	}
	e := observe.Ended{At: time.Now(), Mount: t.path, CallEnd: c}
	if len(t.ends) < keptEnds {
		t.ends = append(t.ends, e)
	} else {
		t.ends[t.ended%keptEnds] = e
	}
	t.ended++
}

// Ends returns the calls that ended last and are wanted, the latest first.
func (h *Hub) Ends(most int, wanted func(*observe.Ended) bool) (found []observe.Ended) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for back := uint64(1); back <= uint64(len(h.ends)) && len(found) < most; back++ {
		if e := &h.ends[(h.ended-back)%keptEnds]; wanted(e) {
			found = append(found, *e)
		}
	}
	return found
}
