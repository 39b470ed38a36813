package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/mcpbridge/bridge/rawjson"
)

// newHostingTrio returns replicas that host tasks, and a session of theirs.
func newHostingTrio(t *testing.T) *trio {
	t.Helper()
	f := newTrio(t, "--tasks", "host")
	session := f.on[0].request(http.MethodPost, strings.Replace(initializeAsking, "2025-06-18", "2025-11-25", 1)).Header.Get("Mcp-Session-Id")
	for _, k := range f.on {
		k.session = session
	}
	return f
}

// task starts a call as a task at a replica, and returns the params that name it.
func (f *trio) task(on int) string {
	f.t.Helper()
	created := f.text(on, strings.Replace(callAsk, `"arguments":{}`, `"arguments":{},"task":{"ttl":60000}`, 1))
	var msg struct {
		Result struct{ Task json.RawMessage }
	}
	if json.Unmarshal([]byte(created), &msg); msg.Result.Task == nil {
		f.t.Fatalf("no task: %s", created)
	}
	return `{"taskId":` + string(rawjson.Get(msg.Result.Task, "taskId")) + `}`
}

func (f *trio) about(on int, method, task string) string {
	f.t.Helper()
	return f.text(on, taskRequest(method, task))
}

func taskRequest(method, params string) string {
	return `{"jsonrpc":"2.0","id":"about","method":"` + method + `","params":` + params + `}`
}

// TestReplicasServeTheTasksOfEachOther: a hosted task is in the memory of one, and requests about it come in
// at any.
func TestReplicasServeTheTasksOfEachOther(t *testing.T) {
	f := newHostingTrio(t)
	task := f.task(0)
	for on := range f.on {
		if text := f.about(on, "tasks/get", task); !strings.Contains(text, `"taskId":`) {
			t.Errorf("replica %d is asked for the task: %s", on, text)
		}
	}
	stream := f.on[1].follow(f.on[1].request(http.MethodPost, taskRequest("tasks/result", task)))
	f.on[2].answer(fmt.Sprint(stream.message()["id"]))
	if end := stream.message(); end["id"] != "about" || !strings.Contains(fmt.Sprint(end["result"]), "done") {
		t.Errorf("the result is %v", end)
	}
	wantRounds(t, f.asker, 1)
}

func TestReplicasCancelTheTasksOfEachOther(t *testing.T) {
	f := newHostingTrio(t)
	task := f.task(0)
	waiting := f.on[1].follow(f.on[1].request(http.MethodPost, taskRequest("tasks/result", task)))
	_ = waiting.message() // its question
	f.wantStatus(2, http.MethodPost, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"about"}}`, http.StatusAccepted)
	_, err := waiting.d.Next()
	for err == nil {
		_, err = waiting.d.Next()
	}
	if !errors.Is(err, io.EOF) {
		t.Errorf("a cancelled tasks/result ends with %v", err)
	}
	if text := f.about(2, "tasks/cancel", task); !strings.Contains(text, `"cancelled"`) {
		t.Errorf("the cancellation is answered %s", text)
	}
	if text := f.about(0, "tasks/get", task); !strings.Contains(text, `"cancelled"`) {
		t.Errorf("then the task is %s", text)
	}
}

// TestReplicasSayThatATaskEndedWithItsProcess: nobody goes on with it, and its client is to know.
func TestReplicasSayThatATaskEndedWithItsProcess(t *testing.T) {
	t.Parallel()
	f := newHostingTrio(t)
	task := f.task(0)
	f.on[0].kill()
	for _, method := range []string{"tasks/get", "tasks/result", "tasks/cancel"} {
		if text := f.about(1, method, task); !strings.Contains(text, "-32602") || !strings.Contains(text, "the process that ran it has ended") {
			t.Errorf("%s is answered %s", method, text)
		}
	}
	if text := f.about(1, "tasks/get", `{"taskId":"made-up"}`); !strings.Contains(text, `"unknown task"`) {
		t.Errorf("a task that never was: %s", text)
	}
}
