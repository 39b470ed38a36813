package stdio

import (
	"context"
	"sync"

	"github.com/mcpbridge/bridge/internal/budget"
	"github.com/mcpbridge/bridge/internal/inorder"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/rawjson"
	"github.com/mcpbridge/bridge/upstream"
)

// Bounds on the notifications that wait for a slow caller: how many, and the bytes of
// their params. One is always taken.
const (
	maxQueued      = 1024
	maxQueuedBytes = 8 << 20
)

// waiter is a request in flight on a pipe, and what has arrived for it.
type waiter struct {
	id      jsonrpc.ID
	token   []byte // its caller's raw progress token, nil for none; on the pipe the id stands for it
	listen  bool
	logs    bool // asked for log notifications
	session any  // whose it is; nil: nobody knows

	place inorder.Link // of its line among those that wait for the process to read

	wake chan struct{} // holds a token when something has arrived

	mu     sync.Mutex
	queue  []jsonrpc.Message
	size   int         // of its params, of those that are being delivered, and of the answer's result, in bytes
	held   budget.Hold // of that size, in coarse steps
	ans    *upstream.Answer
	failed *upstream.Failure
	owed   bool // whoever waits takes the answer in once there is memory
}

func newWaiter(req *request, to sink, account *budget.Account) *waiter {
	return &waiter{id: req.id, held: budget.On(account), listen: to.listen, wake: make(chan struct{}, 1),
		token: req.token(), logs: rawjson.Has(req.meta(), mcp.MetaLogLevel), session: req.call.Session}
}

// push queues a notification. It reports false when the queue is full, or there is no memory.
func (w *waiter) push(msg jsonrpc.Message) bool {
	w.mu.Lock()
	size := w.size + len(msg.Params)
	full := len(w.queue) >= maxQueued || len(w.queue) > 0 && size > maxQueuedBytes
	if full = full || w.chargeLocked(size) != nil; !full {
		w.queue, w.size = append(w.queue, msg), size
	}
	w.mu.Unlock()
	w.signal()
	return !full
}

func (w *waiter) chargeLocked(size int) error { return w.held.Set(steps(size)) }

// steps returns what of a size is charged.
func steps(size int) int { return size / upstream.HeldStep * upstream.HeldStep }

// close gives back what is charged. What still comes is nobody's.
func (w *waiter) close() {
	held := w.hand()
	held.Release()
}

// hand is close for whoever takes over what is charged.
func (w *waiter) hand() budget.Hold {
	w.mu.Lock()
	defer w.mu.Unlock()
	held := w.held
	w.held = budget.Hold{}
	return held
}

// finish sets the outcome; the first one counts. An answer waits like a notification for a slow
// caller; one for which there is no memory is a failure.
func (w *waiter) finish(ans *upstream.Answer, failed *upstream.Failure) {
	w.mu.Lock()
	if w.ans == nil && w.failed == nil {
		w.ans, w.failed = ans, failed
		if ans != nil {
			w.takeInLocked(len(ans.Result))
		}
	}
	w.mu.Unlock()
	w.signal()
}

func (w *waiter) takeInLocked(result int) {
	if short := w.chargeLocked(w.size + result); short != nil {
		if !w.owed {
			w.ans, w.failed = nil, upstream.NotTakenIn(short)
			return
		}
		w.held.Owe(steps(w.size + result))
	}
	w.size += result
}

func (w *waiter) signal() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// wait delivers notifications on the calling goroutine until there is an
// outcome. What arrived before the server's end still counts.
func (w *waiter) wait(ctx context.Context, ended <-chan struct{}, to sink) (*upstream.Answer, error) {
	for {
		gone := false
		select {
		case <-w.wake:
		case <-ctx.Done():
			return nil, upstream.Interrupted(ctx, true)
		case <-ended:
			gone = true
		}
		news, ans, failed := w.deliver(to)
		switch {
		case failed != nil:
			return nil, failed
		case ans != nil:
			return ans, nil
		case news && to.idle != nil && !gone:
			to.idle()
		case gone:
			return nil, &upstream.Failure{Cause: upstream.Lost, Sent: true, Detail: "the upstream process ended before it answered"}
		}
	}
}

// deliver passes on what has arrived. news tells whether that were notifications.
func (w *waiter) deliver(to sink) (news bool, ans *upstream.Answer, failed *upstream.Failure) {
	w.mu.Lock()
	queue, size := w.queue, w.size
	w.queue = nil
	ans, failed = w.ans, w.failed
	if ans != nil { // it is not passed on here
		size -= len(ans.Result)
	}
	w.mu.Unlock()
	if len(queue) == 0 {
		return false, ans, failed
	}
	if to.notify != nil {
		for _, msg := range queue {
			if w.token != nil && msg.Method == mcp.NotificationProgress {
				msg.Params = rawjson.Apply(nil, msg.Params, rawjson.Edit{Name: progressToken, Value: w.token})
			}
			to.notify(msg)
		}
	}
	w.mu.Lock()
	w.size -= size
	_ = w.chargeLocked(w.size) // less is never refused
	w.mu.Unlock()
	return true, ans, failed
}
