package mrtr

import (
	"bytes"
	"slices"
	"time"

	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/rawjson"
)

// Bounds of the polling interval (G-3).
const (
	pollDefault = time.Second
	pollLeast   = 100 * time.Millisecond
	pollMost    = 30 * time.Second
)

// maxTaskInputs bounds what one task may ask over its life.
const maxTaskInputs = 256

// onTaskCreated is D-T8. What the rounds before left ends with it: the task's
// keys are a space of their own (D-I17, G-15).
func (f *Flow) onTaskCreated(raw []byte, at Moment) Action {
	if !f.TasksDeclared {
		return f.fail(&Violation{"B-27", "a task result, although tasks were not declared"})
	}
	raw = taskOf(raw)
	id := rawjson.Get(raw, "taskId")
	if rawjson.KindOf(id) != rawjson.String || len(id) > maxTaskID {
		return f.fail(&Violation{"G-2", "a task result without a usable taskId"})
	}
	f.Inputs, f.RequestState = nil, nil
	f.Task = &Task{ID: clone(id)}
	f.State = Polling
	return f.onTask(raw, at)
}

// maxTaskID bounds a taskId, in bytes of JSON text: it travels in a header.
const maxTaskID = 1024

// taskOf returns the task's members: at the root, or nested under "task" as
// some servers have it (I-2).
func taskOf(raw []byte) []byte {
	if nested := rawjson.Get(raw, "task"); rawjson.KindOf(nested) == rawjson.Object && !rawjson.Has(raw, "taskId") {
		return nested
	}
	return raw
}

// onTask looks at a task's state, in its creation or in an answer to tasks/get (G-4).
func (f *Flow) onTask(raw []byte, at Moment) Action {
	raw = taskOf(raw)
	f.Task.Fetching = false
	f.Task.Interval = interval(rawjson.Get(raw, "pollIntervalMs"))
	message, _ := rawjson.Name(rawjson.Get(raw, "statusMessage"))
	f.Task.Message = message
	status, _ := rawjson.Text(rawjson.Get(raw, "status"))
	switch status {
	case "working", "submitted":
		return f.poll(nil, at)
	case "input_required":
		return f.onTaskInput(rawjson.Get(raw, "inputRequests"), at)
	case "completed":
		return f.endTask(Action{Do: Deliver, Result: rawjson.Get(raw, "result")})
	case "failed":
		return f.endTask(Action{Do: Fail, Err: taskError(rawjson.Get(raw, "error"))})
	case "cancelled":
		return f.endTask(Action{Do: Fail, Err: &Abort{Reason: "the server cancelled the task behind this call"}})
	}
	return f.fail(&Violation{"G-4", "a task with the unknown status" + token(status)})
}

// endTask ends the flow with its task: there is nothing left to cancel.
func (f *Flow) endTask(act Action) Action {
	f.Task = nil
	return f.end(Done, act)
}

// onTaskInput asks for the keys that were not seen before. The server may show
// an answered key for a while; it is neither asked nor sent again (G-6, G-7).
func (f *Flow) onTaskInput(raw []byte, at Moment) Action {
	requests, err := parseRequests(raw)
	if err != nil {
		return f.fail(err)
	}
	for _, req := range requests {
		if refusal, ok := f.Task.refused[req.Key]; ok && !at.Now.Before(refusal.from) {
			return f.fail(refusal.err)
		}
		if f.Input(req.Key) != nil {
			continue
		}
		if len(f.Inputs) == maxTaskInputs {
			return f.fail(&LimitReached{"the number of input requests of one task", maxTaskInputs})
		}
		if abort := req.check(f.Capabilities); abort != nil {
			return f.fail(abort)
		}
		req.Params = clone(req.Params)
		f.Inputs = append(f.Inputs, Input{InputRequest: req})
	}
	return f.poll(f.askable(), at)
}

// poll looks at the task again later, and asks what it newly wants to know.
func (f *Flow) poll(ask []*Input, at Moment) Action {
	f.Clock.Due = at.later(f.Task.Interval)
	f.asking(ask, at)
	act := Action{Do: Poll, For: f.Task.Interval, Ask: ask}
	f.sayOfTask(&act)
	return act
}

// onTaskAnswer passes an answer on at once; polling goes on beside it (G-6).
func (f *Flow) onTaskAnswer(key string, response []byte, at Moment) Action {
	in := f.Input(key)
	if in == nil || !in.Asked || in.Response != nil {
		return Action{}
	}
	in.Response = response
	if f.hoards(in) {
		return f.fail(&LimitReached{"the size of answers that the server's task has yet to take", "4 MiB"})
	}
	ask := f.askable()
	f.asking(ask, at)
	return Action{Do: Update, Key: key, Ask: ask}
}

func interval(raw []byte) time.Duration {
	ms, ok := rawjson.Int(raw)
	if !ok {
		return pollDefault
	}
	ms = max(0, min(ms, pollMost.Milliseconds()))
	return max(time.Duration(ms)*time.Millisecond, pollLeast)
}

// taskError is the error of a failed task (G-10).
func taskError(raw []byte) error {
	code, ok := rawjson.Int(rawjson.Get(raw, "code"))
	message, named := rawjson.Name(rawjson.Get(raw, "message"))
	if !ok || !named {
		return &Violation{"G-10", "a failed task without an error"}
	}
	return &jsonrpc.Error{Code: int(code), Message: message, Data: clone(rawjson.Get(raw, "data"))}
}

// TaskResponse returns the inputResponses of a tasks/update for one answered key.
func (f *Flow) TaskResponse(key string) []byte {
	in := f.Input(key)
	out := append(rawjson.AppendQuote([]byte{'{'}, in.Key), ':')
	return append(append(out, in.Response...), '}')
}

// onUpdated notes that there was an answer, and no longer which. One that was refused is kept, for whoever goes on with
// the call knows of no refusal, and ends it if the task goes on to ask for it: it may be needed no more. Where it may have been taken
// before, the task has as long as a round to show that: servers acknowledge answers before their tasks have them.
func (f *Flow) onUpdated(ev *Event, at Moment) Action {
	in := f.Input(ev.key)
	if in == nil || in.Response == nil || f.State != Polling {
		return Action{}
	}
	if ev.err == nil {
		in.Response = passedOn
		return Action{}
	}
	if f.Task.refused == nil {
		f.Task.refused = map[string]refusal{}
	}
	from := at.Now
	if ev.flag {
		from = from.Add(f.limits().Round)
	}
	f.Task.refused[ev.key] = refusal{ev.err, from}
	return Action{}
}

// refusal is why the server did not take an answer, and from when on that counts.
type refusal struct {
	err  error
	from time.Time
}

// Undelivered returns the keys of the answers that the task may not have.
func (f *Flow) Undelivered() (keys []string) {
	for i := range f.Inputs {
		if in := &f.Inputs[i]; f.State == Polling && in.Response != nil && !bytes.Equal(in.Response, passedOn) {
			keys = append(keys, in.Key)
		}
	}
	return keys
}

// passedOn stands for an answer that a task has got. No answer is an object without members.
var passedOn = []byte("{}")

// Params names the task in requests about it.
func (t *Task) Params() []byte {
	return append(append([]byte(`{"taskId":`), t.ID...), '}')
}

// TaskGone is the failure of a task that the server no longer knows (G-11).
func TaskGone(err *jsonrpc.Error) error {
	if slices.Contains([]int{jsonrpc.CodeInvalidParams, mcp.CodeResourceNotFound}, err.Code) {
		return &Abort{Reason: "the server no longer knows the task behind this call; its result is lost"}
	}
	return err
}
