package translate

import (
	"strings"
	"testing"

	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/rawjson"
)

func TestError(t *testing.T) {
	url := Rules{Version: r25c, Capabilities: []byte(`{"elicitation":{"url":{}}}`)}
	const elicitations = `{"elicitations":[{"mode":"url","elicitationId":"e","url":"a:b","message":"m"}]}`
	tests := []struct {
		rule   string
		rules  Rules
		method string
		params string
		code   int
		data   string
		want   int
		wdata  string // "=": the same
	}{
		{"F.2 -32700", Rules{}, "tools/list", ``, -32700, ``, -32603, `{"bridge":{"upstreamCode":-32700}}`},
		{"F.2 -32600", Rules{}, "tools/list", ``, -32600, `[1]`, -32603, `{"bridge":{"upstreamCode":-32600,"upstreamData":[1]}}`},
		{"F.2 -32601", Rules{}, "acme/x", ``, -32601, `{"a":1}`, -32601, "="},
		{"F.2 resource not found", Rules{}, "resources/read", `{"uri":"a:b"}`, -32602, `{"uri":"a:b"}`, -32002, `{"uri":"a:b","bridge":{"upstreamCode":-32602}}`},
		{"F.2 another uri", Rules{}, "resources/read", `{"uri":"a:b"}`, -32602, `{"uri":"a:c"}`, -32602, "="},
		{"F.2 no uri", Rules{}, "resources/read", `{}`, -32602, ``, -32602, "="},
		{"F.2 -32602 on tools", Rules{}, "tools/call", `{"uri":"a:b"}`, -32602, `{"uri":"a:b"}`, -32602, "="},
		{"F.2 -32603", Rules{}, "tools/call", ``, -32603, ``, -32603, "="},
		{"F.2 -32020", Rules{}, "tools/call", ``, -32020, ``, -32603, `{"bridge":{"upstreamCode":-32020}}`},
		{"F.2 -32022, A-15", Rules{}, "tools/call", ``, -32022, `{"supported":["2027-01-01"],"requested":"x"}`, -32603, `{"bridge":{"upstreamCode":-32022}}`},
		{"F.2 -32002", Rules{}, "resources/read", ``, -32002, `"x"`, -32002, "="},
		{"F.2 -32042 of no use", Rules{Version: r25c}, "tools/call", ``, -32042, elicitations, -32603, elicitations[:len(elicitations)-1] + `,"bridge":{"upstreamCode":-32042}}`},
		{"F.2 -32042 before 2025-11-25", Rules{Version: r25b, Capabilities: url.Capabilities}, "tools/call", ``, -32042, elicitations, -32603, elicitations[:len(elicitations)-1] + `,"bridge":{"upstreamCode":-32042}}`},
		{"F.2 -32042 without ids", url, "tools/call", ``, -32042, `{"elicitations":[{}]}`, -32603, `{"elicitations":[{}],"bridge":{"upstreamCode":-32042}}`},
		{"F.2 -32042", url, "tools/call", ``, -32042, elicitations, -32042, "="},
		{"F.2 undefined", Rules{}, "tools/call", ``, -32099, ``, -32603, `{"bridge":{"upstreamCode":-32099}}`},
		{"F-3 implementation", Rules{}, "tools/call", ``, -32001, `1`, -32001, "="},
		{"F-3 application", Rules{}, "tools/call", ``, 7, ``, 7, "="},
		{"F.2 -32021 of a prompt", Rules{Version: r24}, "prompts/get", ``, -32021, `{"requiredCapabilities":{"roots":{}}}`, -32603, `{"bridge":{"upstreamCode":-32021,"requiredCapabilities":{"roots":{}}}}`},
	}
	for _, tt := range tests {
		t.Run(tt.rule, func(t *testing.T) {
			in := &jsonrpc.Error{Code: tt.code, Message: "msg"}
			if tt.data != "" {
				in.Data = []byte(tt.data)
			}
			result, out := tt.rules.Error(tt.method, []byte(tt.params), in)
			if result != nil || out == nil {
				t.Fatalf("result %s", result)
			}
			want := tt.wdata
			if want == "=" {
				want = tt.data
			}
			if out.Code != tt.want || string(out.Data) != want {
				t.Errorf("got %d %s, want %d %s", out.Code, out.Data, tt.want, want)
			}
		})
	}
	_, out := Rules{}.Error("tools/list", nil, &jsonrpc.Error{Code: -32602, Message: "missing io.modelcontextprotocol/clientInfo"})
	if out.Code != -32603 {
		t.Errorf("F.2 a defect of the bridge: %v", out)
	}
	_, out = Rules{}.Error("tools/list", nil, &jsonrpc.Error{Code: -32022, Data: []byte(`{"supported":["2027-01-01"]}`)})
	if !strings.Contains(out.Message, "2027-01-01") {
		t.Errorf("A-24: %v", out)
	}
}

// F.2: a missing capability tells a person and a model what to do.
func TestMissingCapabilityIsAToolError(t *testing.T) {
	tests := []struct{ data, says string }{
		{`{"requiredCapabilities":{"elicitation":{}}}`, "asking the user questions (capability elicitation), which needs MCP 2025-06-18 or newer"},
		{`{"requiredCapabilities":{"elicitation":{"url":{}}}}`, "web page"},
		{`{"requiredCapabilities":{"sampling":{},"roots":{}}}`, "sampling: letting the server use the client's model and roots"},
		{`{"requiredCapabilities":{"sampling":{"tools":{}}}}`, "2025-11-25 or newer"},
		{`{"requiredCapabilities":{"extensions":{"acme/x":{}},"other":{}}}`, "the extension acme/x and the capability other"},
		{`{}`, "did not name"},
	}
	for _, tt := range tests {
		result, out := Rules{Version: r24}.Error("tools/call", nil, &jsonrpc.Error{Code: -32021, Data: []byte(tt.data)})
		if out != nil || string(rawjson.Get(result, "isError")) != "true" || !strings.Contains(string(result), tt.says) {
			t.Errorf("%s: %s %v", tt.data, result, out)
		}
		required := rawjson.Get([]byte(tt.data), "requiredCapabilities")
		if got := rawjson.Get(rawjson.Get(result, "_meta"), metaRequired); string(got) != string(required) {
			t.Errorf("%s: _meta %s", tt.data, got)
		}
		conforms(t, r24, "CallToolResult", result)
	}
}

func TestToolError(t *testing.T) {
	got := ToolError("a \"b\"\n<c>")
	if want := `{"content":[{"type":"text","text":"a \"b\"\n<c>"}],"isError":true}`; string(got) != want {
		t.Errorf("got %s", got)
	}
}
