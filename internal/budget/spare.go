package budget

import "sync"

// Giver has something that is held for convenience only, such as what its client has had.
type Giver interface {
	// GiveBack lets go of it and reports true, unless it is needed again. Whoever is about to be refused calls it, and may
	// hold any lock: it waits for none. It reports busy where it would have to, and then somebody else lets go soon.
	GiveBack() (given, busy bool)
}

// Spare is the place of something among what is forgotten, oldest first, before anybody is refused. It is a part of the thing, and not
// copied once it was offered. The zero Spare is never offered, nor is nil. Its methods are safe for concurrent use.
//
//	withdrawn ──Offer──▶ offered ──Withdraw, or somebody would be refused──▶ withdrawn
type Spare struct {
	giver  Giver
	budget *Budget

	account *Account // nil: it is not offered; with what follows guarded by spares.mu
	bytes   int64

	own, all neighbours
}

type neighbours struct{ before, after *Spare }

// spares is what may be given back.
type spares struct {
	mu    sync.Mutex
	bytes int64
	all   queue // those of each principal are in a queue of its own, too, or those of each account where nobody knows whose it is
}

// queue has spares, oldest first. spares.mu guards it.
type queue struct{ first, last *Spare }

// Spare returns the place of what is charged to the account, and is not offered yet.
func (a *Account) Spare(giver Giver) Spare { return Spare{giver: giver, budget: a.Budget()} }

// Offer says that it may be given back, unless that is known: so many bytes are charged to this account.
func (s *Spare) Offer(a *Account, bytes int) {
	if s == nil || s.budget == nil || a == nil {
		return
	}
	b := s.budget
	b.spares.mu.Lock()
	defer b.spares.mu.Unlock()
	if s.account == nil {
		s.account, s.bytes = a, int64(bytes)
		b.spares.bytes += s.bytes
		b.spares.all.add(s, (*Spare).inAll)
		a.own.add(s, (*Spare).inOwn)
	}
}

// Withdraw says that it may not be given back, or was. It is idempotent.
func (s *Spare) Withdraw() {
	if s == nil || s.budget == nil {
		return
	}
	s.budget.spares.mu.Lock()
	defer s.budget.spares.mu.Unlock()
	s.withdrawLocked()
}

func (s *Spare) withdrawLocked() {
	if s.account != nil {
		s.budget.spares.all.remove(s, (*Spare).inAll)
		s.account.own.remove(s, (*Spare).inOwn)
		s.budget.spares.bytes -= s.bytes
		s.account = nil
	}
}

// oldest withdraws and returns the oldest one, of an account's own if there is one; nil: there is none.
func (s *spares) oldest(of *Account) *Spare {
	s.mu.Lock()
	defer s.mu.Unlock()
	from := &s.all
	if of != nil {
		from = of.own
	}
	found := from.first
	if found != nil {
		found.withdrawLocked()
	}
	return found
}

// move has what an account offers be in another queue from now on, as the newest there.
func (s *spares) move(a *Account, to *queue) {
	s.mu.Lock()
	defer s.mu.Unlock()
	from := a.own
	if a.own = to; from == to {
		return
	}
	for one := from.first; one != nil; {
		next := one.own.after
		if one.account == a {
			from.remove(one, (*Spare).inOwn)
			to.add(one, (*Spare).inOwn)
		}
		one = next
	}
}

// sum returns how much may be given back altogether.
func (s *spares) sum() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bytes
}

// mostBusy is how many in use somebody who is about to be refused meets before it is.
const mostBusy = 8

// reclaim has spares given back until there is enough, and reports whether there is. next withdraws the next one; nil: there is none.
func reclaim(next func() *Spare, enough func() bool) bool {
	for met := 0; met < mostBusy; {
		s := next()
		if s == nil {
			return false
		}
		given, busy := s.giver.GiveBack()
		if given && enough() {
			return true
		}
		if busy {
			met++
		}
	}
	return false
}

func (s *Spare) inAll() *neighbours { return &s.all }
func (s *Spare) inOwn() *neighbours { return &s.own }

func (q *queue) add(s *Spare, in func(*Spare) *neighbours) {
	in(s).before = q.last
	if q.last != nil {
		in(q.last).after = s
	} else {
		q.first = s
	}
	q.last = s
}

func (q *queue) remove(s *Spare, in func(*Spare) *neighbours) {
	n := in(s)
	if n.before != nil {
		in(n.before).after = n.after
	} else {
		q.first = n.after
	}
	if n.after != nil {
		in(n.after).before = n.before
	} else {
		q.last = n.before
	}
	*n = neighbours{}
}
