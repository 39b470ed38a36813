package budget

import "github.com/mcpbridge/bridge/internal/turns"

const (
	// returning is by which part of a budget what comes back is charged at most while it does: one in so many. It may be more than its
	// share or what there is, and newcomers find room beside it.
	returning = 2
	// returned is by which part of a budget that may be more than there is: less than what those overdraw who hold next to nothing.
	returned = reserve * 2
	// little is which part of a budget its principal holds less than for whom it comes back whatever stays of it: what one gets that is
	// greedy alone.
	little = 3
)

// Returning is whose turn it is to have something return that need not fit: one has at a time in a process, whichever part of that it is in,
// or two would take all there is. Whoever has a turn waits for no other.
func (b *Budget) Returning() *turns.Queue {
	if b == nil {
		return nil
	}
	return b.turn
}

// Return is Grow for what comes back from where it was kept, and is of an account whose Grow was refused: it has been in memory before, is
// owed to its client, and would never fit otherwise. So many bytes are needed while it comes back, which is charged to nobody: what stays
// afterwards is, by who goes on with it. That is to be within what its account may hold, unless its principal holds little. The caller
// has a turn (Returning).
func (h *Hold) Return(of *Account, bytes, stays int) error {
	if h.account == nil {
		return nil
	}
	b := h.account.budget
	if _, held := of.held(); held >= b.limit/little && !of.fits(stays) {
		return ErrShare
	}
	if !h.leave(b.returning(bytes), func(limit int64) int64 { return -limit / returned }) {
		return ErrFull
	}
	return nil
}

// ReturnOwed is Return for what cannot be refused, and may have no turn, either.
func (h *Hold) ReturnOwed(bytes int) {
	if h.account != nil {
		h.Charge(h.account.budget.returning(bytes))
	}
}

// returning returns what is charged while so many bytes are needed.
func (b *Budget) returning(bytes int) int { return min(bytes, int(b.limit/returning)) }
