package translate

import (
	"strings"
	"testing"

	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/rawjson"
)

func tools(list string) string { return `{"tools":[` + list + `]}` }

func TestTools(t *testing.T) {
	var tests []resultTest
	add := func(rule string, v mcp.Version, in, want string) {
		if want != "=" {
			want = tools(want)
		}
		tests = append(tests, resultTest{rule, Rules{Version: v}, "tools/list", tools(in), want})
	}
	full := `{"name":"t","title":"T","description":"d","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true},"icons":[{"src":"x"}],"_meta":{"v":1},"outputSchema":{"type":"object"},"acme":1}`
	add("B.6 members by revision", r24, full, `{"name":"t","description":"d","inputSchema":{"type":"object"},"acme":1}`)
	add("B.6 members by revision", r25a, full, `{"name":"t","description":"d","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true,"title":"T"},"acme":1}`)
	add("B.6 members by revision", r25b, full, `{"name":"t","title":"T","description":"d","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true},"_meta":{"v":1},"outputSchema":{"type":"object"},"acme":1}`)
	add("B.6 members by revision", r25c, full, "=")
	add("B.6 title without annotations", r25a, `{"name":"t","title":"T","inputSchema":{"type":"object"}}`, `{"name":"t","annotations":{"title":"T"},"inputSchema":{"type":"object"}}`)
	add("B.6 title beside an annotated one", r25a, `{"title":"T","name":"t","inputSchema":{"type":"object"},"annotations":{"title":"A"}}`, `{"name":"t","inputSchema":{"type":"object"},"annotations":{"title":"A"}}`)
	add("B.6 title into empty annotations", r25a, `{"title":"T","name":"t","inputSchema":{"type":"object"},"annotations":{}}`, `{"name":"t","inputSchema":{"type":"object"},"annotations":{"title":"T"}}`)
	for _, v := range mcp.Legacy {
		add("B.6 boolean property schemas", v,
			`{"name":"t","inputSchema":{"type":"object","properties":{"a":true,"b":false,"c":{"properties":{"d":true}}}}}`,
			`{"name":"t","inputSchema":{"type":"object","properties":{"a":{},"b":{"not":{}},"c":{"properties":{"d":true}}}}}`)
		add("B.6 x-mcp-header goes", v,
			`{"name":"t","inputSchema":{"type":"object","properties":{"a":{"type":"string","x-mcp-header":"A"},"b":{"x-mcp-header":"B"}}}}`,
			`{"name":"t","inputSchema":{"type":"object","properties":{"a":{"type":"string"},"b":{}}}}`)
		add("B-21 data that looks like a keyword stays", v,
			`{"name":"t","inputSchema":{"type":"object","default":{"x-mcp-header":1},"enum":[{"x-mcp-header":1}],"properties":{"x-mcp-header":{"type":"string","x-mcp-header":"A"}}}}`,
			`{"name":"t","inputSchema":{"type":"object","default":{"x-mcp-header":1},"enum":[{"x-mcp-header":1}],"properties":{"x-mcp-header":{"type":"string"}}}}`)
		add("B.6 other keywords stay", v,
			`{"name":"t","inputSchema":{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","oneOf":[{"required":["a"]}],"$defs":{"x":{"$ref":"https://example.com/x#/y"}},"if":true}}`, "=")
		add("B.6 the root type is supplied", v, `{"name":"t","inputSchema":{}}`, `{"name":"t","inputSchema":{"type":"object"}}`)
		add("B.6 the root type is supplied", v, `{"name":"t","inputSchema":{"x-mcp-header":"A"}}`, `{"name":"t","inputSchema":{"type":"object"}}`)
		add("B.6 the root type is supplied", v, `{"name":"t","inputSchema":{"properties":{}}}`, `{"name":"t","inputSchema":{"type":"object","properties":{}}}`)
		add("B.6 execution is the bridge's to offer", v, `{"name":"t","inputSchema":{"type":"object"},"execution":{"taskSupport":"required"}}`, `{"name":"t","inputSchema":{"type":"object"}}`)
		add("one bad member does not cost the tool", v, `{"name":"t","description":null,"_meta":[],"icons":{},"annotations":0,"title":7,"outputSchema":true,"inputSchema":{"type":"object"}}`, `{"name":"t","inputSchema":{"type":"object"}}`)
	}
	runResults(t, tests)
	runResults(t, []resultTest{
		{"G.3 hosted tasks", Rules{Version: r25c, HostTasks: true}, "tools/list", tools(`{"name":"t","execution":1,"inputSchema":{"type":"object"}}`), tools(`{"name":"t","inputSchema":{"type":"object"},"execution":{"taskSupport":"optional"}}`)},
		{"P-2 minimal", Rules{Version: r24, Profile: Minimal}, "tools/list", tools(full), "="},
		{"P-2 minimal repairs types", Rules{Version: r24, Profile: Minimal}, "tools/list", tools(`{"name":"t","inputSchema":{"type":"object","properties":{"a":true}},"outputSchema":{"type":"array"}}`), tools(`{"name":"t","inputSchema":{"type":"object","properties":{"a":{}}},"outputSchema":{"type":"array"}}`)},
	})
}

func TestOutputSchemaIsWrapped(t *testing.T) {
	list := func(schema string) string {
		return tools(`{"name":"t","inputSchema":{"type":"object"},"outputSchema":` + schema + `}`)
	}
	bare := tools(`{"name":"t","inputSchema":{"type":"object"}}`)
	tests := []struct{ rule, in, want string }{
		{"Q10 array", `{"type":"array"}`, `{"type":"object","properties":{"result":{"type":"array"}},"required":["result"]}`},
		{"Q10 no type", `{}`, `{"type":"object","properties":{"result":{}},"required":["result"]}`},
		{"Q10 a list of types", `{"type":["object","null"]}`, `{"type":"object","properties":{"result":{"type":["object","null"]}},"required":["result"]}`},
		{
			"Q10 references move along",
			`{"type":"array","items":{"$ref":"#/$defs/a"},"$defs":{"a":{"anyOf":[{"$ref":"#"},{"$dynamicRef":"\u0023/$defs/b"},{"$ref":"#anchor"},{"$ref":"x.json#/y"}]},"b":{"const":{"$ref":"#/z"}}}}`,
			`{"type":"object","properties":{"result":{"type":"array","items":{"$ref":"#/properties/result/$defs/a"},"$defs":{"a":{"anyOf":[{"$ref":"#/properties/result"},{"$dynamicRef":"#/properties/result/$defs/b"},{"$ref":"#anchor"},{"$ref":"x.json#/y"}]},"b":{"const":{"$ref":"#/z"}}}}},"required":["result"]}`,
		},
		{
			"Q10 references under an $id stay",
			`{"allOf":[{"$ref":"#/$defs/a"}],"$defs":{"a":{"items":{"$ref":"#/x"},"$id":"https://example.com/a"}}}`,
			`{"type":"object","properties":{"result":{"allOf":[{"$ref":"#/properties/result/$defs/a"}],"$defs":{"a":{"items":{"$ref":"#/x"},"$id":"https://example.com/a"}}}},"required":["result"]}`,
		},
		{
			"Q10 the dialect is declared at the new root", `{"$schema":"https://json-schema.org/draft/2020-12/schema","x-mcp-header":"A","type":"string"}`,
			`{"type":"object","$schema":"https://json-schema.org/draft/2020-12/schema","properties":{"result":{"type":"string"}},"required":["result"]}`,
		},
		{"Q10 boolean properties of an object", `{"type":"object","properties":{"a":true}}`, `{"type":"object","properties":{"a":{}}}`},
		{"Q10 the whole document, spelled as nothing", `{"type":"array","items":{"$ref":""}}`,
			`{"type":"object","properties":{"result":{"type":"array","items":{"$ref":"#/properties/result"}}},"required":["result"]}`},
		{"Q10 cannot be wrapped", `{"type":"array","items":{"$recursiveRef":"#"}}`, ""},
		{"Q10 nor can a reference at the root", `{"$ref":"#/$defs/A","$defs":{"A":{"type":"array"}}}`, ""},
		{"Q10 nor one beside an id", `{"$id":"https://x.test/s","$ref":"#/$defs/A","$defs":{"A":{"type":"array"}}}`, ""},
		{"Q10 malformed", `{"type":"object","properties":[]}`, ""},
	}
	for _, tt := range tests {
		want := bare
		if tt.want != "" {
			want = list(tt.want)
		}
		runResults(t, []resultTest{
			{tt.rule, Rules{Version: r25b}, "tools/list", list(tt.in), want},
			{tt.rule, Rules{Version: r25c}, "tools/list", list(tt.in), want},
			{tt.rule, Rules{Version: r24}, "tools/list", list(tt.in), bare},
		})
		tool := []byte(`{"name":"a","outputSchema":` + tt.in + `}`)
		if got := (Rules{Version: r25c}).Wraps(tool); got != strings.Contains(tt.want, `"result"`) {
			t.Errorf("%s: Wraps = %v", tt.rule, got)
		}
	}
	runResults(t, []resultTest{
		{"Q10 drop as a switch", Rules{Version: r25c, DropNonObject: true}, "tools/list", list(`{"type":"array"}`), bare},
	})
}

// B-23: one bad entry never costs the list, although SDKs read lists as a whole.
func TestBadEntriesAreQuarantined(t *testing.T) {
	tests := []struct{ method, member, in, want, omitted string }{
		{
			"tools/list", "tools",
			`1,{"name":"a"},{"name":"b","inputSchema":{"type":"string"}},{"name":"ok","inputSchema":{"type":"object"}},{"inputSchema":{"type":"object"}},{"name":"c","inputSchema":{"type":"object","properties":1}},{"name":"d","inputSchema":true},{"name":"bad","inputSchema":{"type":"object"}}`,
			`{"name":"ok","inputSchema":{"type":"object"}}`, "/a/b//c/d/bad",
		},
		{"prompts/list", "prompts", `{"name":"p"},{"title":"x"}`, `{"name":"p"}`, ""},
		{"resources/list", "resources", `{"name":"p"},{"uri":"a:b","name":"n"}`, `{"uri":"a:b","name":"n"}`, "p"},
		{"resources/templates/list", "resourceTemplates", `{"uriTemplate":1,"name":"n"}`, ``, "n"},
	}
	for _, tt := range tests {
		for _, v := range mcp.Legacy {
			var omitted []string
			rules := Rules{
				Version: v,
				Report:  func(o Omission) { omitted = append(omitted, o.Name) },
				RejectTool: func(tool []byte) string {
					if string(rawjson.Get(tool, "name")) == `"bad"` {
						return "illegal x-mcp-header"
					}
					return ""
				},
			}
			in := `{"` + tt.member + `":[` + tt.in + `],"nextCursor":"n"}`
			got, err := rules.Result(tt.method, []byte(in))
			want := `{"` + tt.member + `":[` + tt.want + `],"nextCursor":"n"}`
			if err != nil || string(got) != want {
				t.Errorf("%s %s:\n got %s %v\nwant %s", v, tt.method, got, err, want)
			}
			if s := strings.Join(omitted, "/"); s != tt.omitted {
				t.Errorf("%s %s: reported %q, want %q", v, tt.method, s, tt.omitted)
			}
		}
	}
}

func TestPromptAndResourceLists(t *testing.T) {
	prompt := `{"prompts":[{"name":"p","title":"P","icons":[],"_meta":{},"arguments":[{"name":"a","title":"A","required":true}]}]}`
	resource := `{"resources":[{"uri":"a:b","name":"n","title":"N","size":9007199254740993,"icons":[],"_meta":{},"annotations":{"lastModified":"x","priority":1}}]}`
	old := `{"resources":[{"uri":"a:b","name":"n","size":9007199254740993,"annotations":{"priority":1}}]}`
	runResults(t, []resultTest{
		{"B.4 prompts", Rules{Version: r24}, "prompts/list", prompt, `{"prompts":[{"name":"p","arguments":[{"name":"a","required":true}]}]}`},
		{"B.4 prompts", Rules{Version: r25a}, "prompts/list", prompt, `{"prompts":[{"name":"p","arguments":[{"name":"a","required":true}]}]}`},
		{"B.4 prompts", Rules{Version: r25b}, "prompts/list", prompt, strings.Replace(prompt, `"icons":[],`, "", 1)},
		{"B.4 prompts", Rules{Version: r25c}, "prompts/list", prompt, "="},
		{"B.4 resources", Rules{Version: r24}, "resources/list", resource, old},
		{"B.4 resources", Rules{Version: r25a}, "resources/list", resource, old},
		{"B.4 resources", Rules{Version: r25b}, "resources/list", resource, strings.Replace(resource, `"icons":[],`, "", 1)},
		{"B.4 resources", Rules{Version: r25c}, "resources/list", resource, "="},
		{"B.4 templates", Rules{Version: r25a}, "resources/templates/list", `{"resourceTemplates":[{"uriTemplate":"a:{b}","name":"n","title":"t"}]}`, `{"resourceTemplates":[{"uriTemplate":"a:{b}","name":"n"}]}`},
	})
}
