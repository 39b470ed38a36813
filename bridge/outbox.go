package bridge

import (
	"errors"
	"runtime/debug"
	"sync"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/logfield"
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

	question bool             // the message is one
	kept     *downstream.Kept // with which it is to be kept before it leaves; nil: it is not
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

// carryOut carries claimed effects out, nil for none, and those added meanwhile.
func (k *call) carryOut(claimed *[]effect) {
	for claimed != nil {
		for i := range *claimed {
			k.carry(&(*claimed)[i])
		}
		clear(*claimed)
		*claimed = (*claimed)[:0]
		effectLists.Put(claimed)
		claimed = k.release()
	}
}

func (k *call) release() *[]effect {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.outbox.releaseLocked()
}

// carry does one thing to the client. Of a fault in there, such as in the translation
// of the result, only this call hears.
func (k *call) carry(e *effect) {
	defer func() {
		if v := recover(); v != nil && e.err != errFault { // else not even that could be said
			k.crash(v)
		}
	}()
	reporter{k}.report(e)
	switch e.do {
	case mrtr.Deliver:
		ending{k}.deliver(e)
		k.over(e)
	case mrtr.Fail:
		ending{k}.fail(e)
		k.over(e)
	case mrtr.Stop:
		k.out.Abandon()
		k.over(e)
	case mrtr.Ask:
		k.asking.inquire(&e.inquiry)
	case mrtr.Update:
		k.asking.withdrawn(e.inquiry.Key)
	default:
		k.saving.tell(e)
	}
}

// over gives back what the call held, now that its last word was said.
func (k *call) over(e *effect) {
	e.answer.Release()
	k.held.end()
}

// say has a message queued for the client, once it is the caller's turn: what goes to
// the client keeps its order, and a server that talks faster than its client
// listens is slowed down. compose runs under the lock and returns false when there is
// nothing to say after all; its message is only borrowed.
func (k *call) say(compose func() (downstream.Message, bool)) {
	msg, ok := k.turn(compose)
	if !ok {
		return
	}
	defer func() { k.carryOut(k.release()) }()
	k.out.Queue(msg)
}

// turn waits until nobody carries effects out and claims the outbox for one message.
func (k *call) turn(compose func() (downstream.Message, bool)) (downstream.Message, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for k.outbox.busy {
		if k.outbox.idle == nil {
			k.outbox.idle = make(chan struct{})
		}
		idle := k.outbox.idle
		k.mu.Unlock()
		<-idle
		k.mu.Lock()
	}
	msg, ok := compose()
	k.outbox.busy = ok
	return msg, ok
}

// survive ends a call that panicked, and nothing but that call. It must be deferred
// itself.
func (k *call) survive() {
	if v := recover(); v != nil {
		k.crash(v)
	}
}

func (k *call) crash(v any) {
	k.mu.Lock()
	k.crashLocked(v)
	claimed := k.outbox.claimLocked()
	k.mu.Unlock()
	k.carryOut(claimed)
}

// errFault is what a client learns of a fault of the bridge.
var errFault = errors.New("internal error of the bridge")

// crashLocked ends the call after a panic: with an error, unless the client has had
// another last word.
func (k *call) crashLocked(v any) {
	k.conv.b.log.Error().Interface("panic", v).Bytes("stack", debug.Stack()).Str(logfield.Method, k.flow.Method).Msg("request failed")
	if k.flow.Over() { // while the last word was being said
		k.outbox.addLocked(effect{do: mrtr.Fail, err: errFault, again: true})
		return
	}
	k.feedLocked(mrtr.Failed(errFault), &decision{})
}
