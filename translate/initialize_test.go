package translate

import (
	"testing"

	"github.com/mcpbridge/bridge/mcp"
)

func TestInitializeResult(t *testing.T) {
	const rich = `{"supportedVersions":["2026-07-28"],"resultType":"complete","ttlMs":1,"cacheScope":"public","instructions":"Use \u00e9",` +
		`"capabilities":{"tools":{"listChanged":true,"x":1},"prompts":{"listChanged":false},"resources":{"subscribe":true,"listChanged":true},` +
		`"logging":{},"completions":{},"experimental":{"a":{}},"extensions":{"io.modelcontextprotocol/tasks":{},"acme/ui":{"v":1}},"unknown":{},"tasks":{}},` +
		`"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s","version":"2","title":"S","icons":[],"description":"d","websiteUrl":"w"},"acme/x":1}}`
	head := func(v mcp.Version, caps, info string) string {
		return `{"protocolVersion":"` + string(v) + `","capabilities":` + caps + `,"serverInfo":` + info
	}
	push := `"tools":{"listChanged":true},"prompts":{},"resources":{"listChanged":true,"subscribe":true},"logging":{}`
	rest := `"experimental":{"a":{}},"extensions":{"acme/ui":{"v":1}}`
	tail := `,"instructions":"Use \u00e9","_meta":{"acme/x":1}}`
	tests := []struct {
		rule string
		v    mcp.Version
		in   string
		opt  InitOptions
		want string
	}{
		{"A-3, A-4 2024-11-05", r24, rich, InitOptions{Listen: true}, head(r24, `{`+push+`,`+rest+`}`, `{"name":"s","version":"2"}`) + tail},
		{"A-3, A-4 2025-03-26", r25a, rich, InitOptions{Listen: true}, head(r25a, `{`+push+`,"completions":{},`+rest+`}`, `{"name":"s","version":"2"}`) + tail},
		{"A-3, A-4 2025-06-18", r25b, rich, InitOptions{Listen: true}, head(r25b, `{`+push+`,"completions":{},`+rest+`}`, `{"name":"s","version":"2","title":"S"}`) + tail},
		{
			"A-4 nothing can be pushed", r25c, rich, InitOptions{},
			head(r25c, `{"tools":{},"prompts":{},"resources":{},"logging":{},"completions":{},`+rest+`}`,
				`{"name":"s","version":"2","title":"S","icons":[],"description":"d","websiteUrl":"w"}`) + tail,
		},
		{
			"P-2 minimal", r24, rich, InitOptions{Profile: Minimal, Listen: true},
			head(r24, `{`+push+`,"completions":{},`+rest+`}`,
				`{"name":"s","version":"2","title":"S","icons":[],"description":"d","websiteUrl":"w"}`) + tail,
		},
		{
			"I-2 serverInfo of a draft server", r25c, `{"capabilities":{},"serverInfo":{"name":"d","version":"1"}}`, InitOptions{},
			head(r25c, `{}`, `{"name":"d","version":"1"}`) + `}`,
		},
		{
			"A-3 serverInfo is made up", r25c, `{"capabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}},"_meta":{}}`, InitOptions{Name: "api.example.com"},
			head(r25c, `{}`, `{"name":"api.example.com","version":"0.0.0"}`) + `}`,
		},
		{
			"A-3 serverInfo of an earlier result", r25c, `{"capabilities":{}}`, InitOptions{ServerInfo: []byte(`{"name":"e"}`)},
			head(r25c, `{}`, `{"name":"e","version":"0.0.0"}`) + `}`,
		},
		{
			"G.3 hosted tasks", r25c, `{"capabilities":{"tools":{}}}`, InitOptions{Name: "n", HostTasks: true, ListTasks: true},
			head(r25c, `{"tools":{},"tasks":{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}}}`, `{"name":"n","version":"0.0.0"}`) + `}`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.rule, func(t *testing.T) {
			got, err := InitializeResult(tt.v, []byte(tt.in), tt.opt)
			if err != nil || string(got) != tt.want {
				t.Errorf("err = %v\n got %s\nwant %s", err, got, tt.want)
			}
			conforms(t, tt.v, "InitializeResult", got)
		})
	}
	if _, err := InitializeResult(r25c, []byte(`[]`), InitOptions{}); err == nil {
		t.Error("B-30: a discover result that is no object was accepted")
	}
}

func TestClientCapabilities(t *testing.T) {
	const all = `{"roots":{"listChanged":true},"sampling":{"tools":{},"context":{},"x":{}},"elicitation":{"form":{},"url":{}},"tasks":{"list":{}},` +
		`"experimental":{"e":{}},"extensions":{"io.modelcontextprotocol/tasks":{},"io.modelcontextprotocol/ui":{}},"other":{}}`
	const rest = `"experimental":{"e":{}},"extensions":{"io.modelcontextprotocol/ui":{}}`
	tests := []struct {
		rule        string
		v           mcp.Version
		in          string
		interactive bool
		want        string
	}{
		{"A.5 2024-11-05", r24, all, true, `{"roots":{},"sampling":{},` + rest + `}`},
		{"A.5 2025-03-26", r25a, all, true, `{"roots":{},"sampling":{},` + rest + `}`},
		{"A.5 2025-06-18", r25b, all, true, `{"roots":{},"sampling":{},"elicitation":{},` + rest + `}`},
		{"A.5 2025-11-25", r25c, all, true, `{"roots":{},"sampling":{"tools":{},"context":{}},"elicitation":{"form":{},"url":{}},` + rest + `}`},
		{"A.5 url alone does not imply form", r25c, `{"elicitation":{"url":{}}}`, true, `{"elicitation":{"url":{}}}`},
		{"A.5 {} means form", r25c, `{"elicitation":{}}`, true, `{"elicitation":{}}`},
		{"A.5 none", r25c, ``, true, `{}`},
		{"A.5 null is no declaration", r25c, `{"roots":null,"sampling":true}`, true, `{}`},
		{"A.5 tasks alone", r25c, `{"extensions":{"io.modelcontextprotocol/tasks":{}}}`, true, `{}`},
		{"A-18 nothing can be asked", r25c, all, false, `{` + rest + `}`},
	}
	for _, tt := range tests {
		t.Run(tt.rule, func(t *testing.T) {
			if got := ClientCapabilities(tt.v, []byte(tt.in), tt.interactive); string(got) != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
	if got := WithTasks([]byte(`{"roots":{},"extensions":{"a/b":{}}}`)); string(got) != `{"roots":{},"extensions":{"a/b":{},"io.modelcontextprotocol/tasks":{}}}` {
		t.Errorf("A-19: %s", got)
	}
	if got := WithTasks([]byte(`{}`)); string(got) != `{"extensions":{"io.modelcontextprotocol/tasks":{}}}` {
		t.Errorf("A-19: %s", got)
	}
}
