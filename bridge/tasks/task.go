package tasks

import (
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/budget"
	"github.com/mcpbridge/bridge/internal/fault"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/rawjson"
)

// Task is one task. It is the downstream.Reply of the call that it stands for: what
// that has to say travels on the stream of a tasks/result, or waits for one.
//
// Its states are those of the revision: working, input_required while a question is
// open, then for good completed, failed or cancelled.
type Task struct {
	id      string
	created time.Time
	ttl     time.Duration
	over    func() // is told that the call has ended, once

	mu      sync.Mutex
	cancel  func() // ends the call; nil once it is over
	status  string
	updated time.Time
	fetched bool                 // the outcome was, or there is nothing to fetch
	held    budget.Hold          // of the open questions, then of the outcome
	outcome downstream.Message   // the response of the call, once there is one; its id is not the waiter's
	waiters []waiter             // pending tasks/result requests
	queue   []downstream.Message // notifications that wait for one
	queued  int                  // bytes in queue
	waits   budget.Hold          // of them
	open    []question           // that are not answered, in order
	outbox  []func()             // what is to be written to clients, in order
	writing bool                 // somebody empties the outbox
}

var _ downstream.Reply = (*Task)(nil)

// waiter is a tasks/result request that blocks until the task ends.
type waiter struct {
	id    jsonrpc.ID
	out   downstream.Reply
	asked []jsonrpc.ID // the questions that went to it
}

// question is a server request that is to be answered. It stays until then: the tasks/result that it
// went to may be given up.
type question struct {
	id    jsonrpc.ID
	msg   downstream.Message // the question, or where it is answered; empty: the client is told nothing
	words string             // for whoever asks for the task; empty: its client is asked
	heard bool               // by some tasks/result
}

// Statuses of a task.
const (
	working       = "working"
	inputRequired = "input_required"
	completed     = "completed"
	failed        = "failed"
	cancelled     = "cancelled"
)

// Bounds of a task: the ttl that a client may ask for, how many notifications of how
// many bytes may wait for a tasks/result, and how many of those requests may wait for
// the task. Questions are bounded by the call.
const (
	maxTTL         = time.Hour
	maxQueue       = 256
	maxQueuedBytes = 1 << 20
	maxWaiters     = 16
)

// New returns a working task of the replica home, which is charged to account for what it
// holds. wish is what the client asked for, in raw JSON.
func New(wish []byte, account *budget.Account, home downstream.ReplicaID) *Task {
	now := time.Now()
	return &Task{
		id: home.TaskID(), created: now, updated: now, ttl: ttlOf(rawjson.Get(wish, "ttl")), status: working, over: func() {}, held: budget.On(account), waits: budget.On(account),
	}
}

// Interactive implements downstream.Reply: a question waits for a tasks/result.
func (t *Task) Interactive() bool { return true }

// Checkpointer implements downstream.Reply: tasks end with the process.
func (*Task) Checkpointer() downstream.Checkpointer { return nil }

// Address implements downstream.Reply: what the task has to say waits with it.
func (t *Task) Address() downstream.Address { return downstream.Address{} }

// Reachable implements downstream.Reply: a task waits for its client.
func (t *Task) Reachable() bool { return true }

// Attached implements downstream.Reply: what is asked waits for whoever fetches it.
func (t *Task) Attached() bool { return false }

// Delivered implements downstream.Reply: the task keeps its outcome itself.
func (t *Task) Delivered() bool { return true }

// Continue implements downstream.Reply.
func (t *Task) Continue(work func()) { go work() }

// Outlast implements downstream.Reply: nothing does.
func (*Task) Outlast() (over func()) { return func() {} }

// Refuse implements downstream.Reply: there is no HTTP status to give.
func (t *Task) Refuse(*downstream.Refusal) bool { return false }

// Queue implements downstream.Reply.
func (t *Task) Queue(msg downstream.Message) { t.Send(msg) }

// Flush implements downstream.Reply: whoever waits has been told already.
func (t *Task) Flush() {}

// Send implements downstream.Reply. Every message names its task. Clients that see
// input_required are told to send a tasks/result.
func (t *Task) Send(msg downstream.Message) {
	defer t.write()
	t.mu.Lock()
	defer t.mu.Unlock()
	params := t.related(msg.Params)
	switch {
	case t.overLocked():
	case msg.Kind() == jsonrpc.Request:
		t.open = append(t.open, question{id: msg.ID, msg: downstream.Question(msg.ID, msg.Method, params)})
		t.openedLocked()
	case msg.Method == mcp.NotificationCancelled && t.closeLocked(jsonrpc.ID(rawjson.Get(msg.Params, "requestId"))):
	default:
		t.passLocked(downstream.Notification(msg.Method, params))
	}
}

// Linked notes that somebody is asked elsewhere under key, until it is Answered: words tell where, and
// told is the notification of that to whoever waits for the task, nil: none.
func (t *Task) Linked(key, words string, told *downstream.Message) {
	defer t.write()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.overLocked() {
		return
	}
	q := question{id: jsonrpc.ID(key), words: words}
	if told != nil {
		q.msg = downstream.Notification(told.Method, t.related(told.Params))
	}
	t.open = append(t.open, q)
	t.openedLocked()
}

// openedLocked is what follows a question.
func (t *Task) openedLocked() {
	q := &t.open[len(t.open)-1]
	t.held.Charge(len(q.msg.Params) + len(q.words))
	t.setLocked(inputRequired)
	t.askLocked()
}

// Finish implements downstream.Reply. 2025-11-25 counts a tool's error as a failed
// task, which 2026-07-28 does not.
func (t *Task) Finish(msg downstream.Message) {
	status := completed
	if msg.Error != nil || string(rawjson.Get(msg.Result, "isError")) == "true" {
		status = failed
	}
	outcome := downstream.Failure("", msg.Error)
	if msg.Error == nil {
		outcome = downstream.Result("", t.related(msg.Result))
	}
	t.end(status, outcome)
}

// Abandon implements downstream.Reply: the call was cancelled.
func (t *Task) Abandon() {
	t.end(cancelled, downstream.Failure("", fault.Internal("the task was cancelled")))
}

// end settles the task, once, and answers whoever waits.
func (t *Task) end(status string, outcome downstream.Message) {
	defer t.write()
	defer t.over()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.overLocked() {
		return
	}
	t.waits.Release()
	if err := t.held.Set(outcome.Room()); err != nil && len(t.waiters) == 0 {
		status, outcome = failed, downstream.Failure("", fault.Internal(err.Error()))
	}
	t.setLocked(status)
	t.outcome, t.cancel = outcome, nil
	t.queue, t.queued, t.open = nil, 0, nil
	t.fetched = len(t.waiters) > 0 || status == cancelled
	for _, w := range t.waiters {
		t.finishLocked(w)
	}
	t.waiters = nil
}

// Wait answers a tasks/result: at once, or when the task ends. ErrWaiters refuses one
// too many; then out has not been used.
func (t *Task) Wait(id jsonrpc.ID, out downstream.Reply) error {
	defer t.write()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.overLocked() {
		t.fetched = true
		t.finishLocked(waiter{id: id, out: out})
		return nil
	}
	t.forgetDesertersLocked()
	if len(t.waiters) >= maxWaiters {
		return ErrWaiters
	}
	t.waiters = append(t.waiters, waiter{id: id, out: out})
	for _, msg := range t.queue {
		t.outbox = append(t.outbox, func() { out.Send(msg) })
	}
	t.queue, t.queued = nil, 0
	sent := t.waits.Move()
	t.outbox = append(t.outbox, func() { sent.Release() })
	t.askLocked()
	return nil
}

// Cancel ends the task now and for good, whatever the server makes of it.
func (t *Task) Cancel() error {
	t.mu.Lock()
	cancel := t.cancel
	t.mu.Unlock()
	if cancel == nil {
		return ErrOver
	}
	cancel()
	return nil
}

// Answered notes that the client answered a question of the task.
func (t *Task) Answered(id jsonrpc.ID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closeLocked(id)
}

// Describe returns the task as the revision shows it, in raw JSON. It never holds
// results or questions.
func (t *Task) Describe() []byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	text := func(name, value string) rawjson.Edit {
		return rawjson.Edit{Name: name, Value: rawjson.AppendQuote(nil, value)}
	}
	edits := []rawjson.Edit{
		text("taskId", t.id),
		text("status", t.status),
	}
	if i := slices.IndexFunc(t.open, func(q question) bool { return q.words != "" }); i >= 0 {
		edits = append(edits, text("statusMessage", t.open[i].words))
	}
	return rawjson.Apply(nil, []byte("{}"), append(edits,
		text("createdAt", t.created.UTC().Format(time.RFC3339Nano)),
		text("lastUpdatedAt", t.updated.UTC().Format(time.RFC3339Nano)),
		rawjson.Edit{Name: "ttl", Value: strconv.AppendInt(nil, t.ttl.Milliseconds(), 10)},
		rawjson.Edit{Name: "pollInterval", Value: []byte("1000")},
	)...)
}

// leave ends a tasks/result that its client cancelled; the task goes on.
func (t *Task) leave(id jsonrpc.ID) {
	defer t.write()
	t.mu.Lock()
	defer t.mu.Unlock()
	if i := slices.IndexFunc(t.waiters, func(w waiter) bool { return w.id == id }); i >= 0 {
		t.outbox = append(t.outbox, t.waiters[i].out.Abandon)
		t.waiters = slices.Delete(t.waiters, i, i+1)
		t.askLocked()
	}
}

func (t *Task) waitsFor(id jsonrpc.ID) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.ContainsFunc(t.waiters, func(w waiter) bool { return w.id == id })
}

// forget gives back what the task holds: it can no longer be found.
func (t *Task) forget() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.held.Release()
	t.waits.Release()
	t.held, t.waits = budget.Hold{}, budget.Hold{}
}

// expired reports whether the task may be forgotten. One that still runs is kept to
// its end, which the call's deadline bounds.
func (t *Task) expired(now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.overLocked() && now.After(t.created.Add(t.ttl))
}

func (t *Task) isFetched() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.fetched
}

// related adds the reference that every message of a task carries.
func (t *Task) related(object []byte) []byte {
	if object == nil {
		object = []byte("{}")
	}
	meta := rawjson.Get(object, "_meta")
	if meta == nil {
		meta = []byte("{}")
	}
	ref := append(rawjson.AppendQuote([]byte(`{"taskId":`), t.id), '}')
	meta = rawjson.Apply(nil, meta, rawjson.Edit{Name: mcp.MetaRelatedTask, Value: ref})
	return rawjson.Apply(nil, object, rawjson.Edit{Name: "_meta", Value: meta})
}
