package translate

import (
	"testing"

	"github.com/mcpbridge/bridge/rawjson"
)

const bridgeMeta = `"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}`

func TestParams(t *testing.T) {
	tests := []struct {
		rule, method, in, want string
		env                    Envelope
	}{
		{rule: "B-3 params are created", method: "tools/list", in: ``, want: `{"_meta":{` + bridgeMeta + `}}`},
		{rule: "B-3 empty params", method: "tools/list", in: `{}`, want: `{"_meta":{` + bridgeMeta + `}}`},
		{
			rule: "B-4 the bridge's keys are replaced, the client's stay", method: "tools/call",
			in:   `{"_meta":{"io.modelcontextprotocol/logLevel":"debug","traceparent":"00-1","io.modelcontextprotocol/serverInfo":{},"x.y/z": 1.0},"name":"a"}`,
			want: `{"_meta":{"traceparent":"00-1","x.y/z": 1.0,` + bridgeMeta + `},"name":"a"}`,
		},
		{
			rule: "B-4 escaped spelling of a key does not pass", method: "tools/call",
			in:   `{"_meta":{"io.modelcontextprotocol\/clientCapabilities":{"sampling":{}},"\u0070rogressToken":1},"name":"a"}`,
			want: `{"_meta":{` + bridgeMeta + `},"name":"a"}`,
		},
		{
			rule: "B-4 a _meta that is no object is replaced", method: "tools/call",
			in: `{"_meta":null,"name":"a"}`, want: `{"_meta":{` + bridgeMeta + `},"name":"a"}`,
		},
		{
			rule: "B-5 the token is the bridge's", method: "tools/call", env: Envelope{ProgressToken: []byte(`"p1-0"`)},
			in:   `{"name":"a","_meta":{"progressToken":0}}`,
			want: `{"name":"a","_meta":{"progressToken":"p1-0",` + bridgeMeta + `}}`,
		},
		{
			rule: "B-6, A-20, A-5", method: "tools/call", in: `{"name":"a"}`,
			env: Envelope{LogLevel: "info", ClientInfo: []byte(`{"name":"old","version":"1"}`), Capabilities: []byte(`{"roots":{}}`)},
			want: `{"name":"a","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"old","version":"1"},` +
				`"io.modelcontextprotocol/clientCapabilities":{"roots":{}},"io.modelcontextprotocol/logLevel":"info"}}`,
		},
		{
			rule: "B-7 task, answers and state are not the client's to send", method: "tools/call",
			in:   `{"task":{"ttl":1},"name":"a","inputResponses":{},"arguments":{"task":1,"requestState":2},"requestState":"s"}`,
			want: `{"name":"a","arguments":{"task":1,"requestState":2},"_meta":{` + bridgeMeta + `}}`,
		},
		{
			rule: "B-7 a vendor's task is the vendor's", method: "acme/run",
			in: `{"task":{},"cursor":null}`, want: `{"task":{},"cursor":null,"_meta":{` + bridgeMeta + `}}`,
		},
		{
			rule: "B-8 bytes stay", method: "tools/call",
			in:   ` { "name" : "a\u002f\ud800", "arguments":{"n":9007199254740993, "m":1.50}, "cursor":"" } `,
			want: ` { "name" : "a\u002f\ud800", "arguments":{"n":9007199254740993, "m":1.50}, "cursor":"","_meta":{` + bridgeMeta + `} } `,
		},
		{rule: "B-8 cursor null", method: "tools/list", in: `{"cursor":null}`, want: `{"_meta":{` + bridgeMeta + `}}`},
		{rule: "B-32 the empty cursor is one", method: "tools/list", in: `{"cursor":""}`, want: `{"cursor":"","_meta":{` + bridgeMeta + `}}`},
		{
			rule: "D.4, D-I3 the state is the raw token", method: "tools/call", in: `{"name":"a"}`,
			env:  Envelope{InputResponses: []byte(`{"c":{"action":"accept"}}`), RequestState: []byte(`"Zm9v\u002b\ud800"`)},
			want: `{"name":"a","_meta":{` + bridgeMeta + `},"inputResponses":{"c":{"action":"accept"}},"requestState":"Zm9v\u002b\ud800"}`,
		},
		{
			rule: "D-I4 an empty state is present", method: "tools/call", in: `{"name":"a","_meta":{"a":1}}`,
			env:  Envelope{RequestState: []byte(`""`)},
			want: `{"name":"a","_meta":{"a":1,` + bridgeMeta + `},"requestState":""}`,
		},
		{
			rule: "D.4 without params", method: "tools/call", in: ``,
			env: Envelope{RequestState: []byte(`"s"`)}, want: `{"_meta":{` + bridgeMeta + `},"requestState":"s"}`,
		},
		{
			rule: "A-21 the version of the upstream", method: "tools/list", in: ``, env: Envelope{Version: "2026-06-30"},
			want: `{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-06-30","io.modelcontextprotocol/clientCapabilities":{}}}`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.rule, func(t *testing.T) {
			tt.env.Method = tt.method
			got := Params([]byte("x"), []byte(tt.in), &tt.env)
			if string(got) != "x"+tt.want {
				t.Errorf("Params(%s)\n got %s\nwant %s", tt.in, got[1:], tt.want)
			}
			if err := rawjson.Validate(got[1:]); err != nil {
				t.Error(err)
			}
		})
	}
}

// D-I2: every round starts from the same params.
func TestParamsLeavesItsArgumentAlone(t *testing.T) {
	in := []byte(`{"name":"a","_meta":{"progressToken":1},"task":{}}`)
	keep := string(in)
	Params(nil, in, &Envelope{})
	if string(in) != keep {
		t.Errorf("params became %s", in)
	}
}
