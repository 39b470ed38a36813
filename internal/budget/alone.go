package budget

import "time"

// Alone is how one thing at a time may be more than there is: things that have come in part, and are not to be refused, would wait for
// each other. The zero Alone is not alone. Its owner guards it, and does not copy it.
//
//	waits ──Press──▶ alone ──End, or refused, or stalled while another presses──▶ waits
type Alone struct {
	budget *Budget // in which it is, or was
}

// pressed is by which part of a budget who is alone may have more than there is: one in so many.
const pressed = 4

// stalled is for how long who is alone may press for nothing more before another one takes its place: a server may stop in the midst of
// what it says. It is less than a line of a process waits for.
const stalled = 3 * time.Second

// Press is Hold.Grow for who is alone from then on: it may be more than there is, by a quarter at most. Who is refused is not: others may
// need less.
func (a *Alone) Press(h *Hold, bytes int) error {
	return a.press(h, func() error { return h.beyond(bytes, pressed) })
}

func (a *Alone) press(h *Hold, grow func() error) error {
	if h.account == nil {
		return nil
	}
	if !a.claim(h.account.budget) {
		return ErrFull
	}
	err := grow()
	if err != nil {
		a.End()
	}
	return err
}

// claim reports whether nobody else is alone, and has a be.
func (a *Alone) claim(b *Budget) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.alone != nil && b.alone != a && time.Since(b.pressed) < stalled {
		return false
	}
	a.budget, b.alone, b.pressed = b, a, time.Now()
	return true
}

// End has another one be alone. It is idempotent.
func (a *Alone) End() {
	b := a.budget
	if b == nil {
		return
	}
	a.budget = nil
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.alone == a {
		b.alone = nil
	}
}
