package bridge

import (
	"crypto/rand"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/rawjson"
)

// hostedTask is a task of revision 2025-11-25 that the bridge hosts for its
// client (mode 2, G.3): the whole flow, with its rounds or the server's own
// task, runs behind a handle. It is the downstream.Reply of that flow.
type hostedTask struct {
	id      string
	created time.Time
	ttl     time.Duration
	call    *call

	mu      sync.Mutex
	status  string
	updated time.Time
	fetched bool                    // the outcome was
	outcome downstream.Message      // the response of the flow, once there is one; its id is not the waiter's
	waiters []taskWaiter            // pending tasks/result requests
	queue   []downstream.Message    // questions and notifications that wait for one
	open    map[jsonrpc.ID]struct{} // unanswered server requests
}

// taskWaiter is a tasks/result request that blocks until the task ends.
type taskWaiter struct {
	id  jsonrpc.ID
	out downstream.Reply
}

// Statuses of a legacy task.
const (
	taskWorking   = "working"
	taskInput     = "input_required"
	taskCompleted = "completed"
	taskFailed    = "failed"
	taskCancelled = "cancelled"
)

// Bounds of hosted tasks: the ttl that a client may ask for, how many a session
// may hold, how many notifications may wait for a tasks/result of one, and how many
// of those requests may wait for it. Questions are bounded by the flow.
const (
	maxTaskTTL      = time.Hour
	maxHostedTasks  = 64
	maxTaskMessages = 256
	maxTaskWaiters  = 16
)

func newHostedTask(ttl time.Duration) *hostedTask {
	now := time.Now()
	return &hostedTask{id: rand.Text(), created: now, updated: now, ttl: ttl, status: taskWorking, open: map[jsonrpc.ID]struct{}{}}
}

// Interactive implements downstream.Reply: a question waits for a tasks/result.
func (t *hostedTask) Interactive() bool { return true }

// Queue implements downstream.Reply.
func (t *hostedTask) Queue(msg downstream.Message) { t.Send(msg) }

// Flush implements downstream.Reply: whoever waits has been told already.
func (t *hostedTask) Flush() {}

// Send implements downstream.Reply. What the flow has to say travels on the stream
// of a pending tasks/result, or waits for one: clients that see input_required
// are told to send it. Every message names its task.
func (t *hostedTask) Send(msg downstream.Message) {
	t.mu.Lock()
	defer t.mu.Unlock()
	params := t.related(msg.Params)
	switch {
	case msg.Kind() == jsonrpc.Request:
		t.open[msg.ID] = struct{}{}
		t.set(taskInput)
		t.pass(downstream.Question(msg.ID, msg.Method, params))
	case msg.Method == mcp.NotificationCancelled && t.withdraw(jsonrpc.ID(rawjson.Get(msg.Params, "requestId"))):
	default:
		t.pass(downstream.Notification(msg.Method, params))
	}
}

// pass hands a message to the newest request that waits for the task and whose
// client is there, or keeps it for the next one. The caller holds mu.
func (t *hostedTask) pass(msg downstream.Message) {
	t.forgetDeserters()
	if n := len(t.waiters); n > 0 {
		t.waiters[n-1].out.Send(msg)
	} else if msg.ID != "" || len(t.queue) < maxTaskMessages {
		t.queue = append(t.queue, msg)
	}
}

// forgetDeserters ends the requests whose client left. The caller holds mu.
func (t *hostedTask) forgetDeserters() {
	t.waiters = slices.DeleteFunc(t.waiters, func(w taskWaiter) bool {
		gone := !w.out.Reachable()
		if gone {
			w.out.Abandon()
		}
		return gone
	})
}

// withdraw closes a question, and reports whether nobody has heard of it yet. The
// caller holds mu.
func (t *hostedTask) withdraw(id jsonrpc.ID) (unheard bool) {
	t.close(id)
	before := len(t.queue)
	t.queue = slices.DeleteFunc(t.queue, func(m downstream.Message) bool { return m.ID == id })
	return len(t.queue) < before
}

// close notes that a question is open no more. The caller holds mu.
func (t *hostedTask) close(id jsonrpc.ID) {
	delete(t.open, id)
	if len(t.open) == 0 && t.status == taskInput {
		t.set(taskWorking)
	}
}

// Finish implements downstream.Reply. 2025-11-25 counts a tool's error as a failed
// task, which 2026-07-28 does not.
func (t *hostedTask) Finish(msg downstream.Message) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.terminal():
	case msg.Error != nil:
		t.outcome = downstream.Failure("", msg.Error)
		t.end(taskFailed)
	default:
		t.outcome = downstream.Result("", t.related(msg.Result))
		status := taskCompleted
		if string(rawjson.Get(msg.Result, "isError")) == "true" {
			status = taskFailed
		}
		t.end(status)
	}
}

// Refuse implements downstream.Reply: there is no HTTP status to give.
func (t *hostedTask) Refuse(*downstream.Refusal) bool { return false }

// Abandon implements downstream.Reply: the flow was cancelled.
func (t *hostedTask) Abandon() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.terminal() {
		t.outcome = downstream.Failure("", internalError("the task was cancelled", nil))
		t.end(taskCancelled)
	}
}

// Address implements downstream.Reply: what the task has to say waits with it.
func (t *hostedTask) Address() downstream.Address { return downstream.Address{} }

// Reachable implements downstream.Reply: a task waits for its client.
func (t *hostedTask) Reachable() bool { return true }

// Continue implements downstream.Reply.
func (t *hostedTask) Continue(work func()) { go work() }

// end settles the task and answers whoever waits. The caller holds mu.
func (t *hostedTask) end(status string) {
	t.set(status)
	t.queue, t.open = nil, nil
	t.fetched = len(t.waiters) > 0
	for _, w := range t.waiters {
		w.out.Finish(t.answerTo(w.id))
	}
	t.waiters = nil
}

// answerTo is the task's outcome as the answer to a tasks/result.
func (t *hostedTask) answerTo(id jsonrpc.ID) downstream.Message {
	answer := t.outcome
	answer.ID = id
	return answer
}

func (t *hostedTask) set(status string) {
	if t.status != status {
		t.status, t.updated = status, time.Now()
	}
}

func (t *hostedTask) isFetched() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.fetched
}

func (t *hostedTask) terminal() bool {
	return t.status == taskCompleted || t.status == taskFailed || t.status == taskCancelled
}

// wait answers a tasks/result: at once, or when the task ends.
func (t *hostedTask) wait(id jsonrpc.ID, out downstream.Reply) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.terminal() {
		t.fetched = true
		out.Finish(t.answerTo(id))
		return
	}
	t.forgetDeserters()
	if len(t.waiters) >= maxTaskWaiters {
		finish(out, id, nil, internalError("too many requests wait for this task", []rawjson.Edit{quoted("limit", "tasks/result of one task")}))
		return
	}
	t.waiters = append(t.waiters, taskWaiter{id, out})
	for _, msg := range t.queue {
		out.Send(msg)
	}
	t.queue = nil
}

// leave ends a tasks/result that its client cancelled; the task goes on.
func (t *hostedTask) leave(id jsonrpc.ID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, w := range t.waiters {
		if w.id == id {
			w.out.Abandon()
			t.waiters = append(t.waiters[:i], t.waiters[i+1:]...)
			return
		}
	}
}

// answered notes that the client answered a question of the task.
func (t *hostedTask) answered(id jsonrpc.ID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.close(id)
}

// related adds the reference that every message of a task carries.
func (t *hostedTask) related(object []byte) []byte {
	if object == nil {
		object = emptyObject
	}
	meta := rawjson.Get(object, "_meta")
	if meta == nil {
		meta = emptyObject
	}
	ref := append(rawjson.AppendQuote([]byte(`{"taskId":`), t.id), '}')
	meta = rawjson.Apply(nil, meta, rawjson.Edit{Name: mcp.MetaRelatedTask, Value: ref})
	return rawjson.Apply(nil, object, rawjson.Edit{Name: "_meta", Value: meta})
}

// describe returns the legacy Task object. It never holds results or questions.
func (t *hostedTask) describe() []byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	return rawjson.Apply(nil, emptyObject,
		quoted("taskId", t.id),
		quoted("status", t.status),
		quoted("createdAt", t.created.UTC().Format(time.RFC3339Nano)),
		quoted("lastUpdatedAt", t.updated.UTC().Format(time.RFC3339Nano)),
		rawjson.Edit{Name: "ttl", Value: strconv.AppendInt(nil, t.ttl.Milliseconds(), 10)},
		rawjson.Edit{Name: "pollInterval", Value: []byte("1000")},
	)
}
