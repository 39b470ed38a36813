package bridge

import (
	"time"

	"github.com/mcpbridge/bridge/observe"
)

// overhead measures what the bridge itself takes for one call in so many. Its zero
// value measures nothing.
type overhead struct {
	since time.Time
	watch observe.Watcher // nil: the call is not one of those
}

// choose says whether a call is one of those, by its number, and starts the first phase.
func (o *overhead) choose(serial uint64, watch observe.Watcher) {
	if serial%observe.OverheadEvery == 0 && watch != nil {
		o.watch = watch
		o.begin()
	}
}

// begin starts the clock of a phase.
func (o *overhead) begin() {
	if o.watch != nil {
		o.since = time.Now()
	}
}

// end tells who watches how long the phase took, if that was the bridge's own time.
func (o *overhead) end(phase observe.Phase, own bool) {
	if o.since.IsZero() {
		return
	}
	if own {
		o.watch.Overhead(phase, time.Since(o.since))
	}
	o.since = time.Time{}
}
