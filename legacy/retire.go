package legacy

import (
	"context"
	"time"

	"github.com/mcpbridge/bridge/sessions"
)

// vacateEvery is how often it is looked which sessions have nothing under way any more.
const vacateEvery = 100 * time.Millisecond

// Retire is Shutdown for an endpoint beside which another one serves its clients from now on. A call that takes
// long keeps its own session here only: whatever has nothing under way ends at once, so that its client goes on,
// or begins anew, over there.
func (h *HTTP) Retire(ctx context.Context) error {
	h.retired.Store(true) // before anybody is refused
	h.refuse()
	err := h.drain(ctx)
	h.Close()
	return err
}

// drain waits for what is under way until ctx ends, and has sessions leave meanwhile.
func (h *HTTP) drain(ctx context.Context) (err error) {
	for err = context.DeadlineExceeded; err != nil && ctx.Err() == nil; {
		h.sessions.Vacate()
		h.channels.Vacate(sessions.Closed)
		step, cancel := context.WithTimeout(ctx, vacateEvery)
		err = h.gate.Wait(step)
		cancel()
	}
	return err
}
