package compat

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/mcpbridge/bridge/internal/mount"
	"github.com/mcpbridge/bridge/mcp"
)

// D-I9: the next round goes up when the one before is over, however many there are.
func TestRoundsFollowOneAnother_DI9(t *testing.T) {
	w := newWorld(t, mcp.V20251125, nil)
	var running atomic.Int32
	rounds := 0
	w.server.on("tools/call", func(x *incoming) {
		if running.Add(1) > 1 {
			t.Error("D-I9: two rounds of one flow at a time")
		}
		defer running.Add(-1)
		if rounds++; rounds == 5 {
			x.result(`{"resultType":"complete","content":[]}`)
			return
		}
		x.result(`{"resultType":"input_required","inputRequests":{"a":{"method":"roots/list"},"b":{"method":"roots/list"}}}`)
	})
	w.client.answers["roots/list"] = func(string) string { return `{"roots":[]}` }
	w.client.initialize(`{"roots":{}}`)
	w.client.call("tools/call", `{"name":"t"}`)
	if rounds != 5 {
		t.Errorf("D-T12: %d rounds", rounds)
	}
}

// D-14: a question that comes again is asked again, until the limit on rounds
// ends the call with its name (D-T17, D-I18).
func TestARepeatedQuestionIsAskedUpToTheLimit_D14_DT17(t *testing.T) {
	w := newWorld(t, mcp.V20251125, func(o *mount.Options) { o.Bridge.Limits.Flow.Rounds = 3 })
	w.server.on("tools/call", result(`{"resultType":"input_required","inputRequests":{"a":{"method":"roots/list"}}}`))
	w.client.answers["roots/list"] = func(string) string { return `{"roots":[]}` }
	w.client.initialize(`{"roots":{}}`)
	x := w.client.call("tools/call", `{"name":"t"}`)
	expect(t, "D-T17", member(x.response.Result, "isError"), `true`)
	if len(w.client.asked) != 4 || !strings.Contains(string(x.response.Result), "limits.rounds") {
		t.Errorf("D-14, D-T17: %d questions, %s", len(w.client.asked), x.response.Text)
	}
}

// D-I10, B-43: what came of answers is kept for nobody, even when it says that
// it may be; and a retry is never answered from what was kept.
func TestRoundsNeverTouchTheCache_DI10_B43(t *testing.T) {
	w := newWorld(t, mcp.V20251125, nil)
	w.server.on("resources/read", asking("roots", `"r"`, `{"method":"roots/list"}`, `{"ttlMs":60000,"cacheScope":"public","contents":[]}`))
	w.client.answers["roots/list"] = func(string) string { return `{"roots":[]}` }
	w.client.initialize(`{"roots":{}}`)
	for range 2 {
		w.client.call("resources/read", `{"uri":"u:1"}`)
	}
	if n := len(w.server.requests("resources/read")); n != 4 || len(w.client.asked) != 2 {
		t.Errorf("D-I10, B-43: %d requests, %d questions", n, len(w.client.asked))
	}
}

// B-41, A-14: what is kept for one client serves clients of other revisions, in
// their own words, as long as they declare the same and ask for the same.
func TestKeptResultsServeEveryRevision_B41(t *testing.T) {
	w := newWorld(t, mcp.V20251125, nil)
	tool := `{"name":"t","inputSchema":{"type":"object"},"title":"T"}`
	w.server.on("tools/list", result(`{"resultType":"complete","ttlMs":60000,"cacheScope":"private","tools":[`+tool+`]}`))
	for _, c := range []struct {
		version                    mcp.Version
		capabilities, params, want string
		asked                      int // requests that the server has got by then
	}{
		{mcp.V20251125, `{}`, ``, tool, 1},
		{mcp.V20250326, `{}`, ``, `{"name":"t","inputSchema":{"type":"object"},"annotations":{"title":"T"}}`, 1},
		{mcp.V20241105, `{}`, `{"_meta":{"progressToken":1}}`, bareTool, 1},
		{mcp.V20241105, `{}`, `{"_meta":{"x":1}}`, bareTool, 2}, // a vendor's: the result may depend on it
		{mcp.V20241105, `{}`, `{"cursor":"c"}`, bareTool, 3},
		{mcp.V20251125, `{"roots":{}}`, ``, tool, 4},
	} {
		w.version = c.version
		client := w.newClient()
		client.initialize(c.capabilities)
		x := client.call("tools/list", c.params)
		expect(t, string(c.version), string(x.response.Result), `{"tools":[`+c.want+`]}`)
		if n := len(w.server.requests("tools/list")); n != c.asked {
			t.Errorf("B-41: %s %s %s: %d requests, want %d", c.version, c.capabilities, c.params, n, c.asked)
		}
	}
}

// D-I16: what a server says behind an interim result, a second outcome among
// it, is dropped.
func TestAnInterimResultEndsItsStream_DI16(t *testing.T) {
	w := newWorld(t, mcp.V20251125, nil)
	w.server.on("tools/call", func(x *incoming) {
		x.event(`{"jsonrpc":"2.0","id":` + x.ID + `,"result":{"resultType":"input_required","inputRequests":{"r":{"method":"roots/list"}}}}`)
		x.notify("notifications/x", `{"too":"late"}`)
		x.event(`{"jsonrpc":"2.0","id":` + x.ID + `,"result":{"resultType":"complete","content":[{"type":"text","text":"second thoughts"}]}}`)
	}, result(`{"resultType":"complete","content":[]}`))
	w.client.answers["roots/list"] = func(string) string { return `{"roots":[]}` }
	w.client.initialize(`{"roots":{}}`)
	x := w.client.call("tools/call", `{"name":"t"}`)
	expect(t, "D-I16", string(x.response.Result), `{"content":[]}`)
	if len(x.before) != 0 || len(w.client.asked) != 1 {
		t.Errorf("D-I16: %d notifications, %d questions", len(x.before), len(w.client.asked))
	}
}

// D-I14, P-9: only the session that was asked can answer, and once.
func TestQuestionsBelongToTheirSession_DI14_P9(t *testing.T) {
	w := newWorld(t, mcp.V20251125, nil)
	w.server.on("tools/call", rootsFirst(`{"content":[]}`))
	w.client.initialize(`{"roots":{}}`)
	other := w.newClient()
	other.initialize(`{"roots":{}}`)
	x := w.client.start("tools/call", `{"name":"t"}`)
	question := x.until("roots/list")
	other.answer(question, `{"roots":[{"uri":"file:///stolen"}]}`)
	// The client's own id for the call is no question's id.
	w.client.notify(`{"jsonrpc":"2.0","id":` + x.id + `,"result":{"roots":[]}}`)
	w.client.answer(question, `{"roots":[{"uri":"file:///mine"}]}`)
	w.client.answer(question, `{"roots":[{"uri":"file:///again"}]}`)
	x.finish()
	all := w.server.requests("tools/call")
	if len(all) != 2 {
		t.Fatalf("D-I14: %d requests", len(all))
	}
	expect(t, "D-I14, P-9", member(all[1].Params, "inputResponses"), `{"r":{"roots":[{"uri":"file:///mine"}]}}`)
}

// D-I8: two calls with the same tool, arguments and keys share nothing.
func TestFlowsShareNothing_DI8(t *testing.T) {
	w := newWorld(t, mcp.V20251125, nil)
	n := 0
	w.server.on("tools/call", func(x *incoming) {
		if state := member(x.Params, "requestState"); state != "" {
			x.result(`{"resultType":"complete","content":[],"saw":[` + state + `,` + member(x.Params, "inputResponses") + `]}`)
			return
		}
		n++
		x.result(fmt.Sprintf(`{"resultType":"input_required","requestState":"s%d","inputRequests":{"k":{"method":"roots/list"}}}`, n))
	})
	w.client.initialize(`{"roots":{}}`)
	one, two := w.client.start("tools/call", `{"name":"t"}`), (*exchange)(nil)
	first := one.until("roots/list")
	two = w.client.start("tools/call", `{"name":"t"}`)
	second := two.until("roots/list")
	w.client.answer(second, `{"roots":[{"uri":"file:///2"}]}`)
	w.client.answer(first, `{"roots":[{"uri":"file:///1"}]}`)
	one.finish()
	two.finish()
	expect(t, "D-I8", member(one.response.Result, "saw"), `["s1",{"k":{"roots":[{"uri":"file:///1"}]}}]`)
	expect(t, "D-I8", member(two.response.Result, "saw"), `["s2",{"k":{"roots":[{"uri":"file:///2"}]}}]`)
}

// E-22: a question that the client fetches again has the id that it had, and its
// answer counts (D-T18: the lost connection has cancelled nothing).
func TestAReplayedQuestionKeepsItsID_E22(t *testing.T) {
	w := newWorld(t, mcp.V20251125, nil)
	w.server.on("tools/call", rootsFirst(`{"content":[]}`))
	w.client.initialize(`{"roots":{}}`)
	x := w.client.start("tools/call", `{"name":"t"}`)
	question := x.until("roots/list")
	x.stop()
	x.reply = w.client.send(http.MethodGet, "", http.Header{"Last-Event-Id": {x.primed}})
	again := x.until("roots/list")
	if again.Text != question.Text || again.EventID != question.EventID {
		t.Errorf("E-22:\n was %s\n now %s", question.Text, again.Text)
	}
	w.client.answer(again, `{"roots":[]}`)
	x.finish()
	expect(t, "E-22", string(x.response.Result), `{"content":[]}`)
}

// D-T9: an error ends the call (D-18), but for the two refusals that prove that nothing was
// executed; each is sent again once, under a new id.
func TestWhichErrorsAreSentAgain_DT9(t *testing.T) {
	w := newWorld(t, mcp.V20251125, nil)
	w.open()
	done := result(`{"resultType":"complete","content":[]}`)
	w.server.on("tools/list", complete(`"tools":[]`))
	for name, c := range map[string]struct {
		answers  []answer
		requests int
		fails    bool
	}{
		"-32020":       {[]answer{failing(-32020, "headers", ""), done}, 2, false},
		"-32020 twice": {[]answer{failing(-32020, "headers", ""), failing(-32020, "headers", ""), done}, 2, true},
		"-32022":       {[]answer{failing(-32022, "version", `{"supported":["2026-07-28"],"requested":"2026-07-28"}`), done}, 2, false},
		"-32022 twice": {[]answer{failing(-32022, "version", `{"supported":["2026-07-28"],"requested":"x"}`), failing(-32022, "version", `{"supported":["2026-07-28"],"requested":"x"}`), done}, 2, true},
		"-32603":       {[]answer{failing(-32603, "no", ""), done}, 1, true},
		"-32000":       {[]answer{failing(-32000, "no", ""), done}, 1, true},
	} {
		w.server.on("tools/call", c.answers...)
		before := len(w.server.requests("tools/call"))
		x := w.client.call("tools/call", `{"name":"t"}`)
		if n := len(w.server.requests("tools/call")) - before; n != c.requests || (x.response.Error != nil) != c.fails {
			t.Errorf("D-T9: %s: %d requests, %s", name, n, x.response.Text)
		}
	}
}

// G-4: a task's state is read by its status, however the answer is labelled.
func TestTaskAnswersAreReadByTheirStatus_G4(t *testing.T) { // also M-4
	w := newWorld(t, mcp.V20251125, nil)
	withTasks(w.server)
	w.server.on("tools/call", created)
	w.server.on("tasks/get",
		result(`{"resultType":"task","taskId":"t\u00e4sk","status":"working","pollIntervalMs":1}`),
		result(`{"resultType":"task","taskId":"t\u00e4sk","status":"completed","result":{"content":[]}}`))
	w.open()
	x := w.client.call("tools/call", `{"name":"t"}`)
	expect(t, "G-4", string(x.response.Result), `{"content":[]}`)
}
