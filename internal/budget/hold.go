package budget

// Hold is what one thing has been charged for: a body, a call, a log. The zero Hold is
// of no account. Its owner guards it.
type Hold struct {
	account *Account
	bytes   int
	lent    int        // of them, beyond what the account may hold
	lender  *principal // to whom that is lent; nil: nothing is
	moving  int        // of them, by Moves
}

// On returns an empty hold on an account, which may be nil.
func On(a *Account) Hold { return Hold{account: a} }

// Account returns what the hold is charged to; nil: nothing.
func (h *Hold) Account() *Account { return h.account }

// Grow charges further bytes, unless they are refused.
func (h *Hold) Grow(bytes int) error {
	if h.account == nil {
		return nil
	}
	err := h.account.Take(bytes)
	if err == nil {
		h.bytes += bytes
	}
	return err
}

// Borrow is Grow for what may make room, before anybody knows whether it does: while half of the
// memory is free nobody is asked, and after that who holds too much may have a little more, as
// long as there is memory for newcomers.
func (h *Hold) Borrow(bytes int) error {
	if h.account == nil {
		return nil
	}
	b := h.account.budget
	if b.free() >= b.limit/2 || !h.account.fits(bytes) && !b.Full() && h.lend(bytes) {
		h.Charge(bytes)
		return nil
	}
	return h.Grow(bytes)
}

// lend takes bytes from what may be lent to the account's principal, and reports whether there are
// so many.
func (h *Hold) lend(bytes int) bool {
	h.settle() // the account may be another principal's by now
	a := h.account
	a.mu.Lock()
	owner := a.owner
	a.mu.Unlock()
	if owner.lent.Add(int64(bytes)) > max(a.budget.limit/lentPart, leastLent) {
		owner.lent.Add(-int64(bytes))
		return false
	}
	h.lent, h.lender = bytes, owner
	return true
}

// settle has nothing count as lent any more.
func (h *Hold) settle() {
	if h.lender != nil {
		h.lender.lent.Add(-int64(h.lent))
		h.lent, h.lender = 0, nil
	}
}

// Overdraw is Grow for what its caller bounds: it may be more than the account may have, as long as
// there is memory for newcomers.
func (h *Hold) Overdraw(bytes int) error {
	if h.account == nil || h.account.budget.crowded() {
		return h.Grow(bytes)
	}
	h.Charge(bytes)
	return nil
}

// finished is by which part of a budget what is made of what has come may be more than there is: one in so many.
const finished = pressed / 2

// Finish is Grow for what is made of something owed that is in memory already: it may be more than there is, by half at most.
func (h *Hold) Finish(bytes int) error { return h.beyond(bytes, finished) }

// beyond is Grow for more than there is, by one part of it in so many.
func (h *Hold) beyond(bytes int, part int64) error {
	return h.growLeaving(bytes, func(limit int64) int64 { return -limit / part })
}

// growLeaving is Grow for more than the account may have, as long as so much of the limit stays free.
func (h *Hold) growLeaving(bytes int, least func(limit int64) int64) error {
	if h.account == nil || h.leave(bytes, least) {
		return nil
	}
	return h.Grow(bytes)
}

// leave charges further bytes if so much of the limit stays free beside them, and reports whether it does. It has spares given back first.
func (h *Hold) leave(bytes int, least func(limit int64) int64) bool {
	b := h.account.budget
	leaves := func(given int64) bool { return b.free()+given-int64(bytes) >= least(b.limit) }
	done := h.account.chargeFor(bytes, leaves)
	if done {
		h.bytes += bytes
	}
	return done
}

// carried is up to what size messages are always carried, in bytes.
const carried = 4 << 10

// Carry is Grow for a message that is handed on. A small one may be the answer or the cancellation
// that ends what is held, and is never refused.
func (h *Hold) Carry(bytes int) error {
	if bytes <= carried {
		h.Charge(bytes)
		return nil
	}
	return h.Grow(bytes)
}

// Charge is Grow for what cannot be refused any more.
func (h *Hold) Charge(bytes int) {
	if h.account != nil {
		h.account.Charge(bytes)
		h.bytes += bytes
	}
}

// Judge returns ErrShare or ErrFull when the account holds more than it may, after Borrow.
func (h *Hold) Judge() error {
	err := h.account.Take(0)
	if err == nil {
		h.settle()
	}
	return err
}

// Set charges for so many bytes instead, unless that is more and refused.
func (h *Hold) Set(bytes int) error {
	if h.account == nil {
		return nil
	}
	if more := bytes - h.bytes; more > 0 {
		return h.Grow(more)
	}
	h.account.Give(h.bytes - bytes)
	h.bytes = bytes
	h.move(min(h.moving, bytes))
	h.settle()
	return nil
}

// Bytes returns what it is charged for.
func (h *Hold) Bytes() int { return h.bytes }

// Owe is Set for what cannot be refused any more.
func (h *Hold) Owe(bytes int) {
	if more := bytes - h.bytes; more > 0 {
		h.Charge(more)
		return
	}
	_ = h.Set(bytes)
}

// Inherit has what another hold on the same account was charged with count as this one's, up
// to so many bytes, and charges the rest of them. Refused, also because what was lent is too
// much (Borrow), it changes nothing. from may be nil.
func (h *Hold) Inherit(from *Hold, bytes int) error {
	theirs := 0
	if from != nil && from.account == h.account {
		theirs = min(from.bytes, bytes)
	}
	if err := h.Grow(bytes - theirs); err != nil {
		return err
	}
	if theirs > 0 {
		from.settle()
		from.bytes -= theirs
		h.bytes += theirs
	}
	return nil
}

// Move empties the hold and returns what it was.
func (h *Hold) Move() Hold {
	moved := *h
	h.bytes, h.lent, h.lender, h.moving = 0, 0, nil, 0
	return moved
}

// Release gives everything back. It is idempotent.
func (h *Hold) Release() {
	h.settle()
	h.Stays()
	h.account.Give(h.bytes)
	h.bytes = 0
}
