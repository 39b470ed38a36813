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
	lasting  int    // bytes that stay from round to round
	response int    // bytes for the response of this one
	owes     bool   // the client has given an answer
	leave    func() // has somebody else be alone; nil: it is not
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

// overdraw is Set for more than the account may have (Hold.Overdraw).
func (h *Held) overdraw(response int) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.response = inMemory(response)
	return h.hold.Overdraw(h.lasting + h.response - h.hold.Bytes())
}

// press is Set for one call at a time, which may have what nobody else may. Were there none, calls whose responses have come in part
// would wait for each other. It is alone until its answer is made, it has ended, or waits for its client.
func (h *Held) press(response int) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.leave == nil {
		leave, ok := h.hold.Account().Budget().Alone()
		if !ok {
			return budget.ErrFull
		}
		h.leave = leave
	}
	h.response = inMemory(response)
	err := h.hold.Press(h.lasting + h.response - h.hold.Bytes())
	if err != nil { // others may need less
		h.othersLocked()
	}
	return err
}

// Made says that the answer is made: what is left is for its client to take.
func (h *Held) Made() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.othersLocked()
}

// othersLocked has somebody else be alone.
func (h *Held) othersLocked() {
	if h.leave != nil {
		h.leave()
		h.leave = nil
	}
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

// Set implements translate.Held. What comes of an answer that was acknowledged may be more than its session may
// hold: of translations large enough to be charged few are under way at once (translate's turns).
func (w *Work) Set(bytes int) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	bytes += w.lasting + w.response
	err := w.hold.Set(bytes)
	if err != nil && w.owes {
		err = w.hold.Overdraw(bytes - w.hold.Bytes())
	}
	if err != nil && w.leave != nil {
		err = w.hold.Press(bytes - w.hold.Bytes())
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
	h.othersLocked()
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
	h.othersLocked()
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
