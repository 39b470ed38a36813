package compat

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/mcpbridge/bridge/internal/mount"
)

var questions = group{"Questions to the client in the middle of a call", []feature{
	{name: "A form, in a tool call", rules: "A-18, C-33, C-36, D-T4, D-T12, D-I1, D-I2, D-I3, D-I5, D-I7, J-6", kinds: "NNTT", run: formIn("tools/call", `{"name":"t","arguments":{"n":9007199254740993}}`, `{"content":[]}`)},
	{name: "A form, in `prompts/get`", rules: "D-12", kinds: "NNTT", run: formIn("prompts/get", `{"name":"p"}`, `{"messages":[]}`)},
	{name: "A form, in `resources/read`", rules: "D-12", kinds: "NNTT", run: formIn("resources/read", `{"uri":"u:1"}`, `{"contents":[]}`)},
	{name: "Declined or dismissed forms", rules: "C.9, C-36", kinds: "NNTT", run: declined},
	{name: "Form with an `enum`", rules: "C.5", kinds: "NNTT", run: field(`{"type":"string","enum":["a","b"]}`, `"a"`, `"a"`,
		`{"type":"string","enum":["a","b"]}`, "as it is", "")},
	{name: "Form with a titled enum", rules: "C.5", kinds: "NNTT", run: field(`{"type":"string","oneOf":[{"const":"a","title":"A"},{"const":"b","title":"B"}],"default":"a"}`, `"b"`, `"b"`,
		`{"type":"string","enum":["a","b"],"enumNames":["A","B"],"default":"a"}`, "as `enum` and `enumNames`", "as it is")},
	{name: "Form with a multi-select", rules: "C.5, C-26, J-5, Q12", kinds: "NNTT", run: multiSelect},
	{name: "Form with defaults", rules: "C.4", kinds: "NNTT", run: field(`{"type":"string","default":"x"}`, `"y"`, `"y"`, `{"type":"string","default":"x"}`, "as it is", "")},
	{name: "A web page (URL elicitation)", rules: "C-27, C-29, C-30, C-32, J-6, J-9", kinds: "NNNT", run: webPage},
	{name: "The client's roots", rules: "C.8, D-T4", kinds: "TTTT", run: roots},
	{name: "Several inputs in one round", rules: "C-36, D-I4, D-I7", kinds: "TTTT", run: severalInputs},
	{name: "Two rounds", rules: "D-I1, D-I2, D-I4, D-I6, C-38", kinds: "TTTT", run: twoRounds},
	{name: "A round without a question (state only)", rules: "D-T5, D-T15, D-I3, D-16", kinds: "TTTT", run: stateOnly},
	{name: "An error instead of an answer, to a form", rules: "C.9, F.3, J-4", kinds: "NNTT", run: errorToForm},
	{name: "An error instead of an answer, to roots", rules: "C-34, F.3, D-T14, J-4", kinds: "TTTT", run: errorToRoots},
	{name: "No answer at all, to a form", rules: "C.9, C-35, F.3", kinds: "NNTT", options: impatient, run: noAnswerToForm},
	{name: "No answer at all, to roots or sampling", rules: "C.9, C-35, F.3", kinds: "TTTT", options: impatient, run: noAnswerToOthers},
	{name: "A client that takes only JSON", rules: "A-18, J-10, E-5", kinds: "TTTT", run: jsonOnly},
	{name: "A server that asks for what was not declared", rules: "C-33, C-34", kinds: "TTTT", run: undeclared},
}}

// asking answers a request with one input request, as long as the client can
// be asked, and with done when the answers are there. A client that cannot is
// told what it lacks, which is what a modern server does.
func asking(capability, key, request, done string) answer {
	return func(x *incoming) {
		switch {
		case member(x.Params, "inputResponses") != "":
			x.result(`{"resultType":"complete",` + done[1:])
		case member([]byte(x.meta("clientCapabilities")), capability) == "":
			x.fail(-32021, "the client lacks "+capability, `{"requiredCapabilities":{"`+capability+`":{}}}`)
		default:
			x.result(`{"resultType":"input_required","inputRequests":{` + key + `:` + request + `},"requestState":"s\u0074\ud800"}`)
		}
	}
}

const formSchema = `{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`

func form(schema string) string {
	return `{"method":"elicitation/create","params":{"mode":"form","message":"How many?","requestedSchema":` + schema + `}}`
}

func rootsFirst(done string) answer { return asking("roots", `"r"`, `{"method":"roots/list"}`, done) }

// told is the outcome for clients that cannot be asked: the failure says so.
func (w *world) told(x *exchange, part string) cell {
	w.Helper()
	text, how := "", "the call fails and says what the client lacks"
	if e := x.response.Error; e != nil {
		if e.Code != -32603 || member(e.Data, "bridge", "requiredCapabilities") == "" {
			w.Errorf("F.2: %s", x.response.Text)
		}
		text, how = e.Message, "an error that says what the client lacks"
	} else {
		expect(w.T, "F.2", member(x.response.Result, "isError"), `true`)
		text = string(x.response.Result)
	}
	if !strings.Contains(text, part) {
		w.Errorf("F.2: %q does not say %q", text, part)
	}
	if len(w.client.asked) > 0 {
		w.Errorf("C-33: the client was asked %s", w.client.asked[0].Text)
	}
	return lacks(how)
}

func formIn(method, params, done string) func(*world) cell {
	return func(w *world) cell {
		w.server.on(method, asking("elicitation", `"k\u0065y"`, form(formSchema), done))
		w.client.answers["elicitation/create"] = func(string) string { return `{"action":"accept","content":{"n":3,"x":null},"_meta":{"m":1}}` }
		x := w.client.call(method, params)
		if x.response.Error != nil || member(x.response.Result, "isError") != "" {
			return w.told(x, "asking the user questions").unless(w.onPage(method, params, form(formSchema), done, "n=3&action=accept", `{"action":"accept","content":{"n":3}}`))
		}
		expect(w.T, "the result", string(x.response.Result), done)
		w.retried(method, `{"key":{"action":"accept","content":{"n":3}}}`)
		asked := w.client.asked[0]
		return w.which("the question", string(asked.Params),
			outcome{via("asked as `elicitation/create`"), `{"message":"How many?","requestedSchema":` + formSchema + `}`},
			outcome{via("asked as `elicitation/create`"), `{"mode":"form","message":"How many?","requestedSchema":` + formSchema + `}`})
	}
}

// retried checks the retry of a request against the request: the same params,
// this round's answers, the state byte for byte, a new id (which the server
// checks).
func (w *world) retried(method, responses string) {
	w.Helper()
	all := w.server.requests(method)
	first, last := all[0], all[len(all)-1]
	if len(all) != 2 {
		w.Fatalf("%d requests", len(all))
	}
	for _, name := range []string{"name", "uri", "arguments"} { // D-I2: byte for byte
		if a, b := member(first.Params, name), member(last.Params, name); a != b {
			w.Errorf("D-I2: %s was %s, then %s", name, a, b)
		}
	}
	if got := member(last.Params, "requestState"); got != `"s\u0074\ud800"` {
		w.Errorf("D-I3: the state came back as %s", got)
	}
	expect(w.T, "D-I6, D-I7", member(last.Params, "inputResponses"), responses)
	expect(w.T, "D-I12", last.meta("clientCapabilities"), first.meta("clientCapabilities"))
	if member(first.Params, "inputResponses") != "" || member(first.Params, "requestState") != "" {
		w.Errorf("D.4: round 0 carries %s", first.Params)
	}
	if text := w.log.String(); strings.Contains(text, `s\u0074`) || strings.Contains(text, "How many") {
		w.Errorf("D-I5, H-11: the log tells payloads: %s", text)
	}
}

func declined(w *world) cell {
	w.server.on("tools/call", asking("elicitation", `"k"`, form(formSchema), `{"content":[]}`))
	var x *exchange
	for _, action := range []string{"decline", "cancel", "reject"} {
		w.client.answers["elicitation/create"] = func(string) string { return `{"action":"` + action + `","content":{"n":1}}` }
		if x = w.client.call("tools/call", `{"name":"t"}`); member(x.response.Result, "isError") != "" {
			w.toolOnPage(form(formSchema), "action=cancel", `{"action":"cancel"}`)
			return w.told(x, "asking the user questions").unless(w.toolOnPage(form(formSchema), "action=decline", `{"action":"decline"}`))
		}
		want := map[string]string{"decline": "decline", "cancel": "cancel", "reject": "decline"}[action]
		expect(w.T, "C.9", member(w.server.last("tools/call").Params, "inputResponses"), `{"k":{"action":"`+want+`"}}`)
	}
	return via("the server is told which, and decides")
}

// field is the row of a form with one field: how the client sees it, and what
// its answer becomes. old is how 2025-06-18 has it, which others have as it is.
func field(schema, answer, up, old, oldHow, newHow string) func(*world) cell {
	return func(w *world) cell {
		w.server.on("tools/call", asking("elicitation", `"k"`, form(`{"type":"object","properties":{"f":`+schema+`}}`), `{"content":[]}`))
		w.client.answers["elicitation/create"] = func(string) string { return `{"action":"accept","content":{"f":` + answer + `}}` }
		x := w.client.call("tools/call", `{"name":"t"}`)
		if member(x.response.Result, "isError") != "" {
			return w.told(x, "asking the user questions").unless(w.toolOnPage(form(`{"type":"object","properties":{"f":`+schema+`}}`),
				"f="+strings.Trim(answer, `"`)+"&action=accept", `{"action":"accept","content":{"f":`+up+`}}`))
		}
		expect(w.T, "the answer", member(w.server.last("tools/call").Params, "inputResponses"), `{"k":{"action":"accept","content":{"f":`+up+`}}}`)
		got := member(w.client.asked[0].Params, "requestedSchema", "properties", "f")
		if newHow == "" {
			newHow = oldHow
		}
		if w.before("2025-11-25") {
			return w.which("the field", got, outcome{via(oldHow), old})
		}
		return w.which("the field", got, outcome{via(newHow), schema})
	}
}

func multiSelect(w *world) cell {
	schema := `{"type":"object","properties":{"f":{"type":"array","title":"Days","minItems":1,"items":{"anyOf":[{"const":"mo","title":"Monday"},{"const":"tu","title":"Tuesday"}]}}},"required":["f"]}`
	w.server.on("tools/call", asking("elicitation", `"k"`, form(schema), `{"content":[]}`))
	w.client.answers["elicitation/create"] = func(params string) string {
		if strings.Contains(params, `"f__1"`) {
			return `{"action":"accept","content":{"f__1":false,"f__2":true}}`
		}
		return `{"action":"accept","content":{"f":["tu"]}}`
	}
	x := w.client.call("tools/call", `{"name":"t"}`)
	if member(x.response.Result, "isError") != "" {
		return w.told(x, "asking the user questions").unless(w.toolOnPage(form(schema), "f=mo&f=tu&action=accept", `{"action":"accept","content":{"f":["mo","tu"]}}`))
	}
	expect(w.T, "C-26", member(w.server.last("tools/call").Params, "inputResponses"), `{"k":{"action":"accept","content":{"f":["tu"]}}}`)
	return w.which("the form", member(w.client.asked[0].Params, "requestedSchema"),
		outcome{via("as it is"), schema},
		outcome{via("one boolean per option"), `{"type":"object","properties":{"f__1":{"type":"boolean","title":"Monday","description":"Days: choose at least 1."},` +
			`"f__2":{"type":"boolean","title":"Tuesday","description":"Days: choose at least 1."}},"required":[]}`})
}

var uuid4 = regexp.MustCompile(`^"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"$`)

func webPage(w *world) cell {
	page := `{"method":"elicitation/create","params":{"mode":"url","message":"Sign in","url":"https://example.com/in?x=1#y"}}`
	ask := asking("elicitation", `"k"`, page, `{"content":[]}`)
	w.server.on("tools/call", func(x *incoming) {
		caps := []byte(x.meta("clientCapabilities"))
		if elicitation := member(caps, "elicitation"); member(x.Params, "inputResponses") == "" && member([]byte(elicitation), "url") == "" {
			x.fail(-32021, "needs a browser", `{"requiredCapabilities":{"elicitation":{"url":{}}}}`)
			return
		}
		ask(x)
	})
	w.client.answers["elicitation/create"] = func(string) string { return `{"action":"accept","content":{"a":1}}` }
	x := w.client.call("tools/call", `{"name":"t"}`)
	if member(x.response.Result, "isError") != "" {
		return w.told(x, "sending the user to a web page").unless(w.toolOnPage(page, "action=accept", `{"action":"accept"}`))
	}
	params := w.client.asked[0].Params
	id := member(params, "elicitationId")
	if !uuid4.MatchString(id) {
		w.Errorf("C-27: elicitationId %s", id)
	}
	expect(w.T, "C-27, C-28", string(params), `{"mode":"url","message":"Sign in","url":"https://example.com/in?x=1#y","elicitationId":`+id+`}`)
	w.retried("tools/call", `{"k":{"action":"accept"}}`) // C-29
	done := x.notified("notifications/elicitation/complete")
	if len(done) != 1 {
		w.Fatalf("C-32: %d completions before the response", len(done))
	}
	expect(w.T, "C-32", string(done[0].Params), `{"elicitationId":`+id+`}`)
	// Who declines has opened nothing: nothing is remembered, nothing completed.
	w.client.answers["elicitation/create"] = func(string) string { return `{"action":"decline"}` }
	w.server.on("tools/call", ask, result(`{"resultType":"input_required","inputRequests":{"k":`+page+`}}`), result(`{"resultType":"complete","content":[]}`))
	if y := w.client.call("tools/call", `{"name":"t"}`); len(y.notified("notifications/elicitation/complete")) != 0 || len(w.client.asked) != 3 {
		w.Errorf("C-31, C-32: %d completions, %d questions", len(y.before), len(w.client.asked))
	}
	if strings.Contains(w.log.String(), "example.com/in") {
		w.Errorf("C-28: the log tells the address: %s", w.log)
	}
	return via("asked with an `elicitationId` of the bridge; its completion is told")
}

func roots(w *world) cell {
	// M-5: a stray id in the entry means nothing.
	w.server.on("tools/call", asking("roots", `"r"`, `{"id":1,"method":"roots/list","params":{"_meta":{"a":1}}}`, `{"content":[]}`))
	n := 0
	w.client.answers["roots/list"] = func(params string) string {
		if params != "" {
			w.Errorf("C.8: params %s", params)
		}
		n++
		return fmt.Sprintf(`{"roots":[{"uri":"file:///%d","name":"r"}],"_meta":{"m":1}}`, n)
	}
	for round := 1; round <= 2; round++ { // an answer is never remembered
		w.client.call("tools/call", `{"name":"t"}`)
		expect(w.T, "C.8", member(w.server.last("tools/call").Params, "inputResponses"),
			fmt.Sprintf(`{"r":{"roots":[{"uri":"file:///%d","name":"r"}]}}`, round))
	}
	return via("asked as `roots/list`")
}

// severalInputs: all that the revision can be asked, in one round; all answers
// come back together.
func severalInputs(w *world) cell {
	requests := `"r":{"method":"roots/list"},"s":{"method":"sampling/createMessage","params":{"messages":[],"maxTokens":1}}`
	responses, how := `"r":{"roots":[]},"s":{"role":"assistant","model":"m","content":{"type":"text","text":"x"}}`, "roots and sampling"
	if !w.before("2025-06-18") {
		requests += `,"f1":` + form(formSchema) + `,"f2":` + form(formSchema)
		responses, how = responses+`,"f1":{"action":"decline"},"f2":{"action":"accept","content":{"n":1}}`, "roots and sampling at once, forms one after another"
	}
	w.server.on("tools/call", func(x *incoming) {
		if member(x.Params, "inputResponses") != "" {
			x.result(`{"resultType":"complete","content":[]}`)
			return
		}
		x.result(`{"resultType":"input_required","inputRequests":{` + requests + `}}`)
	})
	forms := []string{`{"action":"decline"}`, `{"action":"accept","content":{"n":1}}`}
	w.client.answers["roots/list"] = func(string) string { return `{"roots":[]}` }
	w.client.answers["sampling/createMessage"] = func(string) string {
		return `{"role":"assistant","model":"m","content":{"type":"text","text":"x"}}`
	}
	w.client.answers["elicitation/create"] = func(string) string {
		next := forms[0] // a declined form does not stop the other (C-36)
		forms = forms[1:]
		return next
	}
	w.client.call("tools/call", `{"name":"t"}`)
	expect(w.T, "C-36", member(w.server.last("tools/call").Params, "inputResponses"), `{`+responses+`}`)
	if got := member(w.server.last("tools/call").Params, "requestState"); got != "" {
		w.Errorf("D-I4: a state came up from nowhere: %s", got)
	}
	return via(how)
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
