package again

import (
	"bytes"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/rawjson"
)

// A kept call as the Reply of its flow: whatever it is told goes to the request that
// waits, if there is one.

// Reply implements downstream.Origin.
func (p *Reply) Reply() downstream.Reply { return p.reply() }

// Interactive implements downstream.Reply.
func (p *Reply) Interactive() bool {
	out := p.reply()
	return out != nil && out.Interactive()
}

// Address implements downstream.Reply.
func (p *Reply) Address() downstream.Address {
	if out := p.reply(); out != nil {
		return out.Address()
	}
	return downstream.Address{}
}

// Send implements downstream.Reply: what cannot be said is not kept, but questions are.
func (p *Reply) Send(msg downstream.Message) {
	if msg.Kind() == jsonrpc.Request {
		p.note(Question{Key: string(msg.ID), Msg: msg})
	}
	if msg.Method == mcp.NotificationCancelled {
		p.Settled(string(rawjson.Get(msg.Params, "requestId")))
	}
	if out, msg, ok := p.outgoing(msg); ok {
		out.Send(msg)
	}
}

// Queue implements downstream.Reply.
func (p *Reply) Queue(msg downstream.Message) {
	if out, msg, ok := p.outgoing(msg); ok {
		out.Queue(msg)
	}
}

// outgoing makes a message that of the request that waits: its progress goes by its own
// token.
func (p *Reply) outgoing(msg downstream.Message) (downstream.Reply, downstream.Message, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.out == nil || !p.first && msg.IsProgress() && p.token == nil {
		return nil, msg, false
	}
	if !p.first && msg.IsProgress() && !bytes.Equal(p.token, rawjson.Get(msg.Params, "progressToken")) {
		msg = downstream.Notification(msg.Method, rawjson.Apply(nil, msg.Params, rawjson.Edit{Name: "progressToken", Value: p.token}))
	}
	return p.out, msg, true
}

// Flush implements downstream.Reply.
func (p *Reply) Flush() {
	if out := p.reply(); out != nil {
		out.Flush()
	}
}

// Finish implements downstream.Reply.
func (p *Reply) Finish(msg downstream.Message) {
	size := p.flow.Size()
	p.mu.Lock()
	if !p.first {
		msg.ID, msg.Text = p.id, nil
	}
	known, gone := p.known, p.known && p.out != nil && !p.out.Attached()
	out := p.endLocked()
	if gone { // at once: the same call may come just now
		keeper{p}.keepLocked(out, &msg, size)
	}
	p.mu.Unlock()
	if out != nil { // else nobody waits: the same call would begin anew
		out.Finish(msg)
	}
	if known && !gone && out != nil && !out.Delivered() {
		keeper{p}.keep(out, &msg, size)
	}
	keeper{p}.settle()
}

// Refuse implements downstream.Reply.
func (p *Reply) Refuse(r *downstream.Refusal) bool {
	out := p.reply()
	_ = p.Attached() // which notes that the client has left: else nobody would be refused
	if out == nil || !out.Refuse(r) {
		return false
	}
	p.end()
	return true
}

// Abandon implements downstream.Reply.
func (p *Reply) Abandon() {
	if out := p.end(); out != nil {
		out.Abandon()
	}
}

// Checkpointer implements downstream.Reply: such a call ends with the process.
func (p *Reply) Checkpointer() downstream.Checkpointer { return nil }

// Reachable implements downstream.Reply: a call that nobody waits for waits itself, and to one that the
// same call can take over that is the way back.
func (p *Reply) Reachable() bool {
	p.mu.Lock()
	out, known := p.out, p.known
	p.mu.Unlock()
	return out == nil || known || out.Reachable()
}

// Attached implements downstream.Reply.
func (p *Reply) Attached() bool {
	out := p.reply()
	return out != nil && out.Attached()
}

// Delivered implements downstream.Reply: who has the outcome is known here.
func (p *Reply) Delivered() bool { return true }

// Continue implements downstream.Reply.
func (p *Reply) Continue(work func()) {
	if out := p.reply(); out != nil {
		out.Continue(work)
		return
	}
	p.of.Session.Background(work)
}

// Outlast implements downstream.Reply: what outlasts its request here waits for another one.
func (p *Reply) Outlast() (over func()) { return func() {} }
