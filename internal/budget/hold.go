package budget

// Hold is what one thing has been charged for: a body, a call, a log. The zero Hold is
// of no account. Its owner guards it.
type Hold struct {
	account *Account
	bytes   int
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

// Borrow is Grow for what may make room: who holds too much may have a little more, as
// long as there is memory for newcomers.
func (h *Hold) Borrow(bytes int) error {
	if h.account == nil || h.account.budget.Full() {
		return h.Grow(bytes)
	}
	h.Charge(bytes)
	return nil
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
func (h *Hold) Judge() error { return h.account.Take(0) }

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
	return nil
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
		from.bytes -= theirs
		h.bytes += theirs
	}
	return nil
}

// Move empties the hold and returns what it was.
func (h *Hold) Move() Hold {
	moved := *h
	h.bytes = 0
	return moved
}

// Release gives everything back. It is idempotent.
func (h *Hold) Release() {
	h.account.Give(h.bytes)
	h.bytes = 0
}
