package budget

// Advance is Overdraw for what may be large, and waits otherwise until it may press (Alone): that one thing then finds what it needs beside
// all that was advanced, and newcomers find room beside both.
func (h *Hold) Advance(bytes int) error {
	return h.growLeaving(bytes, func(limit int64) int64 { return limit/pressed + limit/reserve })
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
	return a.press(h, func() error {
		return h.growLeaving(bytes, func(limit int64) int64 {
			if h.othersMove() {
				return limit / reserve
			}
			return -limit / pressed
		})
	})
}

// othersMove reports whether the hold's principal holds much, some of that in other holds, and under way.
func (h *Hold) othersMove() bool {
	limit, moving := h.account.budget.limit, h.account.moving()-int64(h.bytes-h.resting)
	_, all := h.account.held()
	return all >= limit/little && moving >= limit/reserve
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
