package session

import (
	"context"
	"sync"
	"time"

	"github.com/mcpbridge/bridge/internal/budget"
	"github.com/mcpbridge/bridge/internal/turns"
	"github.com/mcpbridge/bridge/sessions/store"
)

// What is read of a call is charged before it is read, since it may be megabytes, several times. What is large is
// read in turn besides: clients that come back together, after a restart or to flood, would otherwise have all that they have waiting
// read at once. What is too large for what its session may hold meanwhile, though it could be held before it was kept, comes back alone.

const (
	// timesPassing is how often a record is in memory at most while its call comes back, besides what stays: sealed, as text,
	// as its flow is decoded, and sealed anew on its way to the disk.
	timesPassing = 5
	// timesBack is how often it is from then on: as its record, and as its flow.
	timesBack   = 2
	largeRecord = 64 << 10 // bytes from which on one waits for its turn
	// passPatience is how long one waits for its turn.
	passPatience = 5 * time.Second
	// turnLasts is how long one has the turn of what comes back alone. It may wait for a store that hangs, and whoever waits for the turn
	// may be of another mount, whose store is well. Reading takes less.
	turnLasts = 2 * storeTimeout
)

// Haste is what a record waits for before it is read.
type Haste uint8

// All but what is owed needs memory, too.
const (
	InTurn     Haste = iota // its turn, for some seconds
	AtOnce                  // nothing: it is read if it is its turn
	Unturned                // nothing, nor has it a turn
	Owed                    // nothing, nor has it a turn: what happened is to be told by it, whatever there is
	OwedInTurn              // its turn, for some seconds, and is then read whatever there is; who has a turn asks for none
)

// Passage is what a record is charged for while somebody reads it and goes on with its call, and its turn.
type Passage struct {
	hold budget.Hold
	size int             // of the record
	turn func()          // gives it back; nil: it has none
	back *budget.Account // of whom it is, where it comes back alone, and its hold is nobody's; nil: it does not
}

// Over says that what was read has gone, or is charged by whoever keeps it. It is idempotent; the nil Passage is over.
func (p *Passage) Over() {
	if p == nil {
		return
	}
	p.hold.Release()
	p.Yield()
}

// Yield gives the turn back of a record that was read, and stays for as long as others may take: what stays goes on being charged, to whom
// it is of.
func (p *Passage) Yield() {
	stays := min(p.hold.Bytes(), timesBack*p.size)
	if p.back != nil {
		p.hold.Release()
		p.hold, p.back = budget.On(p.back), nil
	}
	p.hold.Owe(stays)
	if p.turn != nil {
		p.turn()
		p.turn = nil
	}
}

// passages is the part of a keeper that has records read. It has no state of its own.
type passages struct{ *keeper }

// pass has a record read, for whom the account is, once there is memory for it and it is its turn, or returns ErrNoTurn or an error of budget.
func (k passages) pass(ctx context.Context, account *budget.Account, who turns.Who, at store.Address, haste Haste) (*Passage, error) {
	size, err := k.size(at)
	if err != nil {
		return nil, err
	}
	if haste == Owed || haste == OwedInTurn { // the first perhaps by who has a turn
		return k.owed(ctx, account, who, size, haste), nil
	}
	p := &Passage{hold: budget.On(account), size: size}
	large := size >= largeRecord && haste != Unturned
	if large {
		if err := p.queue(ctx, k.set.passing, who, haste); err != nil {
			return nil, err
		}
	}
	err = p.hold.Grow(timesPassing * size)
	if err != nil && large {
		p.Yield()
		if err := p.queueAlone(ctx, k.set.opt.Memory, who, haste); err != nil {
			return nil, err
		}
		p.hold, p.back = budget.On(k.own), account
		err = p.hold.Return(account, timesPassing*size, timesBack*size)
	}
	if err != nil {
		p.Over()
		return nil, err
	}
	return p, nil
}

// owed has a record read that cannot be refused.
func (k passages) owed(ctx context.Context, account *budget.Account, who turns.Who, size int, haste Haste) *Passage {
	p := &Passage{hold: budget.On(account), size: size}
	if size >= largeRecord && haste == OwedInTurn {
		_ = p.queueAlone(ctx, k.set.opt.Memory, who, haste) // it has waited for long enough
	}
	p.hold.ReturnOwed(timesPassing * size)
	return p
}

// size returns how large a record is.
func (k passages) size(at store.Address) (size int, err error) {
	err = k.do(func(bounded context.Context) (err error) {
		size, err = store.Size(bounded, k.store, at)
		return err
	})
	return size, err
}

// queue takes a turn.
func (p *Passage) queue(ctx context.Context, passing *turns.Queue, who turns.Who, haste Haste) error {
	if !passing.TryEnter(who) {
		if haste == AtOnce {
			return ErrNoTurn
		}
		bounded, cancel := context.WithTimeout(ctx, passPatience)
		defer cancel()
		if _, err := passing.Enter(bounded, who); err != nil {
			return ErrNoTurn
		}
	}
	p.turn = func() { passing.Leave(who) }
	return nil
}

// queueAlone takes the turn of what comes back alone. It lapses.
func (p *Passage) queueAlone(ctx context.Context, memory *budget.Budget, who turns.Who, haste Haste) error {
	if err := p.queue(ctx, memory.Returning(), who, haste); err != nil {
		return err
	}
	over := sync.OnceFunc(p.turn)
	lapses := time.AfterFunc(turnLasts, over)
	p.turn = func() { lapses.Stop(); over() }
	return nil
}

// read reads the record of a call of a session.
func (k passages) read(s *Session, kind store.Kind, id string, haste Haste) (r store.Record, p *Passage, err error) {
	at := store.Address{Session: k.nameOf(s), Kind: kind, ID: id}
	p, err = k.pass(k.patience, s.account, turns.Who{Principal: s.account.Owner(), Session: s}, at, haste)
	if err != nil {
		return r, nil, err
	}
	if r, err = k.store.Get(k.timeFor(s, p.size), at); err != nil {
		p.Over()
		return r, nil, err
	}
	return r, p, nil
}
