// Package budget bounds the memory that peers can make the process hold. Everything
// that a peer can make grow is charged to an account before it is held: one for each
// session, which belongs to a principal: that is any name under which sessions are
// counted together, for clients without credentials that of their address.
//
//	Budget ◀── principal ◀── Account (a session, or a principal's requests without one) ◀── Hold (one thing)
//
// Nobody may hold more than is left for others: a principal no more than is free
// altogether, a session no more than is free for its principal. A session that is greedy
// alone gets a third, or half where nobody knows whose it is, and is refused while the
// rest is left for those who behave; of two each gets less, and so on. Newcomers are
// refused while less than an eighth is free. Who holds next to nothing is the last to be
// refused, when as much is overdrawn; and a session that does so, of a principal that is
// greedy, when a sixteenth more than its share is taken.
//
// What is held for convenience only, since its client has had it, is given back before anybody is refused (Spare).
//
// What is owed may be more than there is: one thing at a time that comes, by a quarter (Alone), and what is made of what has come,
// by half (Finish), for what a quarter has come in is in memory twice: as it came, and as it is handed on. What can wait
// leaves an eighth for newcomers where its principal holds much, and either has some under way that ends by itself, or is not there to take
// it, which would stay then: lest the calls of one keep others out in turn, or for long (PressLast, FinishLast).
// What was kept comes back one thing at a time where it is more than its share (Return).
//
// What is charged is an estimate. What the collector finds alive beyond it counts
// too (Watch), so that things too small to be charged cannot add up unseen.
//
// The nil Budget, and the nil Account, are without bounds.
package budget

import (
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpbridge/bridge/internal/turns"
)

// Why something is refused. Both say what the person who runs the bridge can do.
var (
	// ErrShare: others could be taken in; this session, or its principal, holds too much.
	ErrShare = errors.New("this session holds too much of the bridge's memory at the moment (limits.memory)" + later)
	// ErrFull: there is hardly any memory left for anybody.
	ErrFull = errors.New("the bridge is short of memory at the moment (limits.memory)" + later)
)

const later = "; try again later"

// Unread says of a response that an error of these two has kept out that it was not taken in. Whoever sent the request is not
// invited to do so again: what it asked for may be done.
func Unread(err error) string {
	return "what was asked for may be done, but the response was not taken in: " + strings.ReplaceAll(err.Error(), later, "")
}

// Short reports whether an error is one of these two.
func Short(err error) bool { return errors.Is(err, ErrShare) || errors.Is(err, ErrFull) }

// reserve is the part of a budget that is kept from newcomers: one in so many.
const reserve = 8

// modest is the part of a budget that is next to nothing: one in so many. As much as the
// reserve may be overdrawn by those who have no more than that.
const modest = 512

// What may be lent to one principal at a time: one part in so many of a budget, or so many bytes.
const (
	lentPart  = 64
	leastLent = 256 << 10
)

// Budget is how much may be held altogether. Its methods are safe for concurrent use.
type Budget struct {
	limit   int64
	refused atomic.Int64

	_         [64]byte     // the counters that every call changes have a cache line of their own
	used      atomic.Int64 // what the accounts hold
	uncharged atomic.Int64 // what is alive beyond that
	_         [48]byte

	turn *turns.Queue // see Returning

	large sync.Mutex // who takes more than next to nothing; before the accounts' mu, and this one's

	mu         sync.Mutex
	principals map[string]*principal
	alone      *Alone    // nil: nobody is
	pressed    time.Time // when that last pressed

	spares spares

	watched atomic.Bool
	looking atomic.Bool
	look    atomic.Int64 // when lookAgain may look, in nanoseconds since 1970
}

// principal is whom accounts belong to. It is in the table while anything is charged
// to it, or a session of its open.
type principal struct {
	name  string
	used  atomic.Int64
	lent  atomic.Int64 // of that, by Borrow
	moves atomic.Int64 // of that, by Hold.Moves
	guest Account      // of its requests without a session

	spares   queue // guarded by the budget's spares
	sessions int   // guarded by the budget's mu
}

// New returns a budget of this many bytes.
func New(limit int64) *Budget {
	return &Budget{limit: limit, turn: turns.New(1), principals: make(map[string]*principal)}
}

// Limit returns the bytes that may be held.
func (b *Budget) Limit() int64 { return b.limit }

// Used returns the bytes that are held: what is charged, and what is alive beyond.
func (b *Budget) Used() int64 { return b.used.Load() + b.uncharged.Load() }

// Refused returns how often something was refused.
func (b *Budget) Refused() int64 { return b.refused.Load() }

// Full reports whether newcomers are to be refused: sessions, and connections.
func (b *Budget) Full() bool { return b != nil && b.free() < b.limit/reserve }

func (b *Budget) free() int64 { return b.limit - b.Used() }

// shortOf reports whether so many bytes are too much whoever takes them.
func (b *Budget) shortOf(bytes int) bool { return b.free() < b.limit/reserve+int64(bytes) }

// crowded is Full for who would be refused: it has spares given back first, unless that is in vain.
func (b *Budget) crowded() bool {
	return b.Full() && !reclaim(func() *Spare {
		if b.free()+b.spares.sum() < b.limit/reserve {
			return nil
		}
		return b.spares.oldest(nil)
	}, func() bool { return !b.Full() })
}

// Open returns the account of a new session, or ErrFull. It is to be closed.
func (b *Budget) Open(name string) (*Account, error) {
	if b == nil {
		return nil, nil
	}
	if b.Full() && !(b.lookAgain() && !b.Full()) && b.crowded() {
		b.refused.Add(1)
		return nil, ErrFull
	}
	return new(Account).of(b, b.join(name)), nil
}

// join adds a session to a principal.
func (b *Budget) join(name string) *principal {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.principalLocked(name)
	p.sessions++
	return p
}

// Guest returns the account of a principal's requests without a session.
func (b *Budget) Guest(name string) *Account {
	if b == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return &b.principalLocked(name).guest
}

// Own returns an account of the process's own, for what is held for no client in particular. It
// stands for itself, and is not closed.
func (b *Budget) Own() *Account {
	if b == nil {
		return nil
	}
	return new(Account).of(b, new(principal))
}

func (b *Budget) principalLocked(name string) *principal {
	p := b.principals[name]
	if p == nil {
		p = &principal{name: name}
		p.guest.of(b, p)
		b.principals[name] = p
	}
	return p
}

// leave takes a session off its principal.
func (b *Budget) leave(p *principal) {
	b.mu.Lock()
	p.sessions--
	b.forgetLocked(p)
	b.mu.Unlock()
}

// forgetLocked takes a principal out that nothing belongs to. Whoever has just got its
// guest account may still charge it: that counts, only not with what comes later.
func (b *Budget) forgetLocked(p *principal) {
	if p.sessions == 0 && p.used.Load() == 0 && b.principals[p.name] == p {
		delete(b.principals, p.name)
	}
}

// Reserved returns how many of so many places for sessions, or the like, are kept from who has
// this many already: the last eighth is for whoever has less than an eighth.
func Reserved(has, places int) int {
	if reserved := places / reserve; has >= reserved {
		return reserved
	}
	return 0
}

// Modest returns how many of so many places are next to nothing.
func Modest(places int) int { return places / modest }
