package again

import (
	"time"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/budget"
	"github.com/mcpbridge/bridge/internal/fault"
	"github.com/mcpbridge/bridge/jsonrpc"
)

// What a call came to is lost with the connection of the request that waits for it: a client gives
// up, or a proxy does, while the tool that a person has agreed to still runs. The person would be
// asked once more, and the tool run once more. So the outcome is kept for the same call, which gets
// it once: until it did, or the client came back for the stream, or the call's time is over.

// outcome is the response of a call that is over, and did not get to its client.
type outcome struct {
	msg  downstream.Message // in memory of its own
	to   downstream.Reply   // the request that it was for, whose client may still come back
	hold budget.Hold
}

// keeper keeps what a call came to. It has no state of its own.
type keeper struct{ *Reply }

// look is how often it is looked whether a client came back for its stream.
const look = 10 * time.Second

// fetched reports whether the client got the outcome after all, or is about to.
func (k *outcome) fetched() bool { return k.to.Delivered() || k.to.Attached() }

// keep keeps an outcome that did not get to the client, and with it the flow, of this size.
func (p keeper) keep(to downstream.Reply, msg *downstream.Message, flow int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.keepLocked(to, msg, flow)
}

func (p keeper) keepLocked(to downstream.Reply, msg *downstream.Message, flow int) {
	k := &outcome{to: to, hold: budget.On(p.of.Account)}
	text := msg.AppendTo(nil)
	if err := k.hold.Set(len(text) + flow); err != nil { // that it was done is to be known all the same
		short := downstream.Failure(msg.ID, fault.Internal("the call was done, and its result could not be kept until it was asked for: "+err.Error(), fault.Reason("memory")))
		text = short.AppendTo(nil)
		k.hold.Charge(len(text) + flow)
	}
	own, err := jsonrpc.Parse(text)
	if err != nil {
		k.hold.Release()
		return // it is none, and was refused
	}
	k.msg.Message = own
	p.retainLocked(k)
}

// retainLocked has the outcome wait for the same call.
func (p keeper) retainLocked(k *outcome) {
	left := time.Until(p.until)
	if left <= 0 {
		k.hold.Release()
		return
	}
	p.kept = k
	p.timer = time.AfterFunc(min(look, left), p.review)
}

// review lets go of an outcome that was fetched, or whose time is over.
func (p keeper) review() {
	p.mu.Lock()
	switch k := p.kept; {
	case k == nil:
	case k.to.Delivered() || !time.Now().Before(p.until):
		p.dropLocked()
	default:
		p.timer.Reset(min(look, time.Until(p.until)))
	}
	p.mu.Unlock()
	p.settle()
}

// drop lets go of the outcome, if there is one.
func (p keeper) drop() {
	p.mu.Lock()
	had := p.kept != nil
	p.dropLocked()
	p.mu.Unlock()
	if had {
		p.settle()
	}
}

func (p keeper) dropLocked() {
	if p.kept == nil {
		return
	}
	p.kept.hold.Release()
	p.kept = nil
	p.timer.Stop()
}

// settle makes what waits for the same call right after the end: without an outcome nothing does, and of
// too many outcomes the oldest makes room.
func (p keeper) settle() {
	if !p.keeps() {
		p.of.Calls.forget(p.Reply)
		return
	}
	p.of.Calls.add(p.Reply)
	if !p.keeps() { // the same call was faster
		p.of.Calls.forget(p.Reply)
		return
	}
	for _, other := range p.of.Calls.surplus(p.Reply) {
		keeper{other}.drop()
	}
}

// delivered reports whether the outcome has got to the client after all.
func (p keeper) delivered() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.kept != nil && p.kept.to.Delivered()
}

// keeps reports whether the call is over and its outcome waits for the same one.
func (p keeper) keeps() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.kept != nil
}

// redeliver gives the outcome to a request that repeats the call, and keeps it where that one's connection
// broke as well.
func (p keeper) redeliver(out downstream.Reply, k *outcome) {
	msg := k.msg
	msg.ID = p.lastID()
	gone := !out.Attached()
	out.Finish(msg)
	p.mu.Lock()
	if gone || !out.Delivered() {
		k.to = out
		p.retainLocked(k)
	} else {
		k.hold.Release()
	}
	p.mu.Unlock()
	p.settle()
}

// lastID is that of the newest request.
func (p keeper) lastID() jsonrpc.ID {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.id
}
