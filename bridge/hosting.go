package bridge

import (
	"context"
	"slices"
	"time"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/mrtr"
	"github.com/mcpbridge/bridge/rawjson"
)

// hosts reports whether the bridge hosts tasks for this session (G.3).
func (c *conversation) hosts() bool {
	return c.rules.HostTasks && c.push != nil && c.rules.Version.AtLeast(mcp.V20251125)
}

// host starts a tools/call as a task and answers at once with its handle.
// Without params.task, or when tasks are not hosted, it reports false and the
// call is an ordinary one (G.2).
func (c *conversation) host(caller downstream.Caller, req downstream.Request, out downstream.Reply) bool {
	if req.Method != mcp.MethodToolsCall || req.Task == nil || !c.hosts() {
		return false
	}
	t := newHostedTask(taskTTL(rawjson.Get(req.Task, "ttl")))
	t.call = c.newCall(caller, req, t)
	t.call.task = t
	if err := c.keepTask(t); err != nil {
		finish(out, req.ID, nil, err)
		return true
	}
	created := append([]byte(`{"task":`), t.describe()...)
	finish(out, req.ID, append(created, '}'), nil)
	c.b.background(func() { // the handle reaches the client when its request is over
		t.call.start()
	})
	return true
}

func taskTTL(raw []byte) time.Duration {
	ms, ok := rawjson.Int(raw)
	if !ok || ms < 0 || ms > maxTaskTTL.Milliseconds() {
		return maxTaskTTL
	}
	return time.Duration(ms) * time.Millisecond
}

// keepTask registers a task until its ttl. When there are too many, the oldest of
// those whose result was fetched makes room.
func (c *conversation) keepTask(t *hostedTask) *jsonrpc.Error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.expireTasks()
	if len(c.tasks) >= maxHostedTasks {
		if i := slices.IndexFunc(c.tasks, (*hostedTask).isFetched); i >= 0 {
			c.tasks = slices.Delete(c.tasks, i, i+1)
		}
	}
	if len(c.tasks) >= maxHostedTasks {
		return internalError("this session holds too many tasks", []rawjson.Edit{quoted("limit", "tasks of one session")})
	}
	c.tasks = append(c.tasks, t)
	return nil
}

// expireTasks forgets tasks past their ttl; those that still run are kept to
// their end, which the call's deadline bounds. The caller holds mu.
func (c *conversation) expireTasks() {
	now := time.Now()
	c.tasks = slices.DeleteFunc(c.tasks, func(t *hostedTask) bool {
		t.mu.Lock()
		defer t.mu.Unlock()
		return t.terminal() && now.After(t.created.Add(t.ttl))
	})
}

// task finds the task that params name.
func (c *conversation) task(params []byte) (*hostedTask, *jsonrpc.Error) {
	id, _ := rawjson.Text(rawjson.Get(params, "taskId"))
	c.mu.Lock()
	defer c.mu.Unlock()
	c.expireTasks()
	for _, t := range c.tasks {
		if t.id == id {
			return t, nil
		}
	}
	return nil, invalidParams("unknown task")
}

func (c *conversation) hosted() []*hostedTask {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.expireTasks()
	return slices.Clone(c.tasks)
}

func serveTasksGet(c *conversation, _ context.Context, _ downstream.Caller, req downstream.Request) ([]byte, *jsonrpc.Error) {
	if !c.hosts() {
		return nil, methodNotFound(req.Method)
	}
	t, err := c.task(req.Params)
	if err != nil {
		return nil, err
	}
	return t.describe(), nil
}

// serveTasksCancel marks the task cancelled now and for good, whatever the
// server makes of it.
func serveTasksCancel(c *conversation, _ context.Context, _ downstream.Caller, req downstream.Request) ([]byte, *jsonrpc.Error) {
	if !c.hosts() {
		return nil, methodNotFound(req.Method)
	}
	t, err := c.task(req.Params)
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	over := t.terminal()
	t.mu.Unlock()
	if over {
		return nil, invalidParams("the task has ended already")
	}
	t.call.drive(mrtr.Cancelled())
	return t.describe(), nil
}

// tasksPage is how many tasks one tasks/list shows.
const tasksPage = 32

// serveTasksList shows the session's own tasks; the cursor is the id of the
// last task of the page before.
func serveTasksList(c *conversation, _ context.Context, _ downstream.Caller, req downstream.Request) ([]byte, *jsonrpc.Error) {
	if !c.hosts() {
		return nil, methodNotFound(req.Method)
	}
	tasks := c.hosted()
	if raw := rawjson.Get(req.Params, "cursor"); raw != nil {
		cursor, _ := rawjson.Text(raw)
		at := slices.IndexFunc(tasks, func(t *hostedTask) bool { return t.id == cursor })
		if at < 0 {
			return nil, invalidParams("unknown cursor")
		}
		tasks = tasks[at+1:]
	}
	out := []byte(`{"tasks":[`)
	page := tasks[:min(len(tasks), tasksPage)]
	for i, t := range page {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, t.describe()...)
	}
	out = append(out, ']')
	if len(tasks) > len(page) {
		out = rawjson.AppendQuote(append(out, `,"nextCursor":`...), page[len(page)-1].id)
	}
	return append(out, '}'), nil
}

// serveTasksResult blocks in the task, not here.
func (c *conversation) serveTasksResult(req *downstream.Request, out downstream.Reply) bool {
	if req.Method != mcp.MethodTasksResult || !c.hosts() {
		return false
	}
	t, err := c.task(req.Params)
	if err != nil {
		finish(out, req.ID, nil, err)
		return true
	}
	t.wait(req.ID, out)
	return true
}
