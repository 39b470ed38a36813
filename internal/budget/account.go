package budget

import (
	"math"
	"sync/atomic"
)

// closed is what an account says that has given everything back.
const closed = math.MinInt64

// Account is what one session holds, in bytes. Its methods are safe for concurrent use.
//
//	open ──Take, Charge, Give──▶ open ──Close──▶ closed: nothing counts any more
type Account struct {
	budget *Budget
	owner  *principal
	used   atomic.Int64
}

// Take charges bytes that are about to be held, or returns ErrShare or ErrFull.
func (a *Account) Take(bytes int) error {
	if a == nil {
		return nil
	}
	if room := a.room(bytes); room < int64(bytes) {
		a.budget.refused.Add(1)
		if a.budget.free() < a.budget.limit/reserve+int64(bytes) {
			return ErrFull
		}
		return ErrShare
	}
	a.Charge(bytes)
	return nil
}

// room returns how much more the account may hold when it takes this many bytes: what
// is then free, less what its principal has, less what it has itself. Where nobody
// knows whose sessions are whose, each stands for itself.
func (a *Account) room(bytes int) int64 {
	room := a.budget.free() - int64(bytes) - max(a.used.Load(), 0)
	if a.owner.name != "" {
		room -= a.owner.used.Load() + int64(bytes)
	}
	return room
}

// Charge is Take for what cannot be refused any more.
func (a *Account) Charge(bytes int) { a.add(int64(bytes)) }

// Give takes back what was charged and is no longer held.
func (a *Account) Give(bytes int) { a.add(-int64(bytes)) }

// Tight reports whether the session holds more than it could take now: what it holds
// for convenience only had better go.
func (a *Account) Tight() bool {
	return a != nil && a.room(0) <= 0
}

// Guest returns the account of what belongs to the session's principal, and may
// outlive the session.
func (a *Account) Guest() *Account {
	if a == nil {
		return nil
	}
	return a.budget.Guest(a.owner.name)
}

// Close gives everything back that is still charged: what is given back afterwards
// was. It is idempotent, and not for the accounts of guests.
func (a *Account) Close() {
	if a == nil {
		return
	}
	left := a.used.Swap(closed)
	if left == closed {
		return
	}
	a.owner.used.Add(-left)
	a.budget.used.Add(-left)
	a.budget.leave(a.owner)
}

func (a *Account) add(n int64) {
	if a == nil || n == 0 {
		return
	}
	for {
		used := a.used.Load()
		if used == closed {
			return
		}
		if a.used.CompareAndSwap(used, used+n) {
			break
		}
	}
	a.budget.used.Add(n)
	if a.owner.used.Add(n) == 0 && a == &a.owner.guest {
		a.budget.mu.Lock()
		a.budget.forgetLocked(a.owner)
		a.budget.mu.Unlock()
	}
}
