package mirror

import (
	"fmt"
	"strings"
	"testing"
)

var schemaCases = []struct {
	name   string
	schema string
	want   string // bindings as path=header, or "illegal"
}{
	{"none", `{"type":"object","properties":{"a":{"type":"string"}}}`, ""},
	{"string, integer, boolean", `{"properties":{"a":{"type":"string","x-mcp-header":"A"},"b":{"type":"integer","x-mcp-header":"B"},"c":{"type":"boolean","x-mcp-header":"C"}}}`,
		"a=Mcp-Param-A b=Mcp-Param-B c=Mcp-Param-C"},
	{"nested through properties", `{"properties":{"o":{"type":"object","properties":{"p":{"type":"string","x-mcp-header":"P"}}}}}`, "o.p=Mcp-Param-P"},
	{"B-22 nullable", `{"properties":{"a":{"type":["string","null"],"x-mcp-header":"A"}}}`, "a=Mcp-Param-A"},
	{"two types", `{"properties":{"a":{"type":["string","integer"],"x-mcp-header":"A"}}}`, "illegal"},
	{"B-21 a property of that name", `{"properties":{"x-mcp-header":{"type":"string"}}}`, ""},
	{"B-21 inside data", `{"properties":{"a":{"default":{"x-mcp-header":"A"},"const":{"x-mcp-header":"A"},"enum":[{"x-mcp-header":"A"}],"examples":[{"x-mcp-header":"A"}]}}}`, ""},
	{"spelled with escapes", `{"properties":{"a":{"type":"string","x\u002dmcp-header":"A"}}}`, "a=Mcp-Param-A"},
	{"number", `{"properties":{"a":{"type":"number","x-mcp-header":"A"}}}`, "illegal"},
	{"object", `{"properties":{"a":{"type":"object","x-mcp-header":"A"}}}`, "illegal"},
	{"no type", `{"properties":{"a":{"x-mcp-header":"A"}}}`, "illegal"},
	{"empty name", `{"properties":{"a":{"type":"string","x-mcp-header":""}}}`, "illegal"},
	{"name is no token", `{"properties":{"a":{"type":"string","x-mcp-header":"A B"}}}`, "illegal"},
	{"name breaks the line", `{"properties":{"a":{"type":"string","x-mcp-header":"A\r\nB"}}}`, "illegal"},
	{"name is no string", `{"properties":{"a":{"type":"string","x-mcp-header":1}}}`, "illegal"},
	{"same name in another case", `{"properties":{"a":{"type":"string","x-mcp-header":"A"},"b":{"type":"string","x-mcp-header":"a"}}}`, "illegal"},
	{"root", `{"x-mcp-header":"A","type":"string"}`, "illegal"},
	{"items", `{"properties":{"a":{"items":{"type":"string","x-mcp-header":"A"}}}}`, "illegal"},
	{"prefixItems", `{"properties":{"a":{"prefixItems":[{"type":"string","x-mcp-header":"A"}]}}}`, "illegal"},
	{"oneOf", `{"oneOf":[{"properties":{"a":{"type":"string","x-mcp-header":"A"}}}]}`, "illegal"},
	{"anyOf in a property", `{"properties":{"a":{"anyOf":[{"type":"string","x-mcp-header":"A"}]}}}`, "illegal"},
	{"allOf", `{"allOf":[{"properties":{"a":{"type":"string","x-mcp-header":"A"}}}]}`, "illegal"},
	{"not", `{"not":{"properties":{"a":{"type":"string","x-mcp-header":"A"}}}}`, "illegal"},
	{"if, then, else", `{"then":{"properties":{"a":{"type":"string","x-mcp-header":"A"}}}}`, "illegal"},
	{"$defs", `{"$defs":{"d":{"type":"string","x-mcp-header":"A"}}}`, "illegal"},
	{"definitions", `{"definitions":{"d":{"type":"string","x-mcp-header":"A"}}}`, "illegal"},
	{"additionalProperties", `{"additionalProperties":{"type":"string","x-mcp-header":"A"}}`, "illegal"},
	{"patternProperties", `{"patternProperties":{".*":{"type":"string","x-mcp-header":"A"}}}`, "illegal"},
	{"dependentSchemas", `{"dependentSchemas":{"a":{"properties":{"a":{"type":"string","x-mcp-header":"A"}}}}}`, "illegal"},
	{"properties below items", `{"properties":{"l":{"items":{"properties":{"a":{"type":"string","x-mcp-header":"A"}}}}}}`, "illegal"},
	{"boolean schemas", `{"properties":{"a":true,"b":false},"additionalProperties":false}`, ""},
}

func TestB19B20B21SchemaWalk(t *testing.T) {
	for _, tc := range schemaCases {
		p := parsePlan([]byte(tc.schema))
		var got []string
		for _, b := range p.bindings {
			got = append(got, strings.Join(b.path, ".")+"="+b.header)
		}
		text := strings.Join(got, " ")
		if p.illegal != "" {
			text = "illegal"
		}
		if text != tc.want {
			t.Errorf("%s: %q (%s), want %q", tc.name, text, p.illegal, tc.want)
		}
	}
}

func TestB13HeadersFollowTheArgumentsAtTheExactPath(t *testing.T) {
	p := parsePlan([]byte(`{"properties":{"a":{"type":"string","x-mcp-header":"A"},"o":{"type":"object","properties":{"n":{"type":"integer","x-mcp-header":"N"}}}}}`))
	for args, want := range map[string]string{
		`{"a":"x","o":{"n":42.0}}`:      "[{Mcp-Param-A x} {Mcp-Param-N 42}]",
		`{"a":"","o":{"n":null}}`:       "[{Mcp-Param-A }]",
		`{"o":1}`:                       "[]",
		`{"n":5,"o":[{"n":5}]}`:         "[]",
		`{"a":{"a":"x"},"o":{"n":1.5}}`: "[]",
		`{"\u0061":"é"}`:                "[{Mcp-Param-A =?base64?w6k=?=}]",
		``:                              "[]",
	} {
		if got := fmt.Sprint(p.AppendFields(nil, []byte(args))); got != want {
			t.Errorf("%s: %s, want %s", args, got, want)
		}
	}
}

// A server that compares headers with the body looks for one wherever a value is that makes one.
func TestB17TheValueMakesTheHeaderWhateverItsSchemaSays(t *testing.T) {
	for typ, args := range map[string]map[string]string{
		"string":  {`5`: "5", `true`: "true", `1.5`: "", `[1]`: "", `{"b":1}`: "", `null`: ""},
		"integer": {`"x"`: "x", `false`: "false", `1.5`: ""},
		"boolean": {`"true"`: "true", `0`: "0", `[true]`: ""},
	} {
		p := parsePlan([]byte(`{"properties":{"a":{"type":"` + typ + `","x-mcp-header":"A"}}}`))
		for arg, text := range args {
			want := "[]"
			if text != "" {
				want = "[{Mcp-Param-A " + text + "}]"
			}
			if got := fmt.Sprint(p.AppendFields(nil, []byte(`{"a":`+arg+`}`))); got != want {
				t.Errorf("%s, %s: %s, want %s", typ, arg, got, want)
			}
		}
	}
}

// Arguments far down are not looked for from the top for each header: that would take
// minutes.
func TestDeepArgumentsAreGoneIntoOnce_B13(t *testing.T) {
	schema, args := `"z":{"type":"array"}`, `"z":[`+strings.Repeat("0,", 1<<20)+`0]`
	for i := range maxBindings {
		schema += fmt.Sprintf(`,"p%d":{"type":"string","x-mcp-header":"H%d"}`, i, i)
		args += fmt.Sprintf(`,"p%d":"%d"`, i, i)
	}
	schema, args = `{"properties":{`+schema+`}}`, `{`+args+`}`
	for range 120 {
		schema, args = `{"properties":{"a":`+schema+`}}`, `{"a":`+args+`}`
	}
	fields := parsePlan([]byte(schema)).AppendFields(nil, []byte(args))
	if len(fields) != maxBindings || fields[63] != (Field{Name: "Mcp-Param-H63", Value: "63"}) {
		t.Errorf("%v", fields)
	}
	var f finder
	for _, path := range [][]string{{"a", "b"}, {"a", "b", "c"}, {"d"}, {"a", "e"}, {"x", "b"}, {"a", "b"}} {
		want := map[string]string{"a.b": `{"c":1}`, "a.b.c": "1", "d": "2", "a.e": "3"}[strings.Join(path, ".")]
		if got := string(f.find([]byte(`{"a":{"b":{"c":1},"e":3},"d":2}`), path)); got != want {
			t.Errorf("%v: %s, want %s", path, got, want)
		}
	}
}

const (
	goodTool  = `{"name":"good","inputSchema":{"type":"object","properties":{"r":{"type":"string","x-mcp-header":"R"}}}}`
	badTool   = `{"name":"bad","inputSchema":{"type":"object","properties":{"r":{"type":"number","x-mcp-header":"R"}}}}`
	plainTool = `{"name":"plain","inputSchema":{"type":"object"}, "big":12345678901234567890}`
)

func TestB23IllegalToolsAreDroppedAndEverythingElseKeepsItsBytes(t *testing.T) {
	var s Tools
	in := `{"resultType":"complete", "tools":[` + goodTool + `, ` + badTool + `,` + plainTool + `],"nextCursor":""}`
	out, dropped := s.Learn("p", []byte(in))
	want := `{"resultType":"complete", "tools":[` + goodTool + `,` + plainTool + `],"nextCursor":""}`
	if string(out) != want {
		t.Fatalf("result %s", out)
	}
	if len(dropped) != 1 || dropped[0].Name != "bad" || dropped[0].Reason == "" {
		t.Fatalf("dropped %+v", dropped)
	}
	if _, again := s.Learn("p", []byte(in)); len(again) != 0 {
		t.Fatalf("reported again: %+v", again)
	}
	if p := s.Plan("p", []byte("bad")); p == nil || p.illegal == "" {
		t.Fatal("the illegal tool was forgotten")
	}
	only := `{"tools":[` + badTool + `]}`
	if out, _ := s.Learn("p", []byte(only)); string(out) != `{"tools":[]}` {
		t.Fatalf("result %s", out)
	}
}

// P-6: a tool is not dropped, or given headers, for another one whose name differs in half a character.
func TestPlansAreOfOneTool_B23(t *testing.T) {
	var s Tools
	name := func(tool, name string) string { return `{"name":"` + name + tool[strings.Index(tool, `","`):] }
	in := `{"tools":[` + name(goodTool, `\ud800`) + `,` + name(badTool, `\ud801`) + `,` + name(plainTool, `\udc00`) + `]}`
	out, _ := s.Learn("p", []byte(in))
	if want := `{"tools":[` + name(goodTool, `\ud800`) + `,` + name(plainTool, `\udc00`) + `]}`; string(out) != want {
		t.Errorf("result %s", out)
	}
	if p := s.Plan("p", []byte("\xed\xa0\x80")); p == nil || p.illegal != "" {
		t.Errorf("the tool's own schema is not known: %+v", p)
	}
}

func TestB24TheNewestSchemaOfEachPrincipalCounts(t *testing.T) {
	var s Tools
	s.Learn("a", []byte(`{"tools":[`+goodTool+`]}`))
	if s.Plan("a", []byte("good")) == nil || s.Plan("b", []byte("good")) != nil {
		t.Fatal("the schema is not the principal's own")
	}
	s.Learn("a", []byte(`{"tools":[`+plainTool+`]}`)) // another page
	if s.Plan("a", []byte("good")) == nil {
		t.Fatal("another page made the tool forgotten")
	}
	s.Learn("a", []byte(`{"tools":[{"name":"good","inputSchema":{"type":"object"}}]}`))
	if s.Plan("a", []byte("good")) != nil {
		t.Fatal("the old schema still counts")
	}
	s.Learn("b", []byte(`{"tools":[`+goodTool+`]}`))
	s.Learn("c", []byte(`{"tools":[`+goodTool+`]}`))
	if s.Plan("b", []byte("good")) != s.Plan("c", []byte("good")) {
		t.Fatal("one schema text was parsed twice")
	}
}

func TestStoreIsBounded(t *testing.T) {
	var s Tools
	page := []byte(`{"tools":[` + goodTool + `]}`)
	for i := range 2 * maxAudiences {
		s.Learn(fmt.Sprint(i), page)
		s.Plan("0", []byte("good"))
	}
	if n := len(*s.audiences.Load()); n > maxAudiences {
		t.Fatalf("%d audiences", n)
	}
	if s.Plan("0", []byte("good")) == nil {
		t.Fatal("a principal in constant use was forgotten")
	}
	tools := make([]string, maxTools+100)
	for i := range tools {
		tools[i] = strings.Replace(goodTool, "good", fmt.Sprint("t", i), 1)
	}
	s.Learn("0", []byte(`{"tools":[`+strings.Join(tools, ",")+`]}`))
	if n := len(*s.of("0").tools.Load()); n > maxTools {
		t.Fatalf("%d tools", n)
	}
}

func TestStoreIgnoresResultsWithoutTools(t *testing.T) {
	var s Tools
	for _, in := range []string{`{}`, `{"tools":null}`, `{"tools":{}}`, `{"tools":[1,{"x-mcp-header":1},{"name":2}]}`} {
		if out, dropped := s.Learn("", []byte(in)); string(out) != in || dropped != nil {
			t.Errorf("%s: %s, %v", in, out, dropped)
		}
	}
}

func (s *Tools) check(t *testing.T) {
	t.Helper()
	all := 0
	for audience, set := range *s.audiences.Load() {
		size := 0
		for name, p := range *set.tools.Load() {
			size += sizeOf(name, p)
		}
		if all += size; size != set.size || size > maxSetBytes {
			t.Errorf("the tools of %s have %d bytes, and %d are counted", audience, size, set.size)
		}
	}
	if all != s.size || all > maxBytes {
		t.Errorf("all have %d bytes, and %d are counted", all, s.size)
	}
}

// What is remembered of tools is bounded in bytes, whatever servers call them and their
// parameters, and whoever asks.
func TestWhatIsRememberedOfToolsIsBoundedInBytes(t *testing.T) {
	tool := func(name, parameter string) string {
		return fmt.Sprintf(`{"name":%q,"inputSchema":{"type":"object","properties":{%q:{"type":"string","x-mcp-header":"Region"}}}}`, name, parameter)
	}
	page := func(tools ...string) []byte { return []byte(`{"tools":[` + strings.Join(tools, ",") + `]}`) }
	var s Tools
	out, dropped := s.Learn("somebody", page(tool("short", "region"), tool(strings.Repeat("x", maxName+1), "region"), tool("deep", strings.Repeat("x", maxBindingBytes))))
	if string(out) != string(page(tool("short", "region"))) || len(dropped) != 2 {
		t.Errorf("left is %.200s, dropped %d", out, len(dropped))
	}
	if tools := *s.of("somebody").tools.Load(); len(tools) != 2 || tools["deep"].size != 0 {
		t.Errorf("%d tools are remembered", len(tools))
	}
	s.check(t)
	for i := range 2 * maxBytes / maxSetBytes {
		var tools []string
		for n := range 2 * maxSetBytes / maxBindingBytes {
			tools = append(tools, tool(fmt.Sprint(n), strings.Repeat("x", maxBindingBytes-10)))
		}
		s.Learn(fmt.Sprint(i), page(tools...))
		s.Learn(fmt.Sprint(i), page(tool("0", "region")))
	}
	s.check(t)
	if last := fmt.Sprint(2*maxBytes/maxSetBytes - 1); s.of(last) == nil || s.of("0") != nil {
		t.Error("those that were not used for longest are not the ones that went")
	}
}

// A schema that nests deeply is gone over once, not once more for each level: those below took
// half a minute.
func TestDeepSchemasAreGoneOverOnce_B21(t *testing.T) {
	const levels = 100 // of schemas
	data := `"const":[` + strings.Repeat("0,", 4<<20) + `0]`
	for before, after := range map[string]string{`{"not":`: `}`, `{"properties":{"a":`: `}}`, `{"anyOf":[`: `]}`} {
		deep := strings.Repeat(before, levels) + `{` + data + `}` + strings.Repeat(after, levels)
		for range 4 {
			p := parsePlan([]byte(`{"properties":{"h":{"type":"string","x-mcp-header":"H"},"deep":` + deep + `}}`))
			if p.illegal != "" || len(p.bindings) != 1 {
				t.Fatalf("%s: %q, %d bindings", before, p.illegal, len(p.bindings))
			}
		}
	}
}

// The type of an annotated parameter is found as its schema is gone over, be it behind all that is nested in
// it: that costs no more for many such parameters, one within the other, than for few.
func TestTypesAreFoundInOnePass_B19(t *testing.T) {
	data := `{"const":[` + strings.Repeat("0,", 1<<20) + `0]}`
	schema := func(levels int, typ string) []byte {
		before := ""
		for i := range levels {
			before += fmt.Sprintf(`{"x-mcp-header":"H%d","properties":{"p":`, i)
		}
		return []byte(`{"properties":{"p":` + before + data + strings.Repeat(fmt.Sprintf(`},"type":%q}`, typ), levels) + `}}`)
	}
	work := func(levels int) int64 {
		text := schema(levels, "string")
		return testing.Benchmark(func(b *testing.B) {
			for b.Loop() {
				if p := parsePlan(text); p.illegal != "" || len(p.bindings) != levels || p.bindings[1].header != "Mcp-Param-H1" {
					b.Fatalf("%q, %d bindings", p.illegal, len(p.bindings))
				}
			}
		}).NsPerOp()
	}
	if few, many := work(2), work(60); few == 0 || many > 5*few {
		t.Errorf("%d levels cost %d times what 2 do", 60, many/max(few, 1))
	}
	if p := parsePlan(schema(2, "object")); p.illegal == "" {
		t.Error("an object is no parameter that a header repeats")
	}
}

// A parameter's path is not copied for each parameter beside it, however deep they stand.
func TestPathsAreKeptOfAnnotatedParametersOnly_B19(t *testing.T) {
	const n, levels = 1 << 10, 100
	deep := func(schema string) []byte {
		return []byte(strings.Repeat(`{"properties":{"above":`, levels) + schema + strings.Repeat(`}}`, levels))
	}
	var plain string
	for k := range n {
		plain += fmt.Sprintf(`"parameter%d":{},`, k)
	}
	many := deep(`{"properties":{` + plain + `"a":{"type":"string","x-mcp-header":"A"},"b":{"properties":{"c":{"type":"string","x-mcp-header":"C"}}},"d":{}}}`)
	p := parsePlan(many)
	above := strings.Repeat("above.", levels)
	if len(p.bindings) != 2 || strings.Join(p.bindings[0].path, ".") != above+"a" || strings.Join(p.bindings[1].path, ".") != above+"b.c" {
		t.Errorf("%+v", p)
	}
	if got := testing.AllocsPerRun(5, func() { parsePlan(many) }); got > 1.5*n {
		t.Errorf("%v allocations for %d parameters", got, n)
	}
}

// A page is as long as a response may be; of tools without annotations only those are noted that had some.
func TestToolsWithoutAnnotationsAreNotNoted_B24(t *testing.T) {
	var s Tools
	s.Learn("a", []byte(`{"tools":[{"name":"had","inputSchema":{"type":"object","properties":{"x":{"type":"string","x-mcp-header":"X"}}}}]}`))
	if s.Plan("a", []byte("had")) == nil {
		t.Fatal("an annotation is not known")
	}
	tools := []byte(`[{"name":"had","inputSchema":{}},{"name":"never","inputSchema":{}}]`)
	page, _ := s.readPage(tools, *s.of("a").tools.Load())
	if _, noted := page["never"]; noted || len(page) != 1 {
		t.Errorf("noted are %v", page)
	}
	s.Learn("a", []byte(`{"tools":`+string(tools)+`}`))
	if s.Plan("a", []byte("had")) != nil {
		t.Error("an annotation that is gone is known")
	}
}
