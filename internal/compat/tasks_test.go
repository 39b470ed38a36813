package compat

import (
	"strings"

	"github.com/mcpbridge/bridge/internal/mount"
)

var tasks = group{"Tasks", []feature{
	{name: "Tasks of the server", rules: "A-19, D-T8, D-T16, G-1, G-2, G-3, G-9, P-4", kinds: "TTTT", script: withTasks, run: hiddenTask},
	{name: "Questions of a task", rules: "G-6, G-7, D-I17", kinds: "TTTT", script: withTasks, run: askingTask},
	{name: "Failed and cancelled tasks", rules: "G-10, G-12, F.2", kinds: "TTTT", script: withTasks, run: failedTask},
	{name: "`params.task` and `tasks/*` of 2025-11-25", rules: "G.2, B-7, A-12, P-5", kinds: "TTTT", run: noTasks},
	{name: "The same with tasks hosted by the bridge (a setting)", rules: "G.3, Q9", kinds: "NNNT", options: hostTasks, run: hosted},
}}

const tasksExtension = `"io.modelcontextprotocol/tasks"`

func withTasks(s *server) {
	s.on("server/discover", result(strings.Replace(richDiscover, `"com.example/ui":{}`, `"com.example/ui":{},`+tasksExtension+`:{}`, 1)))
}

// created answers a tools/call with a task.
func created(x *incoming) {
	x.result(`{"resultType":"task","taskId":"t\u00e4sk","status":"working","createdAt":"2026-01-01T00:00:00Z","lastUpdatedAt":"2026-01-01T00:00:00Z","ttlMs":60000,"pollIntervalMs":1}`)
}

func status(text string) answer {
	return result(`{"resultType":"complete","taskId":"t\u00e4sk","createdAt":"2026-01-01T00:00:00Z","lastUpdatedAt":"2026-01-01T00:00:00Z","ttlMs":60000,"pollIntervalMs":1,` + text + `}`)
}

func hiddenTask(w *world) cell {
	if caps := member(w.client.opened.Result, "capabilities", "extensions"); strings.Contains(caps, "tasks") {
		w.Errorf("A.4: the client is shown %s", caps)
	}
	w.server.on("tools/call", created)
	w.server.on("tasks/get", status(`"status":"working"`), status(`"status":"completed","result":{"content":[{"type":"text","text":"done"}]}`))
	x := w.client.call("tools/call", `{"name":"t"}`)
	if caps := w.server.last("tools/call").meta("clientCapabilities"); !strings.Contains(caps, tasksExtension+`:{}`) {
		w.Errorf("A-19, G-1: declared %s", caps)
	}
	poll := w.server.last("tasks/get")
	if member(poll.Params, "taskId") != `"t\u00e4sk"` || poll.Header.Get("Mcp-Name") != "=?base64?dMOkc2s=?=" || !strings.Contains(poll.meta("clientCapabilities"), tasksExtension) {
		w.Errorf("G-3: %v %s", poll.Header, poll.Params)
	}
	expect(w.T, "G-9", string(x.response.Result), `{"content":[{"type":"text","text":"done"}]}`)
	return via("polled by the bridge; the client sees a call that takes long")
}

// askingTask: the server shows an answered key for a while; it is neither asked
// nor sent again.
func askingTask(w *world) cell {
	w.server.on("tools/call", created)
	w.server.on("tasks/update", result(`{"resultType":"complete"}`))
	asks := status(`"status":"input_required","inputRequests":{"r":{"method":"roots/list"}}`)
	w.server.on("tasks/get", asks, func(x *incoming) {
		w.server.wait("tasks/update", 1)
		asks(x)
	}, asks, status(`"status":"completed","result":{"content":[]}`))
	w.client.answers["roots/list"] = func(string) string { return `{"roots":[]}` }
	w.client.call("tools/call", `{"name":"t"}`)
	updates := w.server.requests("tasks/update")
	if len(updates) != 1 || len(w.client.asked) != 1 {
		w.Fatalf("G-7: %d updates, %d questions", len(updates), len(w.client.asked))
	}
	expect(w.T, "G-6", member(updates[0].Params, "inputResponses"), `{"r":{"roots":[]}}`)
	if member(updates[0].Params, "requestState") != "" {
		w.Errorf("G-15: %s", updates[0].Params)
	}
	return via("asked within the call; the answer goes to the task")
}

func failedTask(w *world) cell {
	w.server.on("tools/call", created)
	w.server.on("tasks/get", status(`"status":"failed","error":{"code":-32000,"message":"broken"}`), status(`"status":"cancelled"`), func(x *incoming) {
		x.notify("notifications/progress", `{"progressToken":"none","progress":1}`) // the poll is open now
		x.gone()
	})
	w.server.on("tasks/cancel", result(`{"resultType":"complete"}`))
	x := w.client.call("tools/call", `{"name":"t"}`)
	if e := x.response.Error; e == nil || e.Code != -32000 || e.Message != "broken" { // F-3
		w.Errorf("G-10: %s", x.response.Text)
	}
	x = w.client.call("tools/call", `{"name":"t"}`)
	expect(w.T, "F.2", member(x.response.Result, "isError"), `true`)

	x = &exchange{c: w.client, id: "99"}
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.server.wait("tasks/get", 3)
		w.client.notify(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":99}}`)
	}()
	x.reply = w.client.post(`{"jsonrpc":"2.0","id":99,"method":"tools/call","params":{"name":"t"}}`)
	x.finish()
	<-done
	cancel := w.server.wait("tasks/cancel", 1)[0]
	if x.response != nil || member(cancel.Params, "taskId") != `"t\u00e4sk"` {
		w.Errorf("G-12: %+v, %s", x.response, cancel.Params)
	}
	return via("as errors; a client's cancel reaches the task")
}

func noTasks(w *world) cell {
	w.server.on("tools/call", result(`{"resultType":"complete","content":[]}`))
	x := w.client.call("tools/call", `{"name":"t","task":{"ttl":1000}}`)
	expect(w.T, "G.2", string(x.response.Result), `{"content":[]}`)
	for _, method := range []string{"tasks/get", "tasks/result", "tasks/list", "tasks/cancel", "tasks/update", "server/discover", "subscriptions/listen"} {
		if e := w.client.call(method, `{"taskId":"1"}`).response.Error; e == nil || e.Code != -32601 {
			w.Errorf("A-12, B.4: %s: %+v", method, e)
		}
		if method != "server/discover" && method != "subscriptions/listen" && len(w.server.requests(method)) > 0 {
			w.Errorf("A-12: %s went up", method)
		}
	}
	return via("`task` is ignored, `tasks/*` are `-32601`")
}

func hostTasks(o *mount.Options) { o.Bridge.Rules.HostTasks = true }

func hosted(w *world) cell {
	w.server.on("tools/call", rootsFirst(`{"content":[{"type":"text","text":"no"}],"isError":true}`))
	w.client.answers["roots/list"] = func(params string) string {
		if !w.before("2025-11-25") && !strings.Contains(params, metaPrefix+"related-task") {
			w.Errorf("G.3: the question does not name its task: %s", params)
		}
		return `{"roots":[]}`
	}
	x := w.client.call("tools/call", `{"name":"t","task":{"ttl":60000}}`)
	id := member(x.response.Result, "task", "taskId")
	if id == "" {
		if member(w.client.opened.Result, "capabilities", "tasks") != "" {
			w.Error("A.4: tasks are advertised")
		}
		return lacks("as without the setting")
	}
	expect(w.T, "A.4", member(w.client.opened.Result, "capabilities", "tasks"), `{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}}`)
	done := w.client.call("tasks/result", `{"taskId":`+id+`}`)
	expect(w.T, "G.3", string(done.response.Result), `{"content":[{"type":"text","text":"no"}],"isError":true,"_meta":{"io.modelcontextprotocol/related-task":{"taskId":`+id+`}}}`)
	task := w.client.call("tasks/get", `{"taskId":`+id+`}`).response.Result
	expect(w.T, "G.3: a tool's error is a failed task", member(task, "status"), `"failed"`)
	if n := len(w.server.requests("tasks/get")); n != 0 {
		w.Errorf("P-5: %d × tasks/get went up", n)
	}
	return via("the call runs behind a task of the bridge")
}
