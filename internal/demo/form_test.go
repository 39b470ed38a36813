package demo

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

func oneField(t *testing.T, property string, required bool) field {
	t.Helper()
	schema := `{"type":"object","properties":{"x":` + property + `}`
	if required {
		schema += `,"required":["x"]`
	}
	f, err := newForm(json.RawMessage(schema + "}"))
	if err != nil || len(f.fields) != 1 {
		t.Fatalf("newForm = %+v, %v", f, err)
	}
	return f.fields[0]
}

func TestFieldsAcceptWhatTheSchemaAllows(t *testing.T) {
	for _, c := range []struct {
		property, typed string
		want            any    // nil: refused
		says            string // in the refusal
	}{
		{`{"type":"boolean"}`, "Y", true, ""},
		{`{"type":"boolean"}`, "no", false, ""},
		{`{"type":"boolean"}`, "maybe", nil, "y or n"},
		{`{"type":"integer","minimum":0,"maximum":3}`, "2", 2.0, ""},
		{`{"type":"integer","minimum":0,"maximum":3}`, "4", nil, "from 0 to 3"},
		{`{"type":"integer"}`, "1.5", nil, "whole number"},
		{`{"type":"number"}`, "1.5", 1.5, ""},
		{`{"type":"number"}`, "NaN", nil, "number"},
		{`{"type":"number","minimum":1}`, "0", nil, "from 1 up"},
		{`{"type":"string"}`, "free text", "free text", ""},
		{`{"type":"string","maxLength":3}`, "four", nil, "up to 3"},
		{`{"type":"string","enum":["a","b"]}`, "2", "b", ""},
		{`{"type":"string","enum":["2","1"]}`, "2", "1", ""},
		{`{"type":"string","enum":["b","B"]}`, "B", "B", ""},
		{`{"type":"string","enum":["a","b"],"enumNames":["Ah","Be"]}`, "be", "b", ""},
		{`{"type":"string","oneOf":[{"const":"w","title":"Window"}]}`, "window", "w", ""},
		{`{"type":"string","oneOf":[{"const":"w","title":"Window"}]}`, "2", nil, "1 to 1"},
		{`{"type":"array","items":{"enum":["a","b","c"]}}`, "3, 1,3", []any{"c", "a"}, ""},
		{`{"type":"array","maxItems":1,"items":{"anyOf":[{"const":"a","title":"A"},{"const":"b","title":"B"}]}}`, "1 2", nil, "up to 1"},
	} {
		got, err := oneField(t, c.property, true).parse(c.typed)
		if c.want == nil {
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s ← %q: %v, %v; want a refusal with %q", c.property, c.typed, got, err, c.says)
			}
			continue
		}
		if err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s ← %q: %#v, %v; want %#v", c.property, c.typed, got, err, c.want)
		}
	}
}

func TestHintsShowDefaultsTheWayTheyAreTyped(t *testing.T) {
	for _, c := range []struct {
		property string
		required bool
		want     string
	}{
		{`{"type":"boolean","default":true}`, true, " (y/n, Enter = y)"},
		{`{"type":"integer","minimum":0,"maximum":3,"default":1}`, true, " (from 0 to 3, Enter = 1)"},
		{`{"type":"string","enum":["a","b"],"default":"b"}`, true, " (1-2, Enter = 2)"},
		{`{"type":"string"}`, false, " (Enter = leave out)"},
		{`{"type":"string"}`, true, ""},
	} {
		if got := oneField(t, c.property, c.required).hint(); got != c.want {
			t.Errorf("%s: hint %q, want %q", c.property, got, c.want)
		}
	}
}

func TestRequiredFieldsComeFirstInTheirOrder(t *testing.T) {
	f, err := newForm(json.RawMessage(`{"properties":{"a":{"type":"string"},"b":{"type":"string"},"c":{"type":"string"}},"required":["c","b","gone"]}`))
	if err != nil {
		t.Fatal(err)
	}
	var order string
	for _, field := range f.fields {
		order += field.name
	}
	if order != "cba" {
		t.Errorf("order %q, want cba", order)
	}
}

func TestAutomaticAnswersFitTheirSchema(t *testing.T) {
	for _, property := range []string{
		`{"type":"boolean"}`, `{"type":"integer","minimum":2.5,"maximum":4}`, `{"type":"string","minLength":6}`,
		`{"type":"string","enum":["a"]}`, `{"type":"array","minItems":2,"items":{"enum":["a","b","c"]}}`,
		`{"type":"number","default":7}`,
	} {
		f := oneField(t, property, true)
		auto := f.auto()
		if s, ok := auto.(string); ok && f.options == nil {
			if _, err := f.parse(s); err != nil {
				t.Errorf("%s: %v: %v", property, auto, err)
			}
		}
		if n, ok := auto.(float64); ok && !f.within(n) {
			t.Errorf("%s: %v is out of bounds", property, n)
		}
		if list, ok := auto.([]any); ok && !f.within(float64(len(list))) {
			t.Errorf("%s: %v is out of bounds", property, list)
		}
	}
}

func FuzzFormsNeverPanic(f *testing.F) {
	f.Add([]byte(destinationForm), "1")
	f.Add([]byte(detailsForm), "y")
	f.Add([]byte(`{"properties":{"x":{"type":"array","minItems":9,"items":{"enum":["a"]}}}}`), "1,2")
	f.Add([]byte(`{"properties":{"x":{"type":"string","minLength":1e300}}}`), "")
	f.Fuzz(func(_ *testing.T, schema []byte, typed string) {
		if !json.Valid(schema) {
			return
		}
		parsed, err := newForm(json.RawMessage(schema))
		if err != nil {
			return
		}
		for _, field := range parsed.fields {
			_ = field.hint()
			_ = field.auto()
			_, _ = field.parse(typed)
		}
	})
}
