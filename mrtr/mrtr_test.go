package mrtr

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/rawjson"
)

const everyCapability = `{"elicitation":{"form":{},"url":{}},"sampling":{"tools":{}},"roots":{}}`

func newFlow() *Flow {
	return &Flow{Method: mcp.MethodToolsCall, Capabilities: []byte(everyCapability)}
}

// noon is when everything happens in these tests.
var noon = time.Date(2026, 7, 28, 12, 0, 0, 0, time.UTC)

func step(f *Flow, ev Event) Action { return f.Step(ev, Moment{Now: noon, Luck: .5}) }

// lapse lets the flow's pause end.
func lapse(f *Flow) Action { return f.Step(Tick(true), Moment{Now: f.Clock.Due, Luck: .5}) }

// sending returns a flow with round 0 in flight.
func sending(t *testing.T) *Flow {
	t.Helper()
	f := newFlow()
	if act := step(f, Started()); act.Do != Send || f.State != Sending {
		t.Fatalf("started: %v in state %q", act.Do, f.State)
	}
	return f
}

// outcome is the event of a result of whatever type it says.
func outcome(raw []byte) Event { return Result(raw, string(rawjson.Get(raw, "resultType"))) }

func form(key string) string {
	return `"` + key + `":{"method":"elicitation/create","params":{"message":"` + key + `?","requestedSchema":{"type":"object","properties":{}}}}`
}

func urlQuestion(key, url string) string {
	return `"` + key + `":{"method":"elicitation/create","params":{"mode":"url","message":"go","url":"` + url + `"}}`
}

const (
	sampling = `"s":{"method":"sampling/createMessage","params":{"messages":[],"maxTokens":1}}`
	roots    = `"r":{"method":"roots/list"}`
	accept   = `{"action":"accept","content":{}}`
)

func required(requests ...string) []byte {
	return []byte(`{"resultType":"input_required","inputRequests":{` + strings.Join(requests, ",") + `}}`)
}

func keys(inputs []*Input) string {
	var names []string
	for _, in := range inputs {
		names = append(names, in.Key)
	}
	return strings.Join(names, ",")
}

func expect(t *testing.T, act Action, do Verb, ask string) {
	t.Helper()
	if act.Do != do || keys(act.Ask) != ask {
		t.Fatalf("got verb %d asking %q, want %d asking %q (err %v)", act.Do, keys(act.Ask), do, ask, act.Err)
	}
}

func TestCompleteResultEndsTheFlow_DT3(t *testing.T) {
	for _, result := range []string{`{"content":[]}`, `{"resultType":"complete","inputRequests":{},"requestState":"x"}`} {
		f := sending(t)
		expect(t, step(f, outcome([]byte(result))), Deliver, "")
		if f.State != Done {
			t.Fatalf("state %q", f.State)
		}
		expect(t, step(f, outcome([]byte(result))), Nothing, "") // D-T21
	}
}

func TestTwoRoundsCarryOnlyTheLatest_DI4_DI6(t *testing.T) {
	f := sending(t)
	first := `{"resultType":"input_required","requestState":"a\u002b","inputRequests":{` + form("one") + `}}`
	expect(t, step(f, outcome([]byte(first))), Ask, "one")
	expect(t, step(f, Answered("one", []byte(accept))), Send, "")
	if got := string(f.RequestState); got != `"a\u002b"` {
		t.Fatalf("D-I3: request state token %s", got)
	}
	if got := string(f.InputResponses()); got != `{"one":`+accept+`}` {
		t.Fatalf("responses %s", got)
	}
	expect(t, step(f, outcome(required(form("two")))), Ask, "two")
	expect(t, step(f, Answered("two", []byte(`{"action":"decline"}`))), Send, "")
	if f.RequestState != nil {
		t.Fatalf("D-I4: state of an earlier round was kept: %s", f.RequestState)
	}
	if got := string(f.InputResponses()); got != `{"two":{"action":"decline"}}` {
		t.Fatalf("D-I6: %s", got)
	}
	if f.Round != 2 {
		t.Fatalf("round %d", f.Round)
	}
}

func TestEmptyStringStateIsPresent_DI4(t *testing.T) {
	f := sending(t)
	expect(t, step(f, outcome([]byte(`{"resultType":"input_required","requestState":""}`))), Wait, "")
	if string(f.RequestState) != `""` {
		t.Fatalf("got %q", f.RequestState)
	}
}

func TestOrderOfQuestions_C37(t *testing.T) {
	f := sending(t)
	act := step(f, outcome(required(form("a"), sampling, form("b"), roots)))
	expect(t, act, Ask, "a,s,r")
	expect(t, step(f, Answered("s", []byte(`{}`))), Nothing, "")
	expect(t, step(f, Answered("a", []byte(accept))), Ask, "b")
	expect(t, step(f, Answered("a", []byte(accept))), Nothing, "") // duplicate
	expect(t, step(f, Answered("b", []byte(accept))), Nothing, "")
	expect(t, step(f, Answered("r", []byte(`{"roots":[]}`))), Send, "")
	want := `{"a":` + accept + `,"s":{},"b":` + accept + `,"r":{"roots":[]}}`
	if got := string(f.InputResponses()); got != want {
		t.Fatalf("D-I7:\n got %s\nwant %s", got, want)
	}
}

func TestStateOnlyRoundsArePacedAndBounded_DT5(t *testing.T) {
	f := sending(t)
	busy := []byte(`{"resultType":"input_required","requestState":"s","inputRequests":{}}`)
	want := []time.Duration{250, 500, 1000, 2000, 4000, 5000, 5000, 5000, 5000, 5000}
	for i, ms := range want {
		act := step(f, outcome(busy))
		if act.Do != Wait || act.For != ms*time.Millisecond {
			t.Fatalf("round %d: verb %d for %v", i, act.Do, act.For)
		}
		if f.InputResponses() != nil {
			t.Fatal("answers in a state-only round")
		}
		expect(t, lapse(f), Send, "")
	}
	act := step(f, outcome(busy))
	var limit *LimitReached
	if act.Do != Fail || !errors.As(act.Err, &limit) {
		t.Fatalf("D-I18: %v %v", act.Do, act.Err)
	}
}

func TestRoundsAreBounded_DT17(t *testing.T) {
	f := sending(t)
	for range DefaultRounds {
		expect(t, step(f, outcome(required(form("q")))), Ask, "q")
		expect(t, step(f, Answered("q", []byte(accept))), Send, "")
	}
	step(f, outcome(required(form("q"))))
	if act := step(f, Answered("q", []byte(accept))); act.Do != Fail {
		t.Fatalf("verb %d", act.Do)
	}
}

func TestViolationsEndTheFlow(t *testing.T) {
	tests := []struct{ rule, method, result string }{
		{"D-T6", mcp.MethodToolsCall, `{"resultType":"input_required"}`},
		{"D-T6", mcp.MethodToolsCall, `{"resultType":"input_required","inputRequests":{}}`},
		{"D-T6", mcp.MethodToolsCall, `{"resultType":"input_required","requestState":7}`},
		{"D-T6", mcp.MethodToolsCall, `{"resultType":"input_required","requestState":null}`},
		{"D-T6", mcp.MethodToolsCall, `{"resultType":"input_required","inputRequests":[]}`},
		{"B-27", mcp.MethodToolsCall, `{"resultType":"incomplete"}`},
		{"B-27", mcp.MethodToolsCall, `{"resultType":7}`},
		{"B-27", mcp.MethodToolsCall, `{"resultType":"task","taskId":"1"}`},
		{"D-12", mcp.MethodToolsList, `{"resultType":"input_required","requestState":"x"}`},
		{"B-30", mcp.MethodToolsCall, `[]`},
	}
	for _, test := range tests {
		f := sending(t)
		f.Method = test.method
		act := step(f, outcome([]byte(test.result)))
		var violation *Violation
		if act.Do != Fail || !errors.As(act.Err, &violation) || violation.Rule != test.rule {
			t.Errorf("%s: %v, %v; want a violation of %s", test.result, act.Do, act.Err, test.rule)
		}
	}
}

func TestOversizedStateIsRefused_DI5(t *testing.T) {
	f := sending(t)
	limits := Limits{State: 10}.WithDefaults()
	f.Limits = &limits
	act := step(f, outcome([]byte(`{"resultType":"input_required","requestState":"0123456789"}`)))
	if act.Do != Fail || strings.Contains(act.Err.Error(), "0123") {
		t.Fatalf("%v %v", act.Do, act.Err)
	}
}

func TestUndeclaredKindsRefuseTheWholeRound_C33(t *testing.T) {
	tests := []struct{ caps, request string }{
		{`{}`, form("q")},
		{`{"elicitation":{"url":{}}}`, form("q")},
		{`{"elicitation":{}}`, urlQuestion("q", "https://x")},
		{`{"elicitation":{}}`, `"q":{"method":"elicitation/create"}`},
		{`{"elicitation":{}}`, `"q":{"method":"elicitation/create","params":{"mode":"voice"}}`},
		{`{"elicitation":{}}`, sampling},
		{`{"sampling":{}}`, `"s":{"method":"sampling/createMessage","params":{"tools":[]}}`},
		{`{"sampling":{}}`, roots},
		{`{"sampling":{}}`, `"q":{"method":"ping","params":{}}`},
		{`{"sampling":{}}`, `"q":7`},
	}
	for _, test := range tests {
		f := sending(t)
		f.Capabilities = []byte(test.caps)
		act := step(f, outcome(required(test.request)))
		var abort *Abort
		if act.Do != Fail || !errors.As(act.Err, &abort) || len(act.Ask)+len(act.Withdraw) > 0 {
			t.Errorf("%s with %s: %+v", test.request, test.caps, act)
		}
	}
}

func TestMissingAnswers_C9(t *testing.T) {
	f := sending(t)
	step(f, outcome(required(form("q"))))
	expect(t, step(f, Unanswered("q", "no answer")), Send, "")
	if got := string(f.InputResponses()); got != `{"q":{"action":"cancel"}}` {
		t.Fatalf("got %s", got)
	}

	f = sending(t)
	step(f, outcome(required(sampling, form("q"), roots)))
	act := step(f, Unanswered("s", "client is broken"))
	var abort *Abort
	if act.Do != Fail || !errors.As(act.Err, &abort) || abort.Method != mcp.MethodSamplingCreateMessage {
		t.Fatalf("C-34: %+v", act)
	}
	if got := keys(act.Withdraw); got != "q,r" {
		t.Fatalf("C-35: withdrew %q", got)
	}
}

func TestCancelIsSilentAndFinal_DT13(t *testing.T) {
	f := sending(t)
	expect(t, step(f, Cancelled()), Stop, "")
	expect(t, step(f, outcome([]byte(`{}`))), Nothing, "")

	f = sending(t)
	step(f, outcome(required(form("q"))))
	act := step(f, Cancelled())
	if act.Do != Stop || keys(act.Withdraw) != "q" || f.State != Silent {
		t.Fatalf("%+v", act)
	}
	expect(t, step(f, Answered("q", []byte(accept))), Nothing, "") // it never executes afterwards
}
