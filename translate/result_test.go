package translate

import (
	"errors"
	"testing"

	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/rawjson"
)

const (
	r24  = mcp.V20241105
	r25a = mcp.V20250326
	r25b = mcp.V20250618
	r25c = mcp.V20251125
)

type resultTest struct {
	rule   string
	rules  Rules
	method string
	in     string
	want   string // "=": passes untouched
}

func runResults(t *testing.T, tests []resultTest) {
	t.Helper()
	for _, tt := range tests {
		t.Run(tt.rule+" "+string(tt.rules.Version), func(t *testing.T) {
			if err := rawjson.Validate([]byte(tt.in)); err != nil {
				t.Fatal("bad test:", err)
			}
			in := []byte(tt.in)
			got, err := tt.rules.Result(tt.method, in)
			if err != nil {
				t.Fatal(err)
			}
			if framed, err := tt.rules.AppendResult([]byte("id:"), tt.method, in); err != nil || string(framed) != "id:"+string(got) {
				t.Errorf("AppendResult differs: %s %v", framed, err)
			}
			if tt.want == "=" {
				if &got[0] != &in[0] || len(got) != len(in) {
					t.Errorf("was copied or changed: %s", got)
				}
				return
			}
			if string(got) != tt.want {
				t.Errorf("Result(%s)\n got %s\nwant %s", tt.in, got, tt.want)
			}
			if err := rawjson.Validate(got); err != nil {
				t.Error(err)
			}
			again, err := tt.rules.Result(tt.method, got)
			if tt.rules.WrapOutput {
				return // wraps whatever it is given
			}
			if err != nil || string(again) != string(got) {
				t.Errorf("a second pass changes it: %s %v", again, err)
			}
		})
	}
}

func every(tests []resultTest, rule, method, in, want string) []resultTest {
	for _, v := range mcp.Legacy {
		tests = append(tests, resultTest{rule, Rules{Version: v}, method, in, want})
	}
	return tests
}

func TestResultGeneric(t *testing.T) {
	var tests []resultTest
	tests = every(tests, "B-28 modern members", "tools/call",
		`{"resultType":"complete","content":[],"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s"}}}`, `{"content":[]}`)
	tests = every(tests, "B-28 other _meta stays", "tools/call",
		`{"resultType":"complete","_meta":{"a":1,"io.modelcontextprotocol/serverInfo":{},"b":2},"content":[]}`, `{"_meta":{"a":1,"b":2},"content":[]}`)
	tests = every(tests, "B-28 caching hints", "prompts/list",
		`{"prompts":[],"nextCursor":"","ttlMs":5,"cacheScope":"public","resultType":"complete"}`, `{"prompts":[],"nextCursor":""}`)
	tests = every(tests, "B-31 leftovers of an interim result", "prompts/get",
		`{"inputRequests":{"a":{}},"messages":[],"requestState":"x","resultType":"complete"}`, `{"messages":[]}`)
	tests = every(tests, "P-4 vendor methods", "acme/run",
		`{"resultType":"complete","content":5,"tools":null}`, `{"content":5,"tools":null}`)
	tests = every(tests, "A-9 an empty result is exactly {}", "acme/run", `{ "resultType" : "complete" }`, `{}`)
	tests = every(tests, "P-6 nothing to do", "tools/call", `{ "content" : [ {"type":"text","text":"\ud800"} ], "isError":false }`, "=")
	tests = every(tests, "P-6 completion", "completion/complete", `{"completion":{"values":["a"],"total":9007199254740993}}`, "=")
	tests = every(tests, "P-6 empty", "acme/run", `{}`, "=")
	runResults(t, tests)
}

func TestResultMalformed(t *testing.T) {
	tests := []struct{ rule, method, in string }{
		{"B-30 not an object", "tools/call", `[]`},
		{"B-30 content is missing", "tools/call", `{}`},
		{"B-30 content has the wrong type", "tools/call", `{"content":{}}`},
		{"B-30 tools is missing", "tools/list", `{"resultType":"complete"}`},
		{"B-30 prompts", "prompts/list", `{"prompts":null}`},
		{"B-30 resources", "resources/list", `{"resources":1}`},
		{"B-30 templates", "resources/templates/list", `{}`},
		{"B-30 contents", "resources/read", `{"contents":"x"}`},
		{"B-30 messages", "prompts/get", `{"messages":[1]}`},
		{"B-30 completion", "completion/complete", `{"completion":[]}`},
		{"B-39 a message is one block", "prompts/get", `{"messages":[{"role":"user","content":[]}]}`},
	}
	for _, tt := range tests {
		t.Run(tt.rule, func(t *testing.T) {
			for _, v := range mcp.Legacy {
				_, err := Rules{Version: v}.Result(tt.method, []byte(tt.in))
				var malformed *Malformed
				if !errors.As(err, &malformed) || malformed.Method != tt.method {
					t.Errorf("%s: err = %v", v, err)
				}
			}
		})
	}
}

func TestStructuredContent(t *testing.T) {
	strict := func(v mcp.Version) Rules { return Rules{Version: v} }
	runResults(t, []resultTest{
		{"B-34 an object stays", strict(r25b), "tools/call", `{"content":[],"structuredContent":{"a":[1]}}`, "="},
		{"B-34 an object stays", strict(r25c), "tools/call", `{"content":[],"structuredContent":{"a":[1]}}`, "="},
		{
			"Q10 an array is wrapped, text is added", strict(r25b), "tools/call",
			`{"content":[{"type":"text","text":"ok"}],"structuredContent":[1, 2]}`,
			`{"content":[{"type":"text","text":"ok"},{"type":"text","text":"[1,2]"}],"structuredContent":{"result":[1, 2]}}`,
		},
		{
			"Q10, B-36 text that says it already", strict(r25c), "tools/call",
			`{"structuredContent":[1.0,{"a":"\u00e9"}],"content":[{"type":"text","text":"[1, {\"a\":\"é\"}]"}]}`,
			`{"structuredContent":{"result":[1.0,{"a":"\u00e9"}]},"content":[{"type":"text","text":"[1, {\"a\":\"é\"}]"}]}`,
		},
		{"Q10 null", strict(r25c), "tools/call", `{"content":[],"structuredContent":null}`, `{"content":[{"type":"text","text":"null"}],"structuredContent":{"result":null}}`},
		{
			"Q10 an object under a wrapped schema", Rules{Version: r25c, WrapOutput: true}, "tools/call",
			`{"content":[],"structuredContent":{"a":1}}`, `{"content":[],"structuredContent":{"result":{"a":1}}}`,
		},
		{
			"Q10 drop as a switch", Rules{Version: r25c, DropNonObject: true}, "tools/call",
			`{"content":[ ],"structuredContent":"x"}`, `{"content":[{"type":"text","text":"\"x\""} ]}`,
		},
		{
			"B-35 before 2025-06-18", strict(r25a), "tools/call",
			`{"content":[{"type":"text","text":"hi"}],"structuredContent":{"a":9007199254740993}}`,
			`{"content":[{"type":"text","text":"hi"},{"type":"text","text":"{\"a\":9007199254740993}"}]}`,
		},
		{
			"B-35 before 2025-06-18, text repeats it", strict(r24), "tools/call",
			`{"content":[{"type":"text","text":"{\"a\": 1}"}],"structuredContent":{"a":1},"resultType":"complete"}`,
			`{"content":[{"type":"text","text":"{\"a\": 1}"}]}`,
		},
		{"B-35 minimal keeps it", Rules{Version: r24, Profile: Minimal}, "tools/call", `{"content":[],"structuredContent":[1]}`, "="},
		{"B-30 content is missing", strict(r25c), "tools/call", `{"structuredContent":{"a":1}}`, `{"structuredContent":{"a":1},"content":[]}`},
		{"B-30 content is missing", strict(r24), "tools/call", `{"structuredContent":{"a":1}}`, `{"content":[{"type":"text","text":"{\"a\":1}"}]}`},
		{
			"B-37, B-38 nothing is invented", strict(r25c), "tools/call",
			`{"content":[{"type":"text","text":"no"}],"isError":true}`, "=",
		},
	})
}

func TestContentBlocks(t *testing.T) {
	call := func(blocks string) string { return `{"content":[` + blocks + `]}` }
	link := `{"type":"resource_link","uri":"file:///a","name":"a.txt","title":"A","mimeType":"text/plain","description":"d","icons":[],"annotations":{"audience":["user"],"lastModified":"2026"}}`
	audio := `{"type":"audio","data":"AAAA","mimeType":"audio/wav","annotations":{"priority":1}}`
	var tests []resultTest
	add := func(rule string, v mcp.Version, in, want string) {
		if want != "=" {
			want = call(want)
		}
		tests = append(tests, resultTest{rule, Rules{Version: v}, "tools/call", call(in), want})
	}
	linkAsText := `{"type":"text","text":"Resource: A\nURI: file:///a\nType: text/plain\nDescription: d","annotations":{"audience":["user"]}}`
	add("B.8 resource_link", r24, link, linkAsText)
	add("B.8 resource_link", r25a, link, linkAsText)
	add("B.8 resource_link", r25b, link, `{"type":"resource_link","uri":"file:///a","name":"a.txt","title":"A","mimeType":"text/plain","description":"d","annotations":{"audience":["user"],"lastModified":"2026"}}`)
	add("B.8 resource_link", r25c, link, "=")
	add("B.8 audio", r24, `{"type":"text","text":"x"},`+audio,
		`{"type":"text","text":"x"},{"type":"resource","resource":{"uri":"bridge-audio:1","mimeType":"audio/wav","blob":"AAAA"},"annotations":{"priority":1}}`)
	for _, v := range []mcp.Version{r25a, r25b, r25c} {
		add("B.8 audio", v, audio, "=")
	}
	embedded := `{"_meta":{"b":1},"type":"resource","resource":{"uri":"a:b","text":"t","_meta":{"a":1}},"annotations":{"lastModified":"x","priority":0}}`
	for _, v := range []mcp.Version{r24, r25a} {
		add("B.8 _meta and lastModified", v, embedded, `{"type":"resource","resource":{"uri":"a:b","text":"t"},"annotations":{"priority":0}}`)
	}
	for _, v := range []mcp.Version{r25b, r25c} {
		add("B.8 _meta and lastModified", v, embedded, "=")
	}
	for _, v := range mcp.Legacy {
		add("B.8 unknown type", v, `{"type":"video", "data":"x","annotations":{"audience":["assistant"]}}`,
			`{"type":"text","text":"{\"type\":\"video\",\"data\":\"x\",\"annotations\":{\"audience\":[\"assistant\"]}}","annotations":{"audience":["assistant"]}}`)
		add("B.8 no block at all", v, `"hi"`, `{"type":"text","text":"\"hi\""}`)
		add("P-6 type last and escaped", v, `{"text":"x","type":"te\u0078t"}`, "=")
	}
	runResults(t, tests)
	runResults(t, []resultTest{
		{
			"P-2 minimal repairs the union only", Rules{Version: r24, Profile: Minimal}, "tools/call",
			call(embedded + `,` + link[:len(link)-1] + `}`),
			call(embedded + `,{"type":"text","text":"Resource: A\nURI: file:///a\nType: text/plain\nDescription: d","annotations":{"audience":["user"],"lastModified":"2026"}}`),
		},
		{
			"B-39 prompt messages", Rules{Version: r24}, "prompts/get",
			`{"description":"d","messages":[{"role":"user","content":{"type":"text","text":"a","_meta":{}}},{"role":"assistant","content":` + audio + `}]}`,
			`{"description":"d","messages":[{"role":"user","content":{"type":"text","text":"a"}},{"role":"assistant","content":{"type":"resource","resource":{"uri":"bridge-audio:1","mimeType":"audio/wav","blob":"AAAA"},"annotations":{"priority":1}}}]}`,
		},
		{
			"B.8 resource contents", Rules{Version: r25a}, "resources/read",
			`{"contents":[{"_meta":{},"uri":"a:b","text":"x"}],"ttlMs":1,"cacheScope":"private"}`, `{"contents":[{"uri":"a:b","text":"x"}]}`,
		},
	})
}
