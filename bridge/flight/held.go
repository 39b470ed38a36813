package flight

import (
	"sync"

	"github.com/mcpbridge/bridge/internal/budget"
	"github.com/mcpbridge/bridge/mrtr"
)

// Held is what a call holds besides its request: the response that comes in, and what
// the server wants to have back while the call waits.
type Held struct {
	mu      sync.Mutex
	hold    budget.Hold
	lasting int // bytes that stay from round to round
}

// Open charges an account from now on.
func (h *Held) Open(account *budget.Account) { h.hold = budget.On(account) }

// Account returns what is charged; nil: nothing is.
func (h *Held) Account() *budget.Account {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.hold.Account()
}

// Set implements upstream.Held: so many bytes of a response are held now.
func (h *Held) Set(response int) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.hold.Set(h.lasting + response)
}

// keep charges what stays while the call waits; the response is used up.
func (h *Held) keep(bytes int) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lasting = bytes
	return h.hold.Set(bytes)
}

// End gives everything back, and charges nothing any more.
func (h *Held) End() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.hold.Release()
	h.hold = budget.Hold{}
}

// Waits charges what stays of a flow that is to wait for its client, or the server;
// hosted says that it runs as a task, whose client's request is over.
func (h *Held) Waits(do mrtr.Verb, flow *mrtr.Flow, hosted bool) error {
	if do != mrtr.Ask && do != mrtr.Wait && do != mrtr.Poll {
		return nil
	}
	size := len(flow.RequestState)
	for i := range flow.Inputs {
		size += len(flow.Inputs[i].Params)
	}
	if hosted {
		size += len(flow.Params)
	}
	return h.keep(size)
}
