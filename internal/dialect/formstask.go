package dialect

import (
	"strconv"

	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/rawjson"
)

func isTaskMethod(method string) bool {
	switch method {
	case mcp.MethodTasksGet, mcp.MethodTasksUpdate, mcp.MethodTasksCancel:
		return true
	}
	return false
}

// task normalises a task handle or a task's state: the drafts nested it under
// task, and examples label the answer to tasks/get as a task (I-2, G-2, G-4).
// The drafts' member names are read in dialect mode only (I-9).
func (d forms) task(method string, result []byte) []byte {
	typ, marked := rawjson.Text(rawjson.Get(result, "resultType"))
	var edits []rawjson.Edit
	if d.On && !marked && method == mcp.MethodToolsCall && isBareTask(result) { // drafts with tasks in the core
		typ = mcp.ResultTask
		edits = append(edits, rawjson.Edit{Name: "resultType", Value: []byte(`"` + mcp.ResultTask + `"`)})
	}
	if typ != mcp.ResultTask && !isTaskMethod(method) {
		return result
	}
	nested := rawjson.Get(result, "task")
	if rawjson.KindOf(nested) == rawjson.Object && !rawjson.Has(result, "taskId") {
		edits = append(edits, rawjson.Edit{Name: "task"})
		for name, value := range rawjson.Members(nested) {
			edits = append(edits, rawjson.Edit{Name: string(name), Value: value})
		}
		if rawjson.Has(nested, "resultType") { // the handle's own marker counts
			edits = append(edits, rawjson.Edit{Name: "resultType", Value: []byte(`"` + mcp.ResultTask + `"`)})
			typ = mcp.ResultTask
		}
	}
	if typ == mcp.ResultTask && isTaskMethod(method) {
		edits = append(edits, rawjson.Edit{Name: "resultType", Value: []byte(`"` + mcp.ResultComplete + `"`)})
	}
	if edits != nil {
		result = rawjson.Apply(nil, result, edits...)
	}
	if d.On {
		result = finalTask(result)
	}
	return result
}

// isBareTask recognises a task handle without a marker (I-14).
func isBareTask(result []byte) bool {
	task := rawjson.Get(result, "task")
	return rawjson.Has(task, "taskId") && rawjson.Has(task, "status") && !rawjson.Has(result, "content")
}

// finalTask gives a draft task's durations their final names and unit. What
// plain ttl counts depends on the draft, so it is ignored (I-9).
func finalTask(task []byte) []byte {
	var edits []rawjson.Edit
	move := func(from, to string, value []byte) {
		if value != nil && !rawjson.Has(task, to) {
			edits = append(edits, rawjson.Edit{Name: from}, rawjson.Edit{Name: to, Value: value})
		}
	}
	move("ttlSeconds", "ttlMs", inMilliseconds(rawjson.Get(task, "ttlSeconds")))
	if rawjson.Has(task, "pollIntervalMilliseconds") {
		move("pollIntervalMilliseconds", "pollIntervalMs", rawjson.Get(task, "pollIntervalMilliseconds"))
	} else {
		move("pollInterval", "pollIntervalMs", rawjson.Get(task, "pollInterval"))
	}
	if inner := rawjson.Get(task, "result"); rawjson.Has(inner, "result_type") {
		inner = rawjson.Apply(nil, inner, rawjson.Edit{Name: "result_type"})
		edits = append(edits, rawjson.Edit{Name: "result", Value: inner})
	}
	if edits == nil {
		return task
	}
	return rawjson.Apply(nil, task, edits...)
}

// milliseconds converts a number of seconds, or returns nil when v is none.
func inMilliseconds(v []byte) []byte {
	if rawjson.KindOf(v) != rawjson.Number {
		return nil
	}
	seconds, err := strconv.ParseFloat(string(v), 64)
	if err != nil || seconds < 0 || seconds > 1e9 {
		return nil
	}
	return strconv.AppendInt(nil, int64(seconds*1000), 10)
}
