package channel

import (
	"bytes"
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/budget"
	"github.com/mcpbridge/bridge/internal/inorder"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/legacy/message"
)

// progressGap is how far behind progress a response stays. The TypeScript SDK
// hands a response on at once and a notification a moment later, so progress
// that it reads together with the response comes too late: the SDK reports a
// token that nobody knows, and some clients give the connection up for that.
const progressGap = 10 * time.Millisecond

// reply is the Reply of one request on a channel.
type reply struct {
	c       *Channel
	conv    downstream.Conversation // which serves it
	id      jsonrpc.ID
	answer  func([]byte)            // takes the response, nil for none
	gated   bool                    // a shutdown waits for it
	listens bool                    // it never ends by itself
	fate    atomic.Int32            // waiting, started or withdrawn
	cancel  context.CancelCauseFunc // of one that belongs to no session; nil for others
	hold    budget.Hold             // of the request; released with its end
	leave   func()                  // of the place that it takes
	lasting atomic.Int32            // what outlasts it
	link    inorder.Link            // its place among the requests of the connection

	mu       sync.Mutex // orders Send before Finish: nothing follows a response
	over     bool
	progress time.Time // when there was any last
}

// What has become of a request: a client may cancel it before its goroutine runs.
const (
	waiting int32 = iota
	started
	withdrawn
)

// Interactive implements Reply: the connection carries everything.
func (r *reply) Interactive() bool { return true }

// Send implements Reply.
func (r *reply) Send(msg downstream.Message) { r.Queue(msg) }

// Flush implements Reply: a shared channel holds nothing back.
func (r *reply) Flush() {}

// Queue implements Reply.
func (r *reply) Queue(msg downstream.Message) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over {
		return
	}
	r.c.sendMessage(&msg)
	if msg.IsProgress() {
		r.progress = time.Now()
	}
}

// Finish implements Reply.
func (r *reply) Finish(msg downstream.Message) { r.end(&msg) }

// end takes the response, nil for none.
func (r *reply) end(msg *downstream.Message) {
	r.link.End() // first: its client may be slow to read
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over {
		return
	}
	r.over = true
	if msg != nil && !r.progress.IsZero() {
		r.c.pause(progressGap - time.Since(r.progress))
	}
	left := r.c.settle(r) // first: a quick client may use the id again
	message.Framed(msg, r.answer)
	r.hold.Release()
	if left {
		r.vacate()
	}
	r.c.work.Done()
}

// vacate gives its place back.
func (r *reply) vacate() {
	r.leave()
	if r.gated {
		r.c.opt.Gate.Exit() // now a shutdown may close the connection
	}
}

// Outlast implements Reply.
func (r *reply) Outlast() (over func()) {
	r.lasting.Add(1)
	return func() {
		if r.c.settle(r) {
			r.vacate()
		}
	}
}

// Refuse implements Reply: there is no HTTP status to relay (H-13).
func (r *reply) Refuse(refusal *downstream.Refusal) bool {
	r.c.lapse.note(r.c.caller.Authorization, refusal)
	return false
}

// Abandon implements Reply.
func (r *reply) Abandon() { r.end(nil) }

// Checkpointer implements downstream.Reply: a call ends with its connection.
func (r *reply) Checkpointer() downstream.Checkpointer { return nil }

// Address implements Reply: a connection that ends takes its session along.
func (r *reply) Address() downstream.Address { return downstream.Address{} }

// Reachable implements Reply: without the connection there is no session either.
func (r *reply) Reachable() bool { return true }

// Attached implements Reply.
func (r *reply) Attached() bool { return true }

// Delivered implements Reply: who has no connection has no session to come back to.
func (r *reply) Delivered() bool { return true }

// Continue implements Reply.
func (r *reply) Continue(work func()) { go work() }

// gather collects the responses to a batch, which go out as one array when all
// are there (E-17).
type gather struct {
	c     *Channel
	of    *pusher // of the session in which the array came; nil: before any
	mu    sync.Mutex
	hold  budget.Hold // of the parts
	left  int
	parts [][]byte
}

func (g *gather) add(msg []byte) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if msg != nil {
		g.parts = append(g.parts, g.part(msg))
	}
	g.left--
	if g.left == 0 && len(g.parts) > 0 && (g.of == nil || !g.of.over.Load()) { // else its ids may be the next client's
		g.c.send(message.Array(g.parts))
	}
	if g.left == 0 {
		g.hold.Release()
	}
}

// part returns a response to keep, or in its place that there is no memory for it.
func (g *gather) part(msg []byte) []byte {
	if short := g.hold.Grow(len(msg)); short != nil {
		response, _ := jsonrpc.Parse(msg)
		return message.Short(response.ID, short)
	}
	return bytes.Clone(msg)
}
