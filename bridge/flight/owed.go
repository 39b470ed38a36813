package flight

import (
	"context"
	"time"

	"github.com/mcpbridge/bridge/internal/budget"
)

// Owed is the Held of a retry, which comes of an answer that was acknowledged: neither it nor its response is refused for want of memory.
// A few of them may have more than their sessions may hold, since they end what these hold, as long as enough is left for others
// (budget.Hold.Advance). Others wait until there is some, and the server with them, for as long as the round may take, or until they may have
// more than there is: a response that is in memory already (budget.Hold.FinishLast), and one at a time of those that come
// (budget.Alone.PressLast). That leaves room for others where a principal that holds much has its own under way, or is not there to take
// it. The zero Owed owes nothing.
type Owed struct {
	held   *Held
	ctx    context.Context
	places *budget.Places
	tenant string
	taker  Taker
	free   func() // gives its place back; nil: it has none
}

// Taker says whether the client is there to take the answer: what nobody takes stays, and leaves room for others.
type Taker interface{ Attached() bool }

// Overdrafts is how many retries may have more than their sessions may hold.
const Overdrafts = 8

// Owe returns what a round of this context is charged to. The places are those for overdrafts.
func Owe(held *Held, ctx context.Context, places *budget.Places, tenant string, taker Taker) Owed { //nolint:revive // it is the round's
	held.mu.Lock()
	held.owes = true
	held.mu.Unlock()
	return Owed{held: held, ctx: ctx, places: places, tenant: tenant, taker: taker}
}

// MayOverdraw reports whether the session may have more, and has that be so until Over.
func (o *Owed) MayOverdraw() bool {
	if o.free == nil && o.places != nil {
		o.free, _ = o.places.Take(o.tenant)
	}
	return o.free != nil
}

// Over says that the round has ended.
func (o *Owed) Over() {
	if o.free != nil {
		o.free()
	}
	*o = Owed{}
}

// How long one waits between two looks whether there is memory.
const (
	lookFirst = 50 * time.Millisecond
	lookMost  = 250 * time.Millisecond
)

// Set implements upstream.Held.
func (o *Owed) Set(response int) error { return o.TakeOver(new(budget.Hold), response) }

// TakeOver implements upstream.Owed.
func (o *Owed) TakeOver(paid *budget.Hold, response int) error {
	inMemory := paid.Bytes()
	for wait := lookFirst; ; wait = min(2*wait, lookMost) {
		paid.Release() // it does not stand in its own way
		o.held.moves(response)
		err := o.held.Set(response)
		if err != nil && o.MayOverdraw() {
			err = o.held.exceed(response, (*budget.Hold).Advance)
		}
		if err != nil {
			err = o.exceed(response, inMemory > 0)
		}
		if err == nil {
			return nil
		}
		paid.Owe(inMemory) // it is there while it waits
		o.held.stays()
		select {
		case <-time.After(wait):
		case <-o.ctx.Done():
			paid.Release()
			return err
		}
	}
}

// exceed takes more than there is, for a response that is in memory already or not.
func (o *Owed) exceed(response int, here bool) error {
	stays := !o.taker.Attached()
	return o.held.exceed(response, func(h *budget.Hold, bytes int) error {
		if here {
			return h.FinishLast(bytes, stays)
		}
		return o.held.alone.PressLast(h, bytes, stays)
	})
}
