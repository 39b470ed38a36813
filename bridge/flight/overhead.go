package flight

import (
	"time"

	"github.com/mcpbridge/bridge/observe"
)

// Overhead measures what the bridge itself takes for one call in so many. Its zero
// value measures nothing.
type Overhead struct {
	since time.Time
	watch observe.Watcher // nil: the call is not one of those
}

// Choose says whether a call is one of those, by its number, and starts the first phase.
func (o *Overhead) Choose(serial uint64, watch observe.Watcher) {
	if serial%observe.OverheadEvery == 0 && watch != nil {
		o.watch = watch
		o.Begin()
	}
}

// Begin starts the clock of a phase.
func (o *Overhead) Begin() {
	if o.watch != nil {
		o.since = time.Now()
	}
}

// End tells who watches how long the phase took, if that was the bridge's own time.
func (o *Overhead) End(phase observe.Phase, own bool) {
	if o.since.IsZero() {
		return
	}
	if own {
		o.watch.Overhead(phase, time.Since(o.since))
	}
	o.since = time.Time{}
}
