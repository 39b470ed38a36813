package budget

import "sync"

// Account is what one session holds, in bytes. Its methods are safe for concurrent use.
//
//	open ──Take, Charge, Give, Move──▶ open ──Close──▶ closed: nothing counts any more
type Account struct {
	budget *Budget

	mu     sync.Mutex // guards what follows
	owner  *principal
	used   int64
	moves  int64 // of that, by Hold.Moves
	closed bool

	spares queue  // where nobody knows whose it is; guarded by the budget's spares, like what follows
	own    *queue // its principal's, or this one: what it gives back before others do
}

// of makes a new account one of a principal.
func (a *Account) of(b *Budget, owner *principal) *Account {
	a.budget, a.owner = b, owner
	a.own = a.queueOf(owner)
	return a
}

// queueOf returns where the account's spares are when it is this principal's.
func (a *Account) queueOf(owner *principal) *queue {
	if owner.name == "" {
		return &a.spares
	}
	return &owner.spares
}

// Budget returns what the account is of.
func (a *Account) Budget() *Budget {
	if a == nil {
		return nil
	}
	return a.budget
}

// Take charges bytes that are about to be held, or returns ErrShare or ErrFull.
func (a *Account) Take(bytes int) error {
	if a == nil {
		return nil
	}
	if a.chargeFor(bytes, func(given int64) bool { return a.wouldFit(bytes, given) }) {
		return nil
	}
	a.budget.refused.Add(1)
	a.forget()
	if a.budget.shortOf(bytes) {
		return ErrFull
	}
	return ErrShare
}

// chargeFor charges bytes if there is enough, and reports whether there is. Spares are given back first; enough is asked what would be if so
// many bytes were.
func (a *Account) chargeFor(bytes int, enough func(given int64) bool) bool {
	if a.chargeIf(bytes, enough) || a.budget.lookAgain() && a.chargeIf(bytes, enough) {
		return true
	}
	for a.reclaim(bytes, enough) {
		if a.chargeIf(bytes, enough) { // else another one was quicker
			return true
		}
	}
	return false
}

// chargeIf charges bytes if there is enough now. Two would find the same room: it is looked for, and taken, by one at a time, but for
// what is next to nothing.
func (a *Account) chargeIf(bytes int, enough func(given int64) bool) bool {
	if b := a.budget; int64(bytes) > b.limit/modest {
		b.large.Lock()
		defer b.large.Unlock()
	}
	if !enough(0) {
		return false
	}
	a.Charge(bytes)
	return true
}

// reclaim has spares given back until there is enough, and reports whether there is; enough is asked what would be if so many bytes were
// given back. Where so many are too much whoever takes them the spares are anybody's. Otherwise it is the account, or its principal, that
// holds too much: its own go first. Those of others go only if all of them would be enough: nobody else's are forgotten in vain.
func (a *Account) reclaim(bytes int, enough func(given int64) bool) bool {
	spares := &a.budget.spares
	return reclaim(func() *Spare {
		mayHave := enough(spares.sum())
		if !a.budget.shortOf(bytes) || !mayHave {
			if s := spares.oldest(a); s != nil || !mayHave {
				return s
			}
		}
		return spares.oldest(nil)
	}, func() bool { return enough(0) })
}

// fits reports whether the account may take this many bytes. Whoever holds next to nothing may
// take from what others have been refused: what is alive comes and goes faster than anybody
// looks, and a few bytes for each of those who behave do not tip the scales.
func (a *Account) fits(bytes int) bool { return a.wouldFit(bytes, 0) }

// wouldFit is fits if so many bytes were given back.
func (a *Account) wouldFit(bytes int, given int64) bool {
	n, room := int64(bytes), a.room(bytes)+given
	if room >= n {
		return true
	}
	own, held := a.held()
	free, spare := a.budget.free()+given, a.budget.limit/reserve
	if least := a.budget.limit / modest; own+n > least {
		return false
	} else if held+n <= least {
		return free+spare >= n
	}
	return free-n >= spare && room+spare >= n // a session of a principal whose others are greedy
}

// held returns what the account holds, and its principal, which is the account where nobody knows whose it is.
func (a *Account) held() (own, all int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.owner.name != "" {
		return a.used, a.owner.used.Load()
	}
	return a.used, a.used
}

// room returns how much more the account may hold when it takes this many bytes: what
// is then free, less what its principal has, less what it has itself. Where nobody
// knows whose sessions are whose, each stands for itself.
func (a *Account) room(bytes int) int64 {
	a.mu.Lock()
	used, owner := a.used, a.owner
	a.mu.Unlock()
	room := a.budget.free() - int64(bytes) - max(used, 0)
	if owner.name != "" {
		room -= owner.used.Load() + int64(bytes)
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

// StillTight is Tight for what had better stay while there are spares: they are given back first.
func (a *Account) StillTight() bool {
	return a.Tight() && !a.reclaim(0, func(given int64) bool { return a.room(0)+given > 0 })
}

// Guest returns the account of what belongs to the session's principal, and may
// outlive the session.
func (a *Account) Guest() *Account {
	if a == nil {
		return nil
	}
	a.mu.Lock()
	name := a.owner.name
	a.mu.Unlock()
	return a.budget.Guest(name)
}

// Move has a session, with what it holds and its spares, counted as this principal's from now on. It is
// not for the accounts of guests.
func (a *Account) Move(name string) {
	if a == nil {
		return
	}
	to := a.budget.join(name)
	a.mu.Lock()
	from := a.owner
	if a.closed {
		a.mu.Unlock()
		a.budget.leave(to)
		return
	}
	a.owner = to
	from.used.Add(-a.used)
	to.used.Add(a.used)
	from.moves.Add(-a.moves)
	to.moves.Add(a.moves)
	a.mu.Unlock()
	a.budget.spares.move(a, a.queueOf(to))
	a.budget.leave(from)
}

// Owner returns whose the account is; "" where nobody knows.
func (a *Account) Owner() string {
	if a == nil {
		return ""
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.owner.name
}

// Sessions returns how many sessions belong to the same principal as the account, itself
// included; 1 where nobody knows whose they are.
func (a *Account) Sessions() int {
	if a == nil {
		return 1
	}
	a.mu.Lock()
	owner := a.owner
	a.mu.Unlock()
	if owner.name == "" {
		return 1
	}
	a.budget.mu.Lock()
	defer a.budget.mu.Unlock()
	return owner.sessions
}

// Close gives everything back that is still charged: what is given back afterwards
// was. It is idempotent, and not for the accounts of guests.
func (a *Account) Close() {
	if a == nil {
		return
	}
	a.mu.Lock()
	if a.closed {
		a.mu.Unlock()
		return
	}
	a.closed = true
	a.owner.used.Add(-a.used)
	a.owner.moves.Add(-a.moves)
	a.budget.used.Add(-a.used)
	owner := a.owner
	a.mu.Unlock()
	a.budget.leave(owner)
}

func (a *Account) add(n int64) {
	if a == nil || n == 0 {
		return
	}
	a.mu.Lock()
	if a.closed {
		a.mu.Unlock()
		return
	}
	a.used += n
	a.budget.used.Add(n)
	owner, left := a.owner, a.owner.used.Add(n)
	a.mu.Unlock()
	if left == 0 {
		a.forgetGuest(owner)
	}
}

// forget takes a guest's principal out, unless something is charged to it.
func (a *Account) forget() {
	a.mu.Lock()
	owner := a.owner
	a.mu.Unlock()
	a.forgetGuest(owner)
}

func (a *Account) forgetGuest(owner *principal) {
	if a == &owner.guest {
		a.budget.mu.Lock()
		a.budget.forgetLocked(owner)
		a.budget.mu.Unlock()
	}
}
