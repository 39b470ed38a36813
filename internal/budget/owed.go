package budget

// Advance is Overdraw for what may be large, and waits otherwise until it may press (Alone): that one thing then finds what it needs beside
// all that was advanced, and newcomers find room beside both.
func (h *Hold) Advance(bytes int) error {
	return h.growLeaving(bytes, func(limit int64) int64 { return limit/pressed + limit/reserve })
}

// PressLast is Press for what can wait. It is refused, unless it leaves memory for newcomers, where its principal holds much, and has some of
// that under way (Moves): that ends by itself. stays: it is not to end soon itself, since nobody is there to take it.
func (a *Alone) PressLast(h *Hold, bytes int, stays bool) error {
	return a.press(h, func() error {
		return h.growLeaving(bytes, func(limit int64) int64 {
			if h.holdsMuch() && (stays || h.othersMove()) {
				return limit / reserve
			}
			return -limit / pressed
		})
	})
}

// FinishLast is Finish for what can wait, as with PressLast.
func (h *Hold) FinishLast(bytes int, stays bool) error {
	return h.growLeaving(bytes, func(limit int64) int64 {
		if stays && h.holdsMuch() {
			return limit / reserve
		}
		return -limit / finished
	})
}

// holdsMuch reports whether the hold's principal holds what one gets that is greedy alone.
func (h *Hold) holdsMuch() bool {
	_, all := h.account.held()
	return all >= h.account.budget.limit/little
}

// othersMove reports whether the hold's principal has much under way in other holds.
func (h *Hold) othersMove() bool {
	return h.account.moving()-int64(h.moving) >= h.account.budget.limit/reserve
}

// Moves says that so many bytes, which the hold is about to be charged for, end by themselves: a response that comes, and goes on to its
// client. It is said first, or others would press in between. What waits for memory, or for people, does not move, and would be waited for
// in vain: see Stays.
func (h *Hold) Moves(bytes int) { h.move(bytes) }

// Stays is what holds do until Moves. It is idempotent.
func (h *Hold) Stays() { h.move(0) }

func (h *Hold) move(bytes int) {
	if h.account != nil && bytes != h.moving {
		h.account.move(int64(bytes - h.moving))
		h.moving = bytes
	}
}

func (a *Account) move(n int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.closed {
		a.moves += n
		a.owner.moves.Add(n)
	}
}

// moving returns what of the account's principal is under way, or of the account where nobody knows whose it is.
func (a *Account) moving() int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.owner.name != "" {
		return a.owner.moves.Load()
	}
	return a.moves
}
