package compat

import (
	"net/http"
	"strings"
	"time"

	"github.com/mcpbridge/bridge/internal/mount"
)

func errorToForm(w *world) cell {
	w.server.on("tools/call", asking("elicitation", `"k"`, form(formSchema), `{"content":[]}`))
	w.client.answers["elicitation/create"] = func(string) string { return `!{"code":-32000,"message":"window closed"}` }
	x := w.client.call("tools/call", `{"name":"t"}`)
	if member(x.response.Result, "isError") != "" {
		return w.told(x, "asking the user questions").unless(w.toolOnPage(form(formSchema), "action=cancel", `{"action":"cancel"}`))
	}
	expect(w.T, "C.9", member(w.server.last("tools/call").Params, "inputResponses"), `{"k":{"action":"cancel"}}`)
	return via("the server is told `cancel`")
}

// errorToRoots: for roots and sampling the server cannot be told; nothing more
// goes up, and the call fails for the model to react.
func errorToRoots(w *world) cell {
	w.server.on("tools/call", rootsFirst(`{"content":[]}`))
	w.client.answers["roots/list"] = func(string) string { return `!{"code":-32603,"message":"no roots today"}` }
	x := w.client.call("tools/call", `{"name":"t"}`)
	expect(w.T, "C-34", member(x.response.Result, "isError"), `true`)
	if n := len(w.server.requests("tools/call")); n != 1 || !strings.Contains(string(x.response.Result), "no roots today") {
		w.Errorf("C-34: %d requests, %s", n, x.response.Result)
	}
	w.server.on("prompts/get", rootsFirst(`{"messages":[]}`))
	y := w.client.call("prompts/get", `{"name":"p"}`)
	if e := y.response.Error; e == nil || e.Code != -32603 || member(e.Data, "bridge", "inputRequest") != `"r"` {
		w.Errorf("C-34: %s", y.response.Text)
	}
	// A client that does not know the method after all is not asked again (F.3).
	w.client.answers["roots/list"] = func(string) string { return `!{"code":-32601,"message":"unknown"}` }
	w.client.call("tools/call", `{"name":"t"}`)
	before := len(w.client.asked)
	z := w.client.call("tools/call", `{"name":"t"}`)
	if len(w.client.asked) != before || member([]byte(w.server.last("tools/call").meta("clientCapabilities")), "roots") != "" {
		w.Errorf("F.3: roots are declared and asked for again: %s", z.response.Text)
	}
	return via("the call fails with the client's words")
}

func impatient(o *mount.Options) { o.Bridge.Limits.Flow.ServerRequest = 200 * time.Millisecond }

// unanswered has a call ask a client that says nothing until it is too late. The
// question is withdrawn after a while, and in the next call the server is not told
// that the client can be asked such things.
func (w *world) unanswered(capability, request, tooLate string) *exchange {
	w.Helper()
	w.server.on("tools/call", asking(capability, `"k"`, request, `{"content":[]}`))
	x := w.client.start("tools/call", `{"name":"t"}`)
	question := x.until(strings.Trim(member([]byte(request), "method"), `"`))
	x.finish()
	withdrawn := x.notified("notifications/cancelled")
	if len(withdrawn) != 1 {
		w.Fatalf("C.9: %d withdrawals, %s", len(withdrawn), x.response.Text)
	}
	expect(w.T, "C-35", member(withdrawn[0].Params, "requestId"), question.ID)
	w.client.answer(question, tooLate)
	w.client.call("tools/call", `{"name":"t"}`)
	if got := w.server.last("tools/call"); member([]byte(got.meta("clientCapabilities")), capability) != "" || member(got.Params, "inputResponses") != "" {
		w.Errorf("C.9: %s", got.Params)
	}
	return x
}

func noAnswerToForm(w *world) cell {
	if w.before("2025-06-18") {
		w.server.on("tools/call", asking("elicitation", `"k"`, form(formSchema), `{"content":[]}`))
		return w.told(w.client.call("tools/call", `{"name":"t"}`), "asking the user questions").unless(w.nobodyOnPage())
	}
	x := w.unanswered("elicitation", form(formSchema), `{"action":"accept","content":{"n":1}}`)
	expect(w.T, "the result", string(x.response.Result), `{"content":[]}`)
	expect(w.T, "C.9", member(w.server.requests("tools/call")[1].Params, "inputResponses"), `{"k":{"action":"cancel"}}`)
	return via("withdrawn after a time (a setting), and the server is told `cancel`; a client that never answered a form gets none for a while")
}

func noAnswerToOthers(w *world) cell {
	for _, x := range []*exchange{
		w.unanswered("roots", `{"method":"roots/list"}`, `{"roots":[]}`),
		w.unanswered("sampling", `{"method":"sampling/createMessage","params":{"messages":[],"maxTokens":1}}`, sampled),
	} {
		expect(w.T, "C.9", member(x.response.Result, "isError"), `true`)
		if !strings.Contains(string(x.response.Result), "did not answer") {
			w.Errorf("C-34: %s", x.response.Text)
		}
	}
	return via("withdrawn after a time (a setting), and the call fails; a client that never answered such a question is not asked for a while")
}

func jsonOnly(w *world) cell {
	w.server.on("tools/call", rootsFirst(`{"content":[]}`))
	w.client.header = http.Header{"Accept": {"application/json"}}
	x := w.client.call("tools/call", `{"name":"t","_meta":{"progressToken":1}}`)
	expect(w.T, "A-18", member([]byte(w.server.last("tools/call").meta("clientCapabilities")), "roots")+`[]`, `[]`)
	if got := x.header.Get("Content-Type"); got != "application/json" {
		w.Errorf("E-5: %q", got)
	}
	if !strings.Contains(string(x.response.Result), "roots") {
		w.Errorf("F.2: %s", x.response.Text)
	}
	w.jsonOnPage()
	return via("never asked, and the server is told so; who answers for clients does for these (`questions`, `sampling`, `roots`)")
}

// undeclared: one entry that may not be asked spoils its round, before anything
// of it is asked.
func undeclared(w *world) cell {
	poor := w.newClient()
	poor.initialize(`{"roots":{}}`)
	poor.answers["roots/list"] = func(string) string { w.Error("C-33: asked in a round that is refused"); return `{"roots":[]}` }
	w.server.on("tools/call", result(`{"resultType":"input_required","inputRequests":{"r":{"method":"roots/list"},`+
		`"s":{"method":"sampling/createMessage","params":{"messages":[],"maxTokens":1}}}}`))
	x := poor.call("tools/call", `{"name":"t"}`)
	expect(w.T, "C-34", member(x.response.Result, "isError"), `true`)
	if n := len(w.server.requests("tools/call")); n != 1 || !strings.Contains(string(x.response.Result), "sampling") {
		w.Errorf("C-33: %d requests, %s", n, x.response.Text)
	}
	return via("nothing of the round is asked; the call fails")
}

func stateOnly(w *world) cell {
	w.server.on("tools/call",
		result(`{"resultType":"input_required","requestState":"busy\u0021"}`),
		result(`{"resultType":"complete","content":[]}`))
	w.client.call("tools/call", `{"name":"t"}`)
	all := w.server.requests("tools/call")
	if got := member(all[len(all)-1].Params, "requestState"); len(all) != 2 || got != `"busy\u0021"` || len(w.client.asked) > 0 {
		w.Errorf("D-T5: %d requests, state %s", len(all), got)
	}
	if member(all[1].Params, "inputResponses") != "" {
		w.Errorf("D-I6: %s", all[1].Params)
	}
	return via("repeated by the bridge after a pause")
}

// twoRounds: the second round asks again under the same key and gives another
// state; only the latest goes up.
func twoRounds(w *world) cell {
	w.server.on("tools/call",
		result(`{"resultType":"input_required","inputRequests":{"a":{"method":"roots/list"},"b":{"method":"roots/list"}},"requestState":"one"}`),
		result(`{"resultType":"input_required","inputRequests":{"a":{"method":"roots/list"}},"requestState":""}`),
		result(`{"resultType":"input_required","inputRequests":{"a":{"method":"roots/list"}}}`),
		result(`{"resultType":"complete","content":[]}`))
	w.client.answers["roots/list"] = func(string) string { return `{"roots":[]}` }
	w.client.call("tools/call", `{"name":"t"}`)
	all := w.server.requests("tools/call")
	if len(all) != 4 || len(w.client.asked) != 4 { // C-38: "a" is a new question each time
		w.Fatalf("%d requests, %d questions", len(all), len(w.client.asked))
	}
	ids := map[string]bool{}
	for _, m := range w.client.asked { // P-9: an id is never used again
		if ids[m.ID] {
			w.Errorf("P-9: question id %s came twice", m.ID)
		}
		ids[m.ID] = true
	}
	for n, want := range []struct{ responses, state string }{
		{"", ""}, {`{"a":{"roots":[]},"b":{"roots":[]}}`, `"one"`}, {`{"a":{"roots":[]}}`, `""`}, {`{"a":{"roots":[]}}`, ""},
	} {
		if got := member(all[n].Params, "requestState"); got != want.state {
			w.Errorf("D-I4, P-7: round %d: state %q, want %q", n, got, want.state)
		}
		if got := member(all[n].Params, "inputResponses"); got != want.responses && !same(got, want.responses) {
			w.Errorf("D-I6: round %d: %s", n, got)
		}
	}
	return via("each asked in turn, within the one call")
}
