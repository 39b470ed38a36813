package bridge

import (
	"context"
	"errors"
	"time"

	"github.com/mcpbridge/bridge/bridge/call"
	"github.com/mcpbridge/bridge/bridge/ends"
	"github.com/mcpbridge/bridge/bridge/tasks"
	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/fault"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/mrtr"
	"github.com/mcpbridge/bridge/observe"
)

// hosting is a session's part in the tasks that the bridge hosts for its client; package
// tasks holds them. It has no state of its own.
type hosting struct{ *conversation }

// hosts reports whether the bridge hosts tasks for this session (G.3).
func (c hosting) hosts() bool {
	return c.Rules.HostTasks && c.reaches() && c.Rules.Version.AtLeast(mcp.V20251125)
}

// host starts a tools/call as a task and answers at once with its handle.
// Without params.task, or when tasks are not hosted, it reports false and the
// call is an ordinary one (G.2).
func (c hosting) host(caller downstream.Caller, req downstream.Request, out downstream.Reply) bool {
	if req.Method != mcp.MethodToolsCall || req.Task == nil || caller.Unproven || !c.hosts() { // nobody unproven could fetch it
		return false
	}
	began := time.Now()
	var t *tasks.Task
	var k *call.Call
	err := tasks.Check(req.Task)
	if err == nil {
		t = tasks.New(req.Task, c.Account, c.Driver.Replica)
		k = call.NewHosted(&c.Client, caller, req, t)
		err = c.tasks().Add(t, func() { k.Drive(mrtr.Cancelled()) }, out.Outlast)
	}
	if err != nil {
		refused := explainTask(err)
		c.table.Ended(req.ID)
		c.ReportLocal(&caller, req.Method, began, refused)
		ends.Finish(out, req.ID, nil, refused)
		return true
	}
	req.Link.Keep() // until the call has begun
	created := append([]byte(`{"task":`), t.Describe()...)
	ends.Finish(out, req.ID, append(created, '}'), nil)
	start := func() { defer req.Link.Pass(); k.Start() }
	if !c.Driver.Background(start) { // the handle reaches the client when its request is over
		start() // which ends it: the session is over
	}
	return true
}

// tasks returns those of the session, made on first use.
func (c hosting) tasks() *tasks.Set {
	c.mu.Lock()
	defer c.mu.Unlock()
	rest := c.restLocked()
	if rest.tasks == nil {
		rest.tasks = new(tasks.Set)
	}
	return rest.tasks
}

// find returns the task that a request is about.
func (c hosting) find(req *downstream.Request) (*tasks.Task, error) {
	t, err := c.hosted().Find(req.Params)
	if err == nil {
		return t, nil
	}
	if home := downstream.HomeOfTask(&req.Message); home != 0 && home != c.Driver.Replica {
		return nil, tasks.ErrAway // else the request would be there
	}
	return nil, err
}

func serveTasksGet(c *conversation, _ context.Context, _ downstream.Caller, req downstream.Request) ([]byte, *jsonrpc.Error) {
	if !(hosting{c}).hosts() {
		return nil, ends.MethodNotFound(req.Method)
	}
	t, err := hosting{c}.find(&req)
	if err != nil {
		return nil, explainTask(err)
	}
	return t.Describe(), nil
}

func serveTasksCancel(c *conversation, _ context.Context, _ downstream.Caller, req downstream.Request) ([]byte, *jsonrpc.Error) {
	if !(hosting{c}).hosts() {
		return nil, ends.MethodNotFound(req.Method)
	}
	t, err := hosting{c}.find(&req)
	if err == nil {
		err = t.Cancel()
	}
	if err != nil {
		return nil, explainTask(err)
	}
	return t.Describe(), nil
}

func serveTasksList(c *conversation, _ context.Context, _ downstream.Caller, req downstream.Request) ([]byte, *jsonrpc.Error) {
	if !(hosting{c}).hosts() {
		return nil, ends.MethodNotFound(req.Method)
	}
	list, err := c.hosted().List(req.Params)
	return list, explainTask(err)
}

// serveTasksResult blocks in the task, not here.
func (c hosting) serveTasksResult(caller downstream.Caller, req *downstream.Request, out downstream.Reply) bool {
	if req.Method != mcp.MethodTasksResult || !c.hosts() {
		return false
	}
	began := time.Now()
	t, err := c.find(req)
	if err == nil {
		err = t.Wait(req.ID, &awaited{out, c.conversation, caller, began})
	}
	if err != nil {
		refused := explainTask(err)
		c.ReportLocal(&caller, req.Method, began, refused)
		ends.Finish(out, req.ID, nil, refused)
	}
	return true
}

// awaited is the Reply of a tasks/result that waits for its task. It tells how that ended,
// which is an end of its own: the call of the task has another.
type awaited struct {
	downstream.Reply
	of     *conversation
	caller downstream.Caller
	began  time.Time
}

// Finish implements downstream.Reply: an error is how the task ended.
func (a *awaited) Finish(msg downstream.Message) {
	var done observe.CallEnd
	if msg.Error != nil {
		done.End, done.Cause, done.Code = observe.Failed, "task", msg.Error.Code
	}
	a.tell(done)
	a.Reply.Finish(msg)
}

// Abandon implements downstream.Reply: the client cancelled it, or is gone.
func (a *awaited) Abandon() {
	a.tell(observe.CallEnd{End: observe.Cancelled, Cause: "client"})
	a.Reply.Abandon()
}

func (a *awaited) tell(done observe.CallEnd) {
	a.of.ReportEnd(&a.caller, mcp.MethodTasksResult, a.began, done)
}

// explainTask words what cannot be done with a task.
func explainTask(err error) *jsonrpc.Error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, tasks.ErrTooMany):
		return fault.Internal(err.Error(), fault.Limit("tasks of one session"))
	case errors.Is(err, tasks.ErrWaiters):
		return fault.Internal(err.Error(), fault.Limit("tasks/result of one task"))
	}
	return fault.Params(err.Error())
}
