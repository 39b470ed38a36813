package form_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/mcpbridge/bridge/ask/form"
	"github.com/mcpbridge/bridge/rawjson"
)

func parse(t *testing.T, properties, required string) form.Form {
	t.Helper()
	f, err := form.Parse(fmt.Appendf(nil, `{"type":"object","properties":{%s},"required":[%s]}`, properties, required))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestAnswer(t *testing.T) {
	for _, test := range []struct {
		name, property, given string // given as a query
		content               string // empty: there is a problem
	}{
		{"text", `"type":"string"`, "a=Ada", `{"a":"Ada"}`},
		{"text with line breaks", `"type":"string"`, "a=x%0D%0Ay", `{"a":"x\ny"}`},
		{"hostile text stays text", `"type":"string"`, "a=%22%7D%3C", `{"a":"\"}<"}`},
		{"text too short", `"type":"string","minLength":3`, "a=Al", ""},
		{"length counts characters", `"type":"string","maxLength":2`, "a=%C3%A9%C3%A9", `{"a":"éé"}`},
		{"e-mail", `"type":"string","format":"email"`, "a=x@example.com", `{"a":"x@example.com"}`},
		{"no e-mail", `"type":"string","format":"email"`, "a=Ada+%3Cx@example.com%3E", ""},
		{"address", `"type":"string","format":"uri"`, "a=urn:x:y", `{"a":"urn:x:y"}`},
		{"no address", `"type":"string","format":"uri"`, "a=example.com", ""},
		{"date", `"type":"string","format":"date"`, "a=2026-02-28", `{"a":"2026-02-28"}`},
		{"no date", `"type":"string","format":"date"`, "a=2026-02-30", ""},
		{"date and time", `"type":"string","format":"date-time"`, "a=2026-02-28T10:00:00%2B01:00", `{"a":"2026-02-28T10:00:00+01:00"}`},
		{"as a browser writes it", `"type":"string","format":"date-time"`, "a=2026-02-28T10:00", `{"a":"2026-02-28T10:00:00Z"}`},
		{"whole number", `"type":"integer"`, "a=+12+", `{"a":12}`},
		{"large number", `"type":"integer"`, "a=12345678901234567890", `{"a":12345678901234567890}`},
		{"number with a fraction of nothing", `"type":"integer"`, "a=12.0", `{"a":12}`},
		{"no whole number", `"type":"integer"`, "a=1.5", ""},
		{"number", `"type":"number"`, "a=1.50", `{"a":1.50}`},
		{"number in another spelling", `"type":"number"`, "a=%2B.5", `{"a":0.5}`},
		{"number out of bounds", `"type":"number","maximum":10`, "a=10.1", ""},
		{"hexadecimal", `"type":"number"`, "a=0x10", ""},
		{"not a number", `"type":"number"`, "a=NaN", ""},
		{"huge exponent", `"type":"integer"`, "a=1e999999999", ""},
		{"yes", `"type":"boolean"`, "a=true", `{"a":true}`},
		{"no", `"type":"boolean"`, "", `{"a":false}`},
		{"choice", `"type":"string","enum":["r","g"]`, "a=g", `{"a":"g"}`},
		{"no such choice", `"type":"string","enum":["r","g"]`, "a=b", ""},
		{"choice with a blank", `"type":"string","enum":["g","g "]`, "a=g+", `{"a":"g "}`},
		{"no such choice with a blank", `"type":"string","enum":["r","g"]`, "a=g+", ""},
		{"titled choice", `"type":"string","oneOf":[{"const":"r","title":"Red"}]`, "a=r", `{"a":"r"}`},
		{"choices", `"type":"array","items":{"type":"string","enum":["r","g"]}`, "a=r&a=g", `{"a":["r","g"]}`},
		{"titled choices", `"type":"array","items":{"anyOf":[{"const":"r","title":"Red"}]}`, "a=r", `{"a":["r"]}`},
		{"too many choices", `"type":"array","maxItems":1,"items":{"enum":["r","g"]}`, "a=r&a=g", ""},
		{"a choice twice", `"type":"array","items":{"enum":["r","g"]}`, "a=r&a=r", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			given, err := url.ParseQuery(test.given)
			if err != nil {
				t.Fatal(err)
			}
			content, problems := parse(t, `"a":{`+test.property+`}`, `"a"`).Answer(given)
			if string(content) != test.content || (test.content == "") != (len(problems) > 0) {
				t.Errorf("got %s %v, want %s", content, problems, test.content)
			}
		})
	}
}

func TestWhatIsLeftOut(t *testing.T) {
	f := parse(t, `"a":{"type":"string"},"b":{"type":"integer"},"c":{"type":"array","items":{"enum":["x"]}}`, "")
	if content, problems := f.Answer(url.Values{"a": {""}, "b": {" "}}); string(content) != "{}" {
		t.Errorf("got %s %v", content, problems)
	}
	f = parse(t, `"a":{"type":"string"}`, `"a"`)
	if _, problems := f.Answer(url.Values{}); problems["a"] == "" {
		t.Error("a required field was left out without a problem")
	}
}

func TestProblemsDoNotRepeatTheValue(t *testing.T) {
	f := parse(t, `"a":{"type":"string","format":"email"},"b":{"type":"number"}`, "")
	_, problems := f.Answer(url.Values{"a": {"S3CRET"}, "b": {"S3CRET"}})
	if len(problems) != 2 || strings.Contains(fmt.Sprint(problems), "S3CRET") {
		t.Error(problems)
	}
}

func TestDefaults(t *testing.T) {
	for schema, want := range map[string]string{
		`"a":{"type":"string","default":"x"},"b":{"type":"number","default":1.5},"c":{"type":"boolean","default":true},"d":{"type":"array","items":{"enum":["x","y"]},"default":["y"]}`: `{"a":"x","b":1.5,"c":true,"d":["y"]}`,
		`"a":{"type":"string","enum":["b"," b"],"default":" b"}`:                         `{"a":" b"}`,
		`"a":{"type":"string","enum":["b"],"default":" b"}`:                              "",
		`"a":{"type":"string"}`:                                                          "",
		`"a":{"type":"string","enum":["\ufffd","\ud800","\ud801"],"default":"\ud801"}`:   `{"a":"\ud801"}`,
		`"a":{"type":"string","enum":["\ufffd","\ud800"],"default":"\ud801"}`:            "",
		`"a":{"type":"string","default":"\ud801x","maxLength":2}`:                        `{"a":"\ud801x"}`,
		`"a":{"type":"array","items":{"enum":["\ud800","\ud801"]},"default":["\ud801"]}`: `{"a":["\ud801"]}`,
		`"a":{"type":"string","enum":["x"],"default":"y"}`:                               "",
	} {
		content, ok := parse(t, schema, `"a"`).Defaults()
		if string(content) != want || ok != (want != "") {
			t.Errorf("%s: got %s", schema, content)
		}
	}
}

func TestParseSpellings(t *testing.T) {
	f := parse(t, `"z":{"type":"string","enum":["r","g"],"enumNames":["Red","Green"]},"a":{"type":"string","title":"Given name"}`, "")
	if f.Fields[0].Name != "z" || f.Fields[0].Options[1] != (form.Option{Value: "g", Title: "Green"}) {
		t.Errorf("got %+v", f.Fields[0])
	}
	if f.Fields[1].Title != "Given name" || f.Fields[0].Title != "z" {
		t.Error("a field is called by its title, or else by its name")
	}
}

func TestParseRefuses(t *testing.T) {
	many := ""
	for i := range form.MaxFields + 1 {
		many += fmt.Sprintf(`,"x%d":{"type":"string"}`, i)
	}
	for name, properties := range map[string]string{
		"nested object":        `"a":{"type":"object"}`,
		"no type":              `"a":{}`,
		"list without options": `"a":{"type":"array","items":{"type":"string"}}`,
		"too many fields":      many[1:],
	} {
		if _, err := form.Parse([]byte(`{"properties":{` + properties + `}}`)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, err := form.Parse([]byte(`{}`)); err == nil {
		t.Error("no properties: no error")
	}
}

func TestLongTextsAreCut(t *testing.T) {
	f := parse(t, `"a":{"type":"string","description":"`+strings.Repeat("é", 10000)+`"}`, "")
	if n := len([]rune(f.Fields[0].Description)); n > 2001 {
		t.Errorf("%d characters", n)
	}
}

// Whatever a browser submits, the content is valid JSON with the schema's own names.
func TestAnswerIsAlwaysJSON(t *testing.T) {
	f := parse(t, `"a":{"type":"string"},"b":{"type":"number"},"c":{"type":"integer"},"d":{"type":"string","format":"date-time"}`, "")
	rapid.Check(t, func(t *rapid.T) {
		given := url.Values{}
		for _, name := range []string{"a", "b", "c", "d", "other"} {
			given[name] = rapid.SliceOfN(rapid.OneOf(rapid.String(), rapid.StringMatching(`[-+]?[0-9]{1,30}(\.[0-9]+)?([eE][0-9]{1,3})?`)), 0, 2).Draw(t, name)
		}
		content, problems := f.Answer(given)
		if problems != nil {
			return
		}
		if err := rawjson.Validate(content); err != nil {
			t.Fatalf("%s: %v", content, err)
		}
		var members map[string]json.RawMessage
		if err := json.Unmarshal(content, &members); err != nil || members["other"] != nil {
			t.Fatalf("%s: %v", content, err)
		}
	})
}

// What is false, empty or left out is a value, too, where the schema says so.
func TestDefaultsThatSayNo(t *testing.T) {
	f := parse(t, `"b":{"type":"boolean","default":false},"l":{"type":"array","items":{"type":"string","enum":["x"]},"default":[]},`+
		`"o":{"type":"array","minItems":1,"items":{"type":"string","enum":["x"]}}`, `"b","l"`)
	if content, ok := f.Defaults(); !ok || string(content) != `{"b":false,"l":[]}` {
		t.Errorf("%t %s", ok, content)
	}
	if f := parse(t, `"c":{"type":"string","oneOf":[{"const":"x"}]}`, ""); f.Fields[0].Options[0].Title != "x" {
		t.Errorf("an option without a title is shown as %q", f.Fields[0].Options[0].Title)
	}
}

// The empty text is a value where the schema says so, and nowhere else.
func TestEmptyTexts(t *testing.T) {
	f := parse(t, `"a":{"type":"string","default":""},"b":{"type":"string","enum":["","x"]}`, `"a","b"`)
	if content, problems := f.Answer(url.Values{"a": {""}, "b": {""}}); string(content) != `{"a":"","b":""}` {
		t.Errorf("%s %v", content, problems)
	}
	if _, problems := f.Answer(url.Values{"a": {""}}); problems["b"] == "" || problems["a"] != "" {
		t.Error(problems)
	}
	if content, ok := parse(t, `"a":{"type":"string","default":""}`, `"a"`).Defaults(); !ok || string(content) != `{"a":""}` {
		t.Errorf("%t %s", ok, content)
	}
	if _, ok := parse(t, `"a":{"type":"string","default":"","minLength":1}`, `"a"`).Defaults(); ok {
		t.Error("a default that is too short is taken")
	}
}

// A list of defaults may be as long as a message. What is kept of it are options, each
// once, and a form that answers for itself does so with a list of these only.
func TestDefaultsAreOptions(t *testing.T) {
	const list = `"l":{"type":"array","items":{"type":"string","enum":["x","y"]},"default":[%s]}`
	for defaults, want := range map[string]string{
		`"y","x"`: "y x", `"x"`: "x", ``: "", `"x","x"`: "x!", `"x","z"`: "x!", `"x",1`: "x!", strings.Repeat(`"z",`, 1_000_000) + `"y"`: "y!",
	} {
		f := parse(t, fmt.Sprintf(list, defaults), "")
		want, strays := strings.CutSuffix(want, "!")
		if got := strings.Join(f.Fields[0].Default, " "); got != want {
			t.Errorf("%.50s: %.50s", defaults, got)
		}
		if _, ok := f.Defaults(); ok == strays {
			t.Errorf("%.50s: answers for itself: %t", defaults, ok)
		}
	}
	if f := parse(t, `"a":{"type":"string","default":["x"]}`, ""); f.Fields[0].Default != nil {
		t.Error("a text's default is a list")
	}
}

// What a page draws is bounded in all, not only for each field.
func TestOptionsOfAllFieldsAreBounded(t *testing.T) {
	fields := func(each int) string {
		values := strings.TrimSuffix(strings.Repeat(`"x",`, each), ",")
		all := ""
		for i := range form.MaxChoices / form.MaxOptions {
			all += fmt.Sprintf(`,"f%d":{"type":"string","enum":[%s]}`, i, values)
		}
		return `{"properties":{"z":{"type":"string","enum":["a"]}` + all + `}}`
	}
	if _, err := form.Parse([]byte(fields(form.MaxOptions - 1))); err != nil {
		t.Error(err)
	}
	if _, err := form.Parse([]byte(fields(form.MaxOptions))); err == nil {
		t.Error("no error")
	}
}

// A length is that of what the server gets.
func TestLengthOfARewrittenDate(t *testing.T) {
	f := parse(t, `"a":{"type":"string","format":"date-time","maxLength":16}`, "")
	if content, problems := f.Answer(url.Values{"a": {"2026-01-31T15:04"}}); problems == nil {
		t.Errorf("%s is longer than 16 characters", content)
	}
}

func TestBoundsInWords(t *testing.T) {
	for property, want := range map[string]string{
		`"type":"string","minLength":1`:                          "at least 1 character",
		`"type":"string","maxLength":2`:                          "at most 2 characters",
		`"type":"string","minLength":1,"maxLength":1`:            "exactly 1 character",
		`"type":"array","minItems":1,"items":{"enum":["x"]}`:     "at least 1 option",
		`"type":"array","maxItems":3,"items":{"enum":["x","y"]}`: "at most 3 options",
		`"type":"integer","minimum":1,"maximum":9`:               "from 1 to 9",
	} {
		if f := parse(t, `"a":{`+property+`}`, ""); f.Fields[0].Bounds() != want {
			t.Errorf("%s: %q", property, f.Fields[0].Bounds())
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"properties":{"a":{"type":"string","enum":["x"],"default":"x"},"b":{"type":"integer","minimum":1}}}`))
	f.Fuzz(func(t *testing.T, schema []byte) {
		if rawjson.Validate(schema) != nil {
			return
		}
		parsed, err := form.Parse(schema)
		if err != nil {
			return
		}
		if content, ok := parsed.Defaults(); ok && rawjson.Validate(content) != nil {
			t.Errorf("%s", content)
		}
	})
}

// What a form has beyond its bounds costs nothing: a schema may be as long as a message.
func TestNothingIsReadOfAFormBeyondItsBounds(t *testing.T) {
	const many = 200_000
	var names strings.Builder
	for i := range many {
		fmt.Fprintf(&names, `"%d",`, i)
	}
	list := `[` + names.String() + `"a"]`
	for _, schema := range []string{
		`{"properties":{"a":{"type":"string","enum":` + list + `}}}`,
		`{"properties":{"a":{"type":"array","items":{"anyOf":[` + strings.Repeat(`{"const":"ab"},`, many) + `{}]}}}}`,
		`{"properties":{"a":{"type":"string","enum":["a"],"enumNames":` + list + `}}}`,
		`{"properties":{"a":{"type":"string"}},"required":` + list + `}`,
	} {
		if n := testing.AllocsPerRun(1, func() { _, _ = form.Parse([]byte(schema)) }); n > 3*form.MaxOptions {
			t.Errorf("%.60s: %v allocations", schema, n)
		}
	}
}
