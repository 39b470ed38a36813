package bridge

import (
	"sync"

	"github.com/mcpbridge/bridge/internal/budget"
	"github.com/mcpbridge/bridge/mrtr"
)

// held is what a call holds besides its request: the response that comes in, and what
// the server wants to have back while the call waits.
type held struct {
	mu   sync.Mutex
	hold budget.Hold
	kept int // bytes that stay from round to round
}

// Set implements upstream.Held: so many bytes of a response are held now.
func (h *held) Set(response int) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.hold.Set(h.kept + response)
}

// keep charges what stays while the call waits; the response is used up.
func (h *held) keep(bytes int) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.kept = bytes
	return h.hold.Set(bytes)
}

// end gives everything back, and charges nothing any more.
func (h *held) end() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.hold.Release()
	h.hold = budget.Hold{}
}

// keepsLocked charges what the call keeps when it is to wait for its client, or the
// server.
func (k *call) keepsLocked(do mrtr.Verb) error {
	if do != mrtr.Ask && do != mrtr.Wait && do != mrtr.Poll {
		return nil
	}
	size := len(k.flow.RequestState)
	for i := range k.flow.Inputs {
		size += len(k.flow.Inputs[i].Params)
	}
	if k.task != nil { // the request of its client is over
		size += len(k.flow.Params)
	}
	return k.held.keep(size)
}
