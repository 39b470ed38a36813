package mount

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/rawjson"
)

// hostedTask is a task that the bridge hosts, as its client sees it.
type hostedTask struct {
	*Mount
	server  *slowServer
	session string
	params  string // which name it
}

// beginTask has a mount host a task, which runs until end.
func beginTask(t *testing.T) *hostedTask {
	t.Helper()
	server := newSlowServer()
	opt := Options{Caller: server}
	opt.Bridge.Rules.HostTasks = true
	opt.Legacy.IdleTimeout = 10 * time.Second
	m, err := New(opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	task := &hostedTask{Mount: m, server: server}
	opened := task.post(t, "initialize", `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}`)
	task.session = opened.Header().Get("Mcp-Session-Id")
	if task.session == "" {
		t.Fatal(opened.Code, opened.Body)
	}
	created := task.post(t, mcp.MethodToolsCall, `{"name":"slow","arguments":{},"task":{}}`).Body.Bytes()
	<-server.begun
	task.params = `{"taskId":` + string(rawjson.Get(rawjson.Get(rawjson.Get(created, "result"), "task"), "taskId")) + `}`
	return task
}

func (h *hostedTask) post(t *testing.T, method, params string) *httptest.ResponseRecorder {
	w, r := httptest.NewRecorder(), request(t, http.MethodPost, "http://127.0.0.1/", h.session, `{"jsonrpc":"2.0","id":1,"method":"`+method+`","params":`+params+`}`)
	r.Header.Set("Accept", "application/json")
	h.ServeHTTP(w, r)
	return w
}

// wants fails unless a request about the task is answered with this text, or not at all.
func (h *hostedTask) wants(t *testing.T, method, text string) {
	t.Helper()
	if got := h.post(t, method, h.params); !strings.Contains(got.Body.String(), text) {
		t.Errorf("%s: status %d, %s; want %s", method, got.Code, got.Body, text)
	}
}

// end lets the task end, if it runs still.
func (h *hostedTask) end() {
	select {
	case h.server.goOn <- struct{}{}:
	case <-time.After(time.Second):
	}
}

// A task runs for as long as it takes, whether somebody asks for it meanwhile or not; from its
// end on the session is idle.
func TestASessionWhoseTaskRunsIsInUse_G3(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		task := beginTask(t)
		time.Sleep(35 * time.Second)
		task.end()
		time.Sleep(8 * time.Second)
		task.wants(t, mcp.MethodTasksResult, `"content":[]`)
		time.Sleep(11 * time.Second)
		task.wants(t, mcp.MethodTasksGet, "no such session")
	})
}

// An orderly stop lets tasks end as it does calls, and their clients ask for them meanwhile.
func TestAShutdownWaitsForTasks_G3(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		task, down := beginTask(t), make(chan error, 1)
		go func() { down <- task.Shutdown(t.Context()) }()
		synctest.Wait()
		task.wants(t, mcp.MethodTasksGet, `"working"`)
		task.wants(t, mcp.MethodTasksList, `"working"`)
		task.wants(t, mcp.MethodToolsList, "shutting down")
		result := make(chan *httptest.ResponseRecorder, 1)
		go func() { result <- task.post(t, mcp.MethodTasksResult, task.params) }()
		synctest.Wait()
		if len(down) > 0 {
			t.Error("it has not waited")
		}
		task.end()
		if got := (<-result).Body.String(); !strings.Contains(got, `"content":[]`) {
			t.Error(got)
		}
		if err := <-down; err != nil {
			t.Error(err)
		}
	})
}
