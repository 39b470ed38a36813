package dialect

import (
	"slices"
	"sync"

	"github.com/mcpbridge/bridge/internal/hop"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/rawjson"
	"github.com/mcpbridge/bridge/upstream"
)

// Bounds of what is remembered of tasks. When a further one does not fit, one of
// the principal that has most is forgotten.
const (
	maxTasks = 1024
	maxState = 64 << 10 // bytes of one request state and its task's id
)

// methodInputResponse takes the answers of a task whose questions came by
// tasks/result.
const methodInputResponse = "tasks/input_response"

// tasks remembers, of running tasks, what the final protocol has no place for.
type tasks struct {
	mu    sync.Mutex
	known map[taskKey]task
}

type taskKey struct{ principal, person, id string } // id is the raw token

type task struct {
	state []byte // raw requestState of the latest answer about it; nil: absent (I-10)
	core  bool   // asks by tasks/result, takes answers by tasks/input_response (I-14)
}

// keyOf returns the key of the task that is named in what a call says, or is answered with.
func keyOf(call *upstream.Call, said []byte) taskKey {
	return taskKey{call.Principal, hop.Person("", call.Header), string(rawjson.Get(said, "taskId"))}
}

// created notes the task that a tools/call was answered with.
func (t *tasks) created(call *upstream.Call, ans *upstream.Answer) error {
	if ans.Error != nil || string(rawjson.Get(ans.Result, "resultType")) != `"`+mcp.ResultTask+`"` {
		return nil
	}
	return t.note(keyOf(call, ans.Result), ans.Result, false)
}

// seen notes the answer to a tasks/get. Nothing more is asked about a task that
// is over, but for its payload, which still needs the state.
func (t *tasks) seen(get *upstream.Call, result []byte) error {
	status, _ := rawjson.Text(rawjson.Get(result, "status"))
	over := slices.Contains([]string{"completed", "failed", "cancelled"}, status)
	if over && missingPayload(result) == "" {
		t.forget(get)
		return nil
	}
	return t.note(keyOf(get, get.Params), result, false)
}

// asks notes what tasks/result brought.
func (t *tasks) asks(get *upstream.Call, result []byte) error {
	if !isInterim(result) {
		t.forget(get)
		return nil
	}
	return t.note(keyOf(get, get.Params), result, true)
}

// note keeps the latest request state, or its absence. Only an answer to
// tasks/result says nothing when it has none.
func (t *tasks) note(key taskKey, result []byte, payload bool) error {
	state := rawjson.Get(result, "requestState")
	if rawjson.KindOf(state) != rawjson.String {
		state = nil
	}
	if size := len(state) + len(key.id); size > maxState {
		return tooLarge(size)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	was, is := t.known[key]
	next := task{state: slices.Clone(state), core: payload || was.core}
	if payload && state == nil {
		next.state = was.state
	}
	if next.state == nil && !next.core {
		delete(t.known, key)
		return nil
	}
	if t.known == nil {
		t.known = make(map[taskKey]task)
	}
	if !is {
		t.makeRoom()
	}
	t.known[key] = next
	return nil
}

// makeRoom keeps the book within its bound: who has most in it loses one. The caller holds mu.
func (t *tasks) makeRoom() {
	if len(t.known) < maxTasks {
		return
	}
	has, most := map[string]int{}, taskKey{}
	for key := range t.known {
		if has[key.principal]++; has[key.principal] >= has[most.principal] {
			most = key
		}
	}
	delete(t.known, most)
}

func (t *tasks) forget(call *upstream.Call) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.known, keyOf(call, call.Params))
}

// outgoing adapts a request about a task: it carries the task's latest state,
// and answers go where the draft takes them.
func (t *tasks) outgoing(call *upstream.Call, params []byte) (string, []byte) {
	method, key := call.Method, keyOf(call, params)
	t.mu.Lock()
	known, ok := t.known[key]
	t.mu.Unlock()
	if !ok {
		return method, params
	}
	var edits []rawjson.Edit
	if known.state != nil {
		edits = append(edits, rawjson.Edit{Name: "requestState", Value: known.state})
	}
	if known.core && method == mcp.MethodTasksUpdate {
		method = methodInputResponse
		related := rawjson.Apply(nil, []byte("{}"), rawjson.Edit{Name: "taskId", Value: []byte(key.id)})
		meta := rawjson.Apply(nil, rawjson.Get(params, "_meta"), rawjson.Edit{Name: mcp.MetaRelatedTask, Value: related})
		edits = append(edits, rawjson.Edit{Name: "taskId"}, rawjson.Edit{Name: "_meta", Value: meta})
	}
	if edits == nil {
		return method, params
	}
	return method, rawjson.Apply(nil, params, edits...)
}
