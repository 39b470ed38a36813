package call

import (
	"github.com/mcpbridge/bridge/bridge/ends"
	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/mrtr"
	"github.com/mcpbridge/bridge/observe"
)

// speaker carries out what a call has decided to say. It has no state of its own.
type speaker struct{ *Call }

// carryOut carries claimed effects out, nil for none, and those added meanwhile.
func (k speaker) carryOut(claimed *[]effect) {
	for claimed != nil {
		for i := range *claimed {
			k.carry(&(*claimed)[i])
		}
		claimed = k.done(claimed)
	}
}

// leave leaves claimed effects undone, nil for none: another process goes on with the call. If it ended here meanwhile, that
// was added, and is said.
func (k speaker) leave(claimed *[]effect) {
	if claimed != nil {
		k.carryOut(k.done(claimed))
	}
}

// done puts the list of claimed effects away, and returns those added meanwhile.
func (k speaker) done(claimed *[]effect) *[]effect {
	clear(*claimed)
	*claimed = (*claimed)[:0]
	effectLists.Put(claimed)
	return k.release()
}

func (k speaker) release() *[]effect {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.outbox.releaseLocked()
}

// carry does one thing to the client. Of a fault in there, such as in the translation
// of the result, only this call hears.
func (k speaker) carry(e *effect) {
	defer func() {
		if v := recover(); v != nil && e.err != ends.ErrFault { // else not even that could be said
			if e.do == mrtr.Deliver && !e.told {
				reporter(k).report(&effect{do: mrtr.Fail, err: ends.ErrFault})
			}
			k.crash(v)
		}
	}()
	switch e.do {
	case mrtr.Deliver:
		ending(k).deliver(e)
		k.overhead.End(observe.ToClient, k.flow.Task == nil)
		k.over(e)
	case mrtr.Fail:
		reporter(k).report(e)
		ending(k).fail(e)
		k.over(e)
	case mrtr.Stop:
		reporter(k).report(e)
		k.Reply().Abandon()
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
func (k speaker) over(e *effect) {
	e.answer.Release()
	k.held.End()
}

// say has a notification queued for the client, once it is the caller's turn: what goes to
// the client keeps its order, and a server that talks faster than its client
// listens is slowed down. compose runs under the lock and returns false when there is
// nothing to say after all; its params are only borrowed.
func (k speaker) say(method string, compose func() (params []byte, ok bool)) {
	params, ok := k.turn(compose)
	if !ok {
		return
	}
	defer func() { k.carryOut(k.release()) }()
	k.Reply().Queue(downstream.Notification(method, params))
}

// turn waits until nobody carries effects out and claims the outbox for one message.
func (k speaker) turn(compose func() (params []byte, ok bool)) (params []byte, ok bool) {
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
	params, ok = compose()
	k.outbox.busy = ok
	return params, ok
}
