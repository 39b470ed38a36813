package compat

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	askform "github.com/mcpbridge/bridge/ask/form"
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
			return w.told(x, "asking the user questions").unless(w.onPage(method, params, form(formSchema), done, "f0=3&action=accept", `{"action":"accept","content":{"n":3}}`))
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
				"f0="+onPage(schema, strings.Trim(answer, `"`))+"&action=accept", `{"action":"accept","content":{"f":`+up+`}}`))
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

// onPage is a value of a field as its page submits it: an option by its number.
func onPage(schema, value string) string {
	asked, _ := askform.Parse([]byte(`{"properties":{"f":` + schema + `}}`))
	for i, o := range asked.Fields[0].Options {
		if o.Value == value {
			return strconv.Itoa(i)
		}
	}
	return value
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
		return w.told(x, "asking the user questions").unless(w.toolOnPage(form(schema), "f0=0&f0=1&action=accept", `{"action":"accept","content":{"f":["mo","tu"]}}`))
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
