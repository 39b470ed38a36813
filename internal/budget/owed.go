package budget

// Advance is Overdraw for what may be large, and waits otherwise until it may press (Alone): that one thing then finds what it needs beside
// all that was advanced, and newcomers find room beside both.
func (h *Hold) Advance(bytes int) error {
	if h.account != nil {
		if limit := h.account.budget.limit; h.account.budget.leaves(bytes, limit/pressed+limit/reserve) {
			h.Charge(bytes)
			return nil
		}
	}
	return h.Grow(bytes)
}

// leaves reports whether so much stays free beside these bytes. It has spares given back first, unless that is in vain.
func (b *Budget) leaves(bytes int, least int64) bool {
	enough := func() bool { return b.free()-int64(bytes) >= least }
	return enough() || b.lookAgain() && enough() || reclaim(func() *Spare {
		if b.free()+b.spares.sum()-int64(bytes) < least {
			return nil
		}
		return b.spares.oldest(nil)
	}, enough)
}

// PressLast is Press for what can wait. It is refused, unless it leaves memory for newcomers, where its principal holds much, and has some of
// that under way: that ends by itself, be it that it comes or that its client takes it. What itself waits for memory (Rest) does not, and
// would be waited for in vain.
func (a *Alone) PressLast(h *Hold, bytes int) error {
	if of := h.account; of != nil {
		b := of.budget
		_, all := of.held()
		moving := of.moving() - int64(h.bytes-h.resting)
		if all >= b.limit/little && moving >= b.limit/reserve && !b.leaves(bytes, b.limit/reserve) {
			a.End()
			return ErrShare
		}
	}
	return a.Press(h, bytes)
}

// Rest says that what the hold has been charged for stays until there is memory for more of it, or Wake.
func (h *Hold) Rest() { h.restFor(h.bytes) }

// Wake is described with Rest. It is idempotent.
func (h *Hold) Wake() { h.restFor(0) }

func (h *Hold) restFor(bytes int) {
	if h.account != nil && bytes != h.resting {
		h.account.rest(int64(bytes - h.resting))
		h.resting = bytes
	}
}

func (a *Account) rest(n int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.closed {
		a.still += n
		a.owner.still.Add(n)
	}
}

// moving returns what the account's principal holds that does not rest, or the account where nobody knows whose it is.
func (a *Account) moving() int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.owner.name != "" {
		return a.owner.used.Load() - a.owner.still.Load()
	}
	return a.used - a.still
}
