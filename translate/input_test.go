package translate

import (
	"errors"
	"strings"
	"testing"

	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/rawjson"
)

func form(properties, more string) string {
	return `{"mode":"form","message":"m?","requestedSchema":{"$schema":"x","type":"object","properties":{` + properties + `}` + more + `}}`
}

func oldForm(properties, more string) string {
	return `{"message":"m?","requestedSchema":{"type":"object","properties":{` + properties + `}` + more + `}}`
}

func TestElicitationForm(t *testing.T) {
	const plain = `"s":{"type":"string","pattern":"^a","default":"x"},"n":{"type":"integer","minimum":1},"b":{"type":"boolean","default":true},"e":{"type":"string","enum":["a"],"enumNames":["A"]}`
	const titled = `"k":{"title":"K","type":"string","oneOf":[{"const":"e","title":"Economy"},{"const":"b"}],"default":"e"}`
	const multi = `"c":{"type":"array","title":"Colours","description":"Pick.","items":{"anyOf":[{"const":"r","title":"Red"},{"const":"g","title":"Green"}]},"minItems":1,"maxItems":2,"default":["g"]}`
	const multiOld = `"c__1":{"type":"boolean","title":"Red","description":"Colours: choose between 1 and 2. Pick.","default":false},` +
		`"c__2":{"type":"boolean","title":"Green","description":"Colours: choose between 1 and 2. Pick.","default":true}`
	const untitled = `"c":{"type":"array","items":{"type":"string","enum":["r","g"]}},"c__1":{"type":"string"}`
	const untitledOld = `"c___1":{"type":"boolean","title":"r","description":"c: choose any number."},"c__2":{"type":"boolean","title":"g","description":"c: choose any number."},"c__1":{"type":"string"}`
	tests := []struct {
		rule string
		v    mcp.Version
		in   string
		want string
	}{
		{"C.4 nothing to do", r25c, form(plain+","+titled+","+multi, `,"required":["c"]`), "="},
		{"C.4 mode and $schema go", r25b, form(plain, `,"required":["s"]`), oldForm(plain, `,"required":["s"]`)},
		{"C.4 neither task nor _meta", r25c, `{"message":"m","requestedSchema":{"type":"object","properties":{}},"task":{},"_meta":{}}`, `{"message":"m","requestedSchema":{"type":"object","properties":{}}}`},
		{"C.4 already old", r25b, oldForm(plain, ``), "="},
		{
			"C.5 titled single select", r25b, form(titled, ""),
			oldForm(`"k":{"title":"K","type":"string","enum":["e","b"],"enumNames":["Economy","b"],"default":"e"}`, ""),
		},
		{"C.5 multi select, required", r25b, form(multi+`,"z":{"type":"string"}`, `,"required":["c","z"]`), oldForm(multiOld+`,"z":{"type":"string"}`, `,"required":["z"]`)},
		{"C.5 multi select, name taken", r25b, form(untitled, ""), oldForm(untitledOld, "")},
		{"C.5 no options", r25b, form(`"a":{"type":"string"},"c":{"type":"array","items":{"enum":[]}}`, ""), oldForm(`"a":{"type":"string"}`, "")},
		{
			"C-26 items.oneOf", r25c, oldForm(`"c":{"type":"array","items":{"oneOf":[{"const":"r","title":"Red"}]}}`, ""),
			oldForm(`"c":{"type":"array","items":{"anyOf":[{"const":"r","title":"Red"}]}}`, ""),
		},
	}
	for _, tt := range tests {
		t.Run(tt.rule, func(t *testing.T) {
			in := []byte(tt.in)
			got, err := Rules{Version: tt.v}.InputRequest("elicitation/create", in, []byte(`{"elicitation":{}}`))
			if err != nil {
				t.Fatal(err)
			}
			want := tt.want
			if want == "=" {
				want = tt.in
				if &got[0] != &in[0] {
					t.Error("was copied")
				}
			}
			if string(got) != want {
				t.Errorf("\n got %s\nwant %s", got, want)
			}
			conforms(t, tt.v, "ElicitRequest", request("elicitation/create", got))
		})
	}
}

func request(method string, params []byte) []byte {
	return []byte(`{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":` + string(params) + `}`)
}

func TestElicitationURL(t *testing.T) {
	in := `{"mode":"url","message":"go","url":"https://a.example/x?y=1","_meta":{}}`
	got, err := Rules{Version: r25c}.InputRequest("elicitation/create", []byte(in), nil)
	if want := `{"mode":"url","message":"go","url":"https://a.example/x?y=1"}`; err != nil || string(got) != want {
		t.Errorf("C-27: %s %v", got, err)
	}
	identified := rawjson.Apply(nil, got, rawjson.Edit{Name: "elicitationId", Value: []byte(`"u"`)})
	conforms(t, r25c, "ElicitRequest", request("elicitation/create", identified))
	if _, err := (Rules{Version: r25b}).InputRequest("elicitation/create", []byte(in), nil); err == nil || strings.Contains(err.Error(), "a.example") {
		t.Errorf("J-6, C-28: %v", err)
	}
}

func TestUnexpressibleInputs(t *testing.T) {
	const question = `{"message":"m","requestedSchema":{"type":"object","properties":{}}}`
	sample := func(content, more string) string {
		return `{"messages":[{"role":"user","content":` + content + `}],"maxTokens":1` + more + `}`
	}
	const text = `{"type":"text","text":"a"}`
	tests := []struct {
		rule   string
		v      mcp.Version
		method string
		in     string
	}{
		{"J-6 elicitation", r24, "elicitation/create", question},
		{"J-6 elicitation", r25a, "elicitation/create", question},
		{"C-33 no params", r25c, "elicitation/create", ""},
		{"C-33 no message", r25c, "elicitation/create", `{"requestedSchema":{}}`},
		{"C-33 no schema", r25c, "elicitation/create", `{"message":"m"}`},
		{"C-33 unknown mode", r25c, "elicitation/create", `{"mode":"voice","message":"m"}`},
		{"C-33 no url", r25c, "elicitation/create", `{"mode":"url","message":"m"}`},
		{"C-33 unknown method", r25c, "tools/call", `{}`},
		{"C.7 tools", r25b, "sampling/createMessage", sample(text, `,"tools":[]`)},
		{"C.7 tools, undeclared", r25c, "sampling/createMessage", sample(text, `,"tools":[]`)},
		{"C.7 toolChoice", r25c, "sampling/createMessage", sample(text, `,"toolChoice":{}`)},
		{"C.7 tool_use", r25c, "sampling/createMessage", sample(`[{"type":"tool_use","id":"1","name":"a","input":{}}]`, ``)},
		{"C.7 tool_result", r25a, "sampling/createMessage", sample(`{"type":"tool_result","toolUseId":"1","content":[]}`, ``)},
		{"C.7 audio", r24, "sampling/createMessage", sample(`{"type":"audio","data":"","mimeType":"a/b"}`, ``)},
		{"C.7 unknown block", r25c, "sampling/createMessage", sample(`{"type":"video"}`, ``)},
		{"C.7 no messages", r25c, "sampling/createMessage", `{"maxTokens":1}`},
	}
	for _, tt := range tests {
		t.Run(tt.rule, func(t *testing.T) {
			got, err := Rules{Version: tt.v}.InputRequest(tt.method, []byte(tt.in), []byte(`{"elicitation":{},"sampling":{}}`))
			var u *Unexpressible
			if !errors.As(err, &u) || u.Reason == "" || u.Answer != nil {
				t.Errorf("got %s, %v", got, err)
			}
		})
	}
	// Q12: cancel as a switch.
	multi := form(`"c":{"type":"array","items":{"enum":["a"]}}`, "")
	_, err := Rules{Version: r25b, CancelMultiSelect: true}.InputRequest("elicitation/create", []byte(multi), nil)
	var u *Unexpressible
	if !errors.As(err, &u) || string(u.Answer) != `{"action":"cancel"}` {
		t.Errorf("Q12: %v", err)
	}
}

func TestSamplingRequest(t *testing.T) {
	const head = `{"systemPrompt":"\u00e9","temperature":1.50,"includeContext":"thisServer","maxTokens":9,"messages":[`
	tests := []struct {
		rule string
		v    mcp.Version
		in   string
		want string // of messages; "=": untouched
	}{
		{"C.7 one block", r24, `{"role":"user","content":{"type":"text","text":"a"}}`, "="},
		{"C.7 audio", r25a, `{"role":"user","content":{"type":"audio","data":"","mimeType":"a/b"}}`, "="},
		{"C.7 array of one", r25b, `{"role":"user","content":[{"type":"text","text":"a"}]}`, `{"role":"user","content":{"type":"text","text":"a"}}`},
		{
			"C.7 longer array", r24, `{"content":[{"type":"text","text":"a","_meta":{}},{"type":"image","data":"","mimeType":"i/p","annotations":{"lastModified":"x"}}],"role":"user","_meta":{"x":1}},{"role":"assistant","content":{"type":"text","text":"b"}}`,
			`{"content":{"type":"text","text":"a"},"role":"user"},{"content":{"type":"image","data":"","mimeType":"i/p","annotations":{}},"role":"user"},{"role":"assistant","content":{"type":"text","text":"b"}}`,
		},
		{"C.7 empty array", r25b, `{"role":"user","content":[]},{"role":"user","content":{"type":"text","text":"a"}}`, `{"role":"user","content":{"type":"text","text":"a"}}`},
		{"C.7 arrays and _meta", r25c, `{"role":"user","content":[{"type":"text","text":"a","_meta":{}},{"type":"text","text":"b"}],"_meta":{}}`, "="},
		{"C.7 message _meta", r25b, `{"role":"user","content":{"type":"text","text":"a","_meta":{}},"_meta":{}}`, `{"role":"user","content":{"type":"text","text":"a","_meta":{}}}`},
		{
			"C.7 tool_result", r25c, `{"role":"user","content":[{"type":"tool_result","toolUseId":"1","content":[],"structuredContent":[1]}]}`,
			`{"role":"user","content":[{"type":"tool_result","toolUseId":"1","content":[{"type":"text","text":"[1]"}],"structuredContent":{"result":[1]}}]}`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.rule, func(t *testing.T) {
			in := []byte(head + tt.in + `]}`)
			got, err := Rules{Version: tt.v}.InputRequest("sampling/createMessage", in, []byte(`{"sampling":{"tools":{}}}`))
			if err != nil {
				t.Fatal(err)
			}
			want := head + tt.want + `]}`
			if tt.want == "=" {
				want = string(in)
			}
			if string(got) != want {
				t.Errorf("\n got %s\nwant %s", got, want)
			}
			conforms(t, tt.v, "CreateMessageRequest", request("sampling/createMessage", got))
		})
	}
	in := `{"messages":[],"maxTokens":1,"tools":[{"name":"t","inputSchema":{"type":"object","properties":{"a":true}},"outputSchema":{"type":"array"}}],"toolChoice":{"mode":"auto"},"_meta":{},"task":{}}`
	want := `{"messages":[],"maxTokens":1,"tools":[{"name":"t","inputSchema":{"type":"object","properties":{"a":{}}},"outputSchema":{"type":"object","properties":{"result":{"type":"array"}},"required":["result"]}}],"toolChoice":{"mode":"auto"}}`
	got, err := Rules{Version: r25c, HostTasks: true}.InputRequest("sampling/createMessage", []byte(in), []byte(`{"sampling":{"tools":{}}}`))
	if err != nil || string(got) != want {
		t.Errorf("C.7 tools: %v\n got %s\nwant %s", err, got, want)
	}
}

func TestRootsRequestNeedsNoParams(t *testing.T) {
	for _, v := range mcp.Legacy {
		got, err := Rules{Version: v}.InputRequest("roots/list", []byte(`{"_meta":{"a":1}}`), nil)
		if got != nil || err != nil {
			t.Errorf("C.8 %s: %s %v", v, got, err)
		}
	}
}

func TestInputResponse(t *testing.T) {
	multi := form(`"c":{"type":"array","items":{"enum":["r","g","b"]},"minItems":1,"maxItems":2},"n":{"type":"integer"}`, `,"required":["c"]`)
	optional := form(`"c":{"type":"array","items":{"enum":["r","g"]},"minItems":2}`, "")
	anything := form(`"c":{"type":"array","items":{"enum":["r","g"]}}`, "")
	plain := form(`"n":{"type":"integer"}`, "")
	const bad, again = "bad", "again"
	tests := []struct {
		rule                     string
		v                        mcp.Version
		method, params, in, want string
	}{
		{"C.9 accept", r25c, "elicitation/create", plain, `{"_meta":{},"action":"accept","content":{"n":1.0, "s":"\ud800"},"x":1}`, `{"action":"accept","content":{"n":1.0, "s":"\ud800"}}`},
		{"C.9 accept without content", r25c, "elicitation/create", plain, `{"action":"accept"}`, `{"action":"accept"}`},
		{"C.9 null members", r25c, "elicitation/create", plain, `{"action":"accept","content":{"a":null,"n":9007199254740993}}`, `{"action":"accept","content":{"n":9007199254740993}}`},
		{"C.9 decline", r25b, "elicitation/create", plain, `{"action":"decline","content":{"n":1}}`, `{"action":"decline"}`},
		{"C.9 reject is decline", r25b, "elicitation/create", plain, `{"action":"reject"}`, `{"action":"decline"}`},
		{"C.9 cancel", r25b, "elicitation/create", plain, `{"action":"cancel"}`, `{"action":"cancel"}`},
		{"C.9 unknown action", r25b, "elicitation/create", plain, `{"action":"later"}`, bad},
		{"C.9 content of the wrong type", r25b, "elicitation/create", plain, `{"action":"accept","content":[]}`, bad},
		{"C-29 url", r25c, "elicitation/create", `{"mode":"url","url":"a:b","message":"m"}`, `{"action":"accept","content":{"a":1}}`, `{"action":"accept"}`},
		{"C.5 array in option order", r25b, "elicitation/create", multi, `{"action":"accept","content":{"c__3":true,"c__1":true,"c__2":false,"n":4}}`, `{"action":"accept","content":{"n":4,"c":["r","b"]}}`},
		{"C.5 too many", r25b, "elicitation/create", multi, `{"action":"accept","content":{"c__1":true,"c__2":true,"c__3":true}}`, again},
		{"C.5 too few", r25b, "elicitation/create", multi, `{"action":"accept","content":{"n":1}}`, again},
		{"C.5 optional, left alone", r25b, "elicitation/create", optional, `{"action":"accept","content":{"c__1":false,"c__2":false}}`, `{"action":"accept","content":{}}`},
		{"C.5 a choice in words", r25b, "elicitation/create", anything, `{"action":"accept","content":{"c__1":"true","c__2":true}}`, again},
		{"C.5 a choice as a number", r25b, "elicitation/create", multi, `{"action":"accept","content":{"c__1":true,"c__2":1}}`, again},
		{"C.5 a choice of null", r25b, "elicitation/create", multi, `{"action":"accept","content":{"c__1":true,"c__2":null}}`, `{"action":"accept","content":{"c":["r"]}}`},
		{"C.5 the array, which was not asked", r25b, "elicitation/create", anything, `{"action":"accept","content":{"c":["r","g"]}}`, again},
		{"C.5 2025-11-25 answers arrays", r25c, "elicitation/create", multi, `{"action":"accept","content":{"c":["r"]}}`, `{"action":"accept","content":{"c":["r"]}}`},
		{"C.7 sampling", r25c, "sampling/createMessage", `{}`, `{"role":"assistant","content":[],"model":"m","stopReason":"endTurn","_meta":{"io.modelcontextprotocol/related-task":{},"a":1}}`, `{"role":"assistant","content":[],"model":"m","stopReason":"endTurn","_meta":{"a":1}}`},
		{"C.7 sampling untouched", r24, "sampling/createMessage", `{}`, `{"role":"assistant","content":{"type":"text","text":"\ud800"},"model":"m"}`, `{"role":"assistant","content":{"type":"text","text":"\ud800"},"model":"m"}`},
		{"C.7 no model", r24, "sampling/createMessage", `{}`, `{"role":"assistant","content":{}}`, bad},
		{"C.7 no content", r24, "sampling/createMessage", `{}`, `{"role":"assistant","model":"m"}`, bad},
		{"C.8 roots", r24, "roots/list", ``, `{"_meta":{"a":1},"roots":[{"uri":"file:///a","_meta":{}}]}`, `{"roots":[{"uri":"file:///a","_meta":{}}]}`},
		{"C.8 no roots", r24, "roots/list", ``, `{}`, bad},
		{"C.9 not an object", r24, "roots/list", ``, `[]`, bad},
	}
	for _, tt := range tests {
		t.Run(tt.rule, func(t *testing.T) {
			got, err := Rules{Version: tt.v}.InputResponse(tt.method, []byte(tt.params), []byte(tt.in))
			var answer *BadAnswer
			switch {
			case tt.want == bad || tt.want == again:
				if !errors.As(err, &answer) || answer.AskAgain != (tt.want == again) {
					t.Errorf("got %s, %v", got, err)
				}
			case err != nil || string(got) != tt.want:
				t.Errorf("err = %v\n got %s\nwant %s", err, got, tt.want)
			}
		})
	}
}
