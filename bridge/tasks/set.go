// Package tasks hosts calls of clients of 2025-11-25 as tasks of that revision (mode
// 2, G.3): a call runs, with all its rounds or as the server's own task, behind a
// handle that its client asks for state and outcome. It owns a session's tasks, their
// bounds and what waits in them; whoever made a task runs the call.
package tasks

import (
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/rawjson"
)

// Why something cannot be done.
var (
	ErrUnknown = errors.New("unknown task")
	ErrAway    = errors.New("unknown task: the process that ran it has ended, or cannot be reached from this one")
	ErrCursor  = errors.New("unknown cursor")
	ErrOver    = errors.New("the task has ended already")
	ErrTooMany = errors.New("this session holds too many tasks")
	ErrWaiters = errors.New("too many requests wait for this task")
)

// maxTasks bounds the tasks of a session.
const maxTasks = 64

// page is how many tasks one tasks/list shows.
const page = 32

// Set holds the tasks of a session. The zero Set is empty, and so is nil, which takes none
// in. It is safe for concurrent use.
type Set struct {
	mu    sync.Mutex
	tasks []*Task // oldest first
}

// Add keeps a task until its ttl; cancel ends its call, and the call's end tells what outlast
// returned. When there are too many, the oldest of those whose outcome was fetched makes
// room; without one it is ErrTooMany.
func (s *Set) Add(t *Task, cancel func(), outlast func() (over func())) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expireLocked()
	if len(s.tasks) >= maxTasks {
		i := slices.IndexFunc(s.tasks, (*Task).isFetched)
		if i < 0 {
			return ErrTooMany
		}
		s.tasks[i].forget()
		s.tasks = slices.Delete(s.tasks, i, i+1)
	}
	t.cancel, t.over = cancel, sync.OnceFunc(outlast()) // nobody else knows it yet
	s.tasks = append(s.tasks, t)
	return nil
}

// Find returns the task that params name, or ErrUnknown.
func (s *Set) Find(params []byte) (*Task, error) {
	id, _ := rawjson.Name(rawjson.Get(params, "taskId"))
	for _, t := range s.all() {
		if t.id == id {
			return t, nil
		}
	}
	return nil, ErrUnknown
}

// List returns the result of a tasks/list, in raw JSON. The cursor is the id of the
// last task of the page before; of one that is not known it is ErrCursor.
func (s *Set) List(params []byte) ([]byte, error) {
	tasks := s.all()
	if raw := rawjson.Get(params, "cursor"); raw != nil && rawjson.KindOf(raw) != rawjson.Null { // B-8: which counts as none
		cursor, _ := rawjson.Name(raw)
		at := slices.IndexFunc(tasks, func(t *Task) bool { return t.id == cursor })
		if at < 0 {
			return nil, ErrCursor
		}
		tasks = tasks[at+1:]
	}
	out := []byte(`{"tasks":[`)
	shown := tasks[:min(len(tasks), page)]
	for i, t := range shown {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, t.Describe()...)
	}
	out = append(out, ']')
	if len(tasks) > len(shown) {
		out = rawjson.AppendQuote(append(out, `,"nextCursor":`...), shown[len(shown)-1].id)
	}
	return append(out, '}'), nil
}

// Leave ends the tasks/result with this id, if one waits; its task goes on.
func (s *Set) Leave(id jsonrpc.ID) {
	for _, t := range s.all() {
		t.leave(id)
	}
}

// Waits reports whether a tasks/result with this id waits.
func (s *Set) Waits(id jsonrpc.ID) bool {
	return slices.ContainsFunc(s.all(), func(t *Task) bool { return t.waitsFor(id) })
}

// Empty reports whether no task is held.
func (s *Set) Empty() bool { return len(s.all()) == 0 }

func (s *Set) all() []*Task {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expireLocked()
	return slices.Clone(s.tasks)
}

func (s *Set) expireLocked() {
	now := time.Now()
	s.tasks = slices.DeleteFunc(s.tasks, func(t *Task) bool {
		over := t.expired(now)
		if over {
			t.forget()
		}
		return over
	})
}
