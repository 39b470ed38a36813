package dialect

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mcpbridge/bridge/jsonrpc"
)

func TestDialectResult(t *testing.T) {
	on, off := forms{On: true}, forms{}
	const requests = `"inputRequests":{"a":{"method":"elicitation/create","params":{}}}`
	tests := []struct {
		rule   string
		d      forms
		method string
		in     string
		want   string // "=": untouched
	}{
		{"I-4 W1 no marker", on, "tools/call", `{` + requests + `}`, `{` + requests + `,"resultType":"input_required"}`},
		{"I-4 W1 state alone", on, "prompts/get", `{"requestState":""}`, `{"requestState":"","resultType":"input_required"}`},
		{"I-4 W2 status", on, "resources/read", `{"status":"incomplete",` + requests + `}`, `{` + requests + `,"resultType":"input_required"}`},
		{"I-4 W2 lists", on, "tools/list", `{"status":"incomplete",` + requests + `}`, `{` + requests + `,"resultType":"input_required"}`},
		{"I-4 W3 result_type", on, "tools/call", `{"result_type":"incomplete",` + requests + `}`, `{` + requests + `,"resultType":"input_required"}`},
		{"I-4 W3 complete", on, "tools/call", `{"result_type":"complete","content":[]}`, `{"content":[]}`},
		{"I-4 W4 resultType", on, "tools/call", `{"resultType":"incomplete","requestState":"s\ud800"}`, `{"resultType":"input_required","requestState":"s\ud800"}`},
		{"I-4 W5 final", on, "tools/call", `{"resultType":"input_required","requestState":"s"}`, `=`},
		{"I-4 a marker decides", on, "tools/call", `{"resultType":"complete",` + requests + `}`, "="},
		{"I-4 a payload decides", on, "tools/call", `{"content":[],` + requests + `}`, "="},
		{"I-4 a payload decides, whatever the status", on, "tools/call", `{"content":[],"status":"incomplete"}`, "="},
		{"I-4 foreign inputRequests", on, "tools/call", `{"inputRequests":{"a":{"method":"x"}}}`, "="},
		{"I-4 other methods", on, "completion/complete", `{` + requests + `}`, "="},
		{"I-3 shape alone is no evidence", off, "tools/call", `{"status":"incomplete",` + requests + `}`, "="},
		{"I-5 outside of the dialect", off, "tools/call", `{"resultType":"incomplete"}`, "="},
		{"I-9 seconds", on, "tools/list", `{"tools":[],"ttl":1.5}`, `{"tools":[],"ttlMs":1500}`},
		{"I-9 final name wins", on, "tools/list", `{"tools":[],"ttl":1,"ttlMs":2}`, "="},
		{"I-9 off", off, "tools/list", `{"tools":[],"ttl":1}`, "="},
		{"I-2 nested task", off, "tools/call", `{"resultType":"task","task":{"taskId":"t","status":"working"}}`, `{"resultType":"task","taskId":"t","status":"working"}`},
		{"I-2 a tool's own task member", off, "tools/call", `{"content":[],"task":{"taskId":"t"}}`, "="},
		{"I-2 tasks/get labelled task", off, "tasks/get", `{"resultType":"task","taskId":"t","status":"failed"}`, `{"resultType":"complete","taskId":"t","status":"failed"}`},
		{"I-2 tasks/get nests a labelled task", off, "tasks/get", `{"task":{"resultType":"task","taskId":"t"}}`, `{"taskId":"t","resultType":"complete"}`},
		{"I-9 task durations", on, "tasks/get", `{"taskId":"t","ttlSeconds":60,"pollIntervalMilliseconds":500}`, `{"taskId":"t","ttlMs":60000,"pollIntervalMs":500}`},
		{"I-14 a bare task", on, "tools/call", `{"task":{"taskId":"t","status":"working","pollInterval":100}}`, `{"resultType":"task","taskId":"t","status":"working","pollIntervalMs":100}`},
		{"I-14 a bare task off", off, "tools/call", `{"task":{"taskId":"t","status":"working"}}`, "="},
		{"I-14 a tool's own task", on, "tools/call", `{"content":[],"task":{"taskId":"t","status":"working"}}`, "="},
		{"I-14 tasks in the core", on, "server/discover", `{"capabilities":{"tasks":{}}}`, `{"capabilities":{"tasks":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}}`},
		{"I-14 tasks in the core off", off, "server/discover", `{"capabilities":{"tasks":{}}}`, "="},
		{"I-4 a marker inside of a task", on, "tasks/get", `{"taskId":"t","result":{"result_type":"complete","content":[]}}`, `{"taskId":"t","result":{"content":[]}}`},
		{"I-9 nested draft task", on, "tools/call", `{"resultType":"task","task":{"taskId":"t","ttl":60,"pollInterval":500}}`, `{"resultType":"task","taskId":"t","ttl":60,"pollIntervalMs":500}`},
	}
	for _, tt := range tests {
		t.Run(tt.rule, func(t *testing.T) {
			want := tt.want
			if want == "=" {
				want = tt.in
			}
			if got := tt.d.Result(tt.method, []byte(tt.in)); string(got) != want {
				t.Errorf("got %s, want %s", got, want)
			}
		})
	}
}

func TestDialectErrors(t *testing.T) {
	on := forms{On: true}
	tests := []struct {
		rule   string
		d      forms
		status int
		e      jsonrpc.Error
		want   int
	}{
		{"I-7 version", on, 400, jsonrpc.Error{Code: -32004, Data: []byte(`{"supported":["a"],"requested":"b"}`)}, -32022},
		{"I-7 version without shape", on, 400, jsonrpc.Error{Code: -32004}, -32004},
		{"I-7 version as invalid params", on, 400, jsonrpc.Error{Code: -32602, Data: []byte(`{"supported":["a"],"requested":"2026-07-28"}`)}, -32022},
		{"I-7 invalid params", on, 400, jsonrpc.Error{Code: -32602, Data: []byte(`{"supported":["a"],"requested":"b"}`)}, -32602},
		{"I-7 capability", on, 0, jsonrpc.Error{Code: -32003, Data: []byte(`{"requiredCapabilities":{}}`)}, -32021},
		{"I-7 capability without shape", on, 0, jsonrpc.Error{Code: -32003, Data: []byte(`[]`)}, -32003},
		{"I-7 header", on, 400, jsonrpc.Error{Code: -32001, Message: "Header mismatch"}, -32020},
		{"I-7 timeout of an SDK", on, 200, jsonrpc.Error{Code: -32001, Message: "Request timed out"}, -32001},
		{"I-3 off", forms{}, 400, jsonrpc.Error{Code: -32004, Data: []byte(`{"supported":[],"requested":"b"}`)}, -32004},
	}
	for _, tt := range tests {
		if got := tt.d.Error(tt.status, &tt.e); got.Code != tt.want {
			t.Errorf("%s: %d, want %d", tt.rule, got.Code, tt.want)
		}
	}
}

func TestNewests(t *testing.T) {
	for list, want := range map[string]string{
		`["2026-07-28","2025-11-25"]`:       "",
		`["DRAFT-2026-v1"]`:                 "DRAFT-2026-v1",
		`["2026-06-30","DRAFT-2026-v1"]`:    "2026-06-30",
		`["2026-06-XX","2026-03-01","x",1]`: "2026-06-XX",
	} {
		if got := Newest([]byte(list)); got != want || speaksDraft([]byte(list)) != (want != "") {
			t.Errorf("I-8: Newest(%s) = %q, want %q", list, got, want)
		}
	}
}

func TestDialectAnswers(t *testing.T) {
	in := `{"a":{"action":"accept"},"b":{"roots":[]}}`
	if got := (forms{}).InputResponses([]byte(in)); string(got) != in {
		t.Errorf("I-6: %s", got)
	}
	want := `{"a":{"result":{"action":"accept"}},"b":{"result":{"roots":[]}}}`
	if got := (forms{WrapAnswers: true}).InputResponses([]byte(in)); string(got) != want {
		t.Errorf("I-6: %s", got)
	}
	if got := (forms{WrapAnswers: true}).InputResponses(nil); got != nil {
		t.Errorf("D-I4: %s", got)
	}
}

// A task of many members is unfolded in one pass: it took hours where each of them was looked for among all others.
func TestATaskOfManyMembersIsUnfolded_I2(t *testing.T) {
	var members strings.Builder
	for k := range 1 << 18 {
		fmt.Fprintf(&members, `,"m%d":0`, k)
	}
	for _, d := range []forms{{}, {On: true}} {
		got := d.Result("tools/call", []byte(`{"resultType":"task","task":{"taskId":"t"`+members.String()+`}}`))
		if want := `{"resultType":"task","taskId":"t"` + members.String() + `}`; string(got) != want {
			t.Errorf("%+v: %d bytes, want %d", d, len(got), len(want))
		}
	}
}
