package flight

import (
	"sync"

	"github.com/mcpbridge/bridge/internal/budget"
	"github.com/mcpbridge/bridge/mrtr"
)

// Held is what a call holds besides its request: the response that comes in, and while the
// call waits what the server wants to have back and what its client has answered so far.
type Held struct {
	mu       sync.Mutex
	hold     budget.Hold
	lasting  int  // bytes that stay from round to round
	response int  // bytes for the response of this one
	owes     bool // the client has given an answer
	alone    budget.Alone
}

// Open charges an account from now on.
func (h *Held) Open(account *budget.Account) { h.hold = budget.On(account) }

// Account returns what is charged; nil: nothing is.
func (h *Held) Account() *budget.Account {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.hold.Account()
}

// timesHeld is how often a response is in memory: as the server has sent it, and as the client gets it, until
// that has taken it.
const timesHeld = 2

// FewBytes is what a copy may take that is part of what every request is charged for.
const FewBytes = 4 << 10

// Set implements upstream.Held: so many bytes of a response are held now.
func (h *Held) Set(response int) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.response = inMemory(response)
	return h.hold.Set(h.lasting + h.response)
}

// moves says that so much of a response is about to come, stays that it has to wait for memory.
func (h *Held) moves(response int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.hold.Moves(h.lasting + inMemory(response))
}

// stays is described with moves.
func (h *Held) stays() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.hold.Stays()
}

// exceed is Set for more than the account may have, which grow knows to charge. Who presses is alone until its answer is made, it has ended,
// or waits for its client.
func (h *Held) exceed(response int, grow func(hold *budget.Hold, bytes int) error) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.response = inMemory(response)
	return grow(&h.hold, h.lasting+h.response-h.hold.Bytes())
}

// Made says that the answer is made: what is left is for its client to take.
func (h *Held) Made() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.alone.End()
}

// inMemory returns what a response takes.
func inMemory(response int) int {
	if response > FewBytes {
		response *= timesHeld
	}
	return response
}

// Work is the same where the response is translated: what that takes is charged besides.
type Work Held

// Work returns what a translation is charged to.
func (h *Held) Work() *Work { return (*Work)(h) }

// Set implements translate.Held. What comes of an answer that was acknowledged is there, and is made to be handed on.
func (w *Work) Set(bytes int) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	bytes += w.lasting + w.response
	err := w.hold.Set(bytes)
	if err != nil && w.owes {
		err = w.hold.Finish(bytes - w.hold.Bytes())
	}
	return err
}

// Due is Work for what was made before, and is made again: it is never refused.
type Due Held

// Due returns what that is charged to.
func (h *Held) Due() *Due { return (*Due)(h) }

// Set implements translate.Held.
func (d *Due) Set(bytes int) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.hold.Owe(d.lasting + d.response + bytes)
	return nil
}

// keep charges what stays while the call waits; the response is used up. Who owes is not
// refused, then and later.
func (h *Held) keep(bytes int, owes bool) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lasting, h.response, h.owes = bytes, 0, h.owes || owes
	h.alone.End()
	h.hold.Stays() // for people, perhaps
	err := h.hold.Set(bytes)
	if err != nil && owes {
		h.hold.Owe(bytes)
		err = nil
	}
	return err
}

// Resume charges an account from now on, and for so many bytes that stay of a call which comes back: that was judged.
func (h *Held) Resume(account *budget.Account, bytes int) {
	h.Open(account)
	h.lasting = bytes
	h.hold.Charge(bytes)
}

// End gives everything back, and charges nothing any more.
func (h *Held) End() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.hold.Release()
	h.hold = budget.Hold{}
	h.alone.End()
}

// Keep charges so many bytes more that stay; paid is what they were charged to so far, and may
// be nil. What must is charged even if the account holds too much.
func (h *Held) Keep(bytes int, paid *budget.Hold, must bool) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	err := h.hold.Inherit(paid, bytes)
	if err != nil && must {
		h.hold.Charge(bytes)
		err = nil
	}
	if err == nil {
		h.lasting += bytes
	}
	return err
}

// Waits charges what stays of a flow that waits for its client, or the server, and what its call
// keeps besides. One that has taken an answer is not refused: what stays is less than what came in.
func (h *Held) Waits(flow *mrtr.Flow, besides int) error {
	if !flow.Waits() {
		return nil
	}
	if flow.Task != nil && flow.Task.Fetching { // a response comes in
		return nil
	}
	return h.keep(flow.Size()+besides, flow.Owes())
}
