package call

import (
	"sync"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/mrtr"
	"github.com/mcpbridge/bridge/upstream"
)

// outbox holds what a call has decided to say to its client. Effects are added under
// the call's lock and carried out without it, one after another, by one goroutine
// at a time: whoever adds to an outbox that nobody is at. It is guarded by the call's
// lock, and in one of three states:
//
//	idle     nothing to do; whoever adds an effect claims it
//	busy     a goroutine carries effects out, and then those added meanwhile
//	awaited  busy, and another goroutine waits for its turn (idle is not nil)
type outbox struct {
	waiting *[]effect // added and not yet claimed, in order; nil: none
	busy    bool
	idle    chan struct{} // closed when busy ends; nil: nobody waits for that
}

// effect is one thing to say to a client: a message, or the last word that the verb
// asks for.
type effect struct {
	do      mrtr.Verb // Tell, Deliver, Fail or Stop; Ask and Update for what is asked elsewhere, and withdrawn
	msg     downstream.Message
	inquiry mrtr.InputRequest // of Ask and Update
	result  []byte            // of Deliver
	answer  *upstream.Answer  // that result is part of, used up by the effect; may be nil
	err     error             // of Fail
	again   bool              // instead of a last word that could not be said
	told    bool              // the log and who watches know how the call ended

	question   bool                   // the message is one
	withdraws  bool                   // the message withdraws one
	checkpoint *downstream.Checkpoint // with which it is to be kept before it leaves; nil: it is not
}

// effectLists are reused: most calls have one effect.
var effectLists = sync.Pool{New: func() any { return new([]effect) }}

func (o *outbox) addLocked(e effect) {
	if o.waiting == nil {
		o.waiting = effectLists.Get().(*[]effect)
	}
	*o.waiting = append(*o.waiting, e)
}

// sayLocked adds a message, which must own its memory.
func (o *outbox) sayLocked(msg downstream.Message) { o.addLocked(effect{do: mrtr.Tell, msg: msg}) }

// claimLocked makes the caller the one who carries out what is waiting. It returns nil when
// nothing is, or somebody else is at it.
func (o *outbox) claimLocked() *[]effect {
	if o.busy || o.waiting == nil {
		return nil
	}
	claimed := o.waiting
	o.busy, o.waiting = true, nil
	return claimed
}

// releaseLocked ends a claim and returns what was added meanwhile, claimed again, or nil.
func (o *outbox) releaseLocked() *[]effect {
	o.busy = false
	if o.waiting == nil && o.idle != nil {
		close(o.idle)
		o.idle = nil
	}
	return o.claimLocked()
}
