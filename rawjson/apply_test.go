package rawjson

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func set(name, value string) Edit { return Edit{Name: name, Value: []byte(value)} }

func cut(name string) Edit { return Edit{Name: name} }

func TestApply(t *testing.T) {
	tests := []struct {
		obj   string
		edits []Edit
		want  string
	}{
		{`{}`, nil, `{}`},
		{` { "a" : 1 } `, nil, ` { "a" : 1 } `},
		{`{}`, []Edit{set("a", "1")}, `{"a":1}`},
		{`{ }`, []Edit{set("a", "1"), set("b", "2")}, `{"a":1,"b":2 }`},
		{``, []Edit{set("a", "1")}, `{"a":1}`},
		{` `, []Edit{cut("a")}, `{}`},
		{`{ "a" : 1 , "b":2 }`, []Edit{set("a", "3")}, `{ "a" : 3 , "b":2 }`},
		{`{ "a" : 1 , "b":2 }`, []Edit{set("c", "3")}, `{ "a" : 1 , "b":2,"c":3 }`},
		{`{ "a" : 1 , "b":2 }`, []Edit{cut("a")}, `{ "b":2 }`},
		{`{ "a" : 1 , "b":2 }`, []Edit{cut("b")}, `{ "a" : 1  }`},
		{`{ "a" : 1 , "b":2 }`, []Edit{cut("a"), cut("b")}, `{  }`},
		{`{"a":1}`, []Edit{cut("a"), set("b", "2")}, `{"b":2}`},
		{`{"a":1,"b":2,"c":3}`, []Edit{cut("a"), cut("b")}, `{"c":3}`},
		{`{"a":1,"b":2,"c":3}`, []Edit{cut("b"), cut("c")}, `{"a":1}`},
		{`{"a":1,"b":2,"c":3}`, []Edit{cut("a"), set("b", "4"), cut("c"), set("d", "5")}, `{"b":4,"d":5}`},
		{`{"a":1,"b":2,"c":3}`, []Edit{cut("b")}, `{"a":1,"c":3}`},
		{`{"a":1,"b":2,"c":3,"d":4}`, []Edit{cut("a"), cut("c")}, `{"b":2,"d":4}`},
		{`{"a":1}`, []Edit{cut("x")}, `{"a":1}`},
		{`{"a":{"b":1}}`, []Edit{set("b", "2")}, `{"a":{"b":1},"b":2}`},
		{`{"\u0061":1,"x\"y":2}`, []Edit{set("a", "3"), cut(`x"y`)}, `{"\u0061":3}`},
		{`{}`, []Edit{set("x\"<é", `"v"`)}, `{"x\"<é":"v"}`},
		{`{"a":1}`, []Edit{set("a", "2"), set("a", "3")}, `{"a":3}`},
		{`{"a":1}`, []Edit{set("a", "2"), cut("a")}, `{}`},
		{`{}`, []Edit{set("a", "2"), set("b", "1"), set("a", "3")}, `{"b":1,"a":3}`},
		{`[1]`, []Edit{set("a", "2")}, `[1]`},
		{`null`, []Edit{set("a", "2")}, `null`},
		{`{"a":9007199254740993,"b":"\ud800","c":null}`, []Edit{set("b", "1")}, `{"a":9007199254740993,"b":1,"c":null}`},
	}
	for _, tt := range tests {
		if got := string(Apply([]byte("x"), []byte(tt.obj), tt.edits...)); got != "x"+tt.want {
			t.Errorf("%s with %q: got %s, want x%s", tt.obj, tt.edits, got, tt.want)
		}
	}
}

func TestApplyTakesAnyNumberOfEdits(t *testing.T) {
	for _, n := range []int{63, 64, 65, 200} {
		var edits []Edit
		for k := range n {
			edits = append(edits, set(fmt.Sprint("m", k), fmt.Sprint(k)))
		}
		edits = append(edits, set("m0", `"last"`), cut("m1"))
		got := Apply(nil, []byte(`{"m1":0,"m5":0}`), edits...)
		if err := Validate(got); err != nil {
			t.Fatalf("%d edits: %s: %v", n, got, err)
		}
		if string(Get(got, "m0")) != `"last"` || Has(got, "m1") || string(Get(got, fmt.Sprint("m", n-1))) != fmt.Sprint(n-1) {
			t.Errorf("%d edits: %s", n, got)
		}
		twice := `{"m1":1,"m0":0,"m1":1,"m0":0}`
		if got := string(Apply(nil, []byte(twice), edits...)); !strings.HasPrefix(got, `{"m0":"last","m0":"last"`) || strings.Count(got, `"m0"`) != 2 || strings.Contains(got, `"m1"`) {
			t.Errorf("%d edits of members that are there twice: %s", n, got)
		}
	}
}

// A part is one member as a generated object spells it.
type part struct{ name, raw, value string }

var space = rapid.SampledFrom([]string{"", "", "", " ", "\n\t", "\r\n"})

// drawObject makes an object with odd spacing, escapes and values.
func drawObject(t *rapid.T) (string, []part) {
	names := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c", "d", `é`, `x"y`, "", "_meta", "a long name"}), 0, 6, rapid.ID[string]).Draw(t, "names")
	values := rapid.SampledFrom([]string{`1`, `-0.0`, `12345678901234567890`, `"\ud800"`, `"},{"`, `"a\\"`, `null`, `{ "a" : [ 1 ] }`, `[]`, `{"b":{"a":null}}`})
	var b strings.Builder
	var parts []part
	b.WriteString(space.Draw(t, "sp") + "{" + space.Draw(t, "sp"))
	for k, name := range names {
		if k > 0 {
			b.WriteString("," + space.Draw(t, "sp"))
		}
		raw := string(AppendQuote(nil, name))
		if name != "" && rapid.Bool().Draw(t, "escape") {
			raw = fmt.Sprintf(`"\u%04x`, []rune(name)[0]) + string(AppendQuote(nil, string([]rune(name)[1:])))[1:]
		}
		p := part{name: name, raw: raw, value: values.Draw(t, "value")}
		parts = append(parts, p)
		b.WriteString(raw + space.Draw(t, "sp") + ":" + space.Draw(t, "sp") + p.value + space.Draw(t, "sp"))
	}
	return b.String() + "}" + space.Draw(t, "sp"), parts
}

func drawEdits(t *rapid.T) []Edit {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Edit {
		value := rapid.SampledFrom([]string{"", "", `7`, `"new"`, `{"n":[]}`}).Draw(t, "new")
		return set(rapid.SampledFrom([]string{"a", "b", "c", `é`, `x"y`, "", "_meta", "n1", "n2"}).Draw(t, "edit"), value)
	}), 0, 6).Draw(t, "edits")
}

func TestApplyChangesNothingElse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		obj, parts := drawObject(t)
		edits := drawEdits(t)
		got := Apply(nil, []byte(obj), edits...)
		if err := Validate(got); err != nil {
			t.Fatalf("%s with %q became %s: %v", obj, edits, got, err)
		}
		var names []string // in the order that the result must have
		for _, p := range parts {
			k := lastEdit(edits, p.name)
			want := p.value
			if k >= 0 {
				want = string(edits[k].Value)
			} else if !strings.Contains(string(got), p.raw) {
				t.Fatalf("name %s is not byte-exact in %s", p.raw, got)
			}
			if value := string(Get(got, p.name)); value != want {
				t.Fatalf("%s with %q became %s: %q is %s, want %s", obj, edits, got, p.name, value, want)
			}
			if want != "" {
				names = append(names, p.name)
			}
		}
		for k, e := range edits {
			if lastEdit(edits, e.Name) == k && len(e.Value) > 0 && !slices.Contains(names, e.Name) {
				names = append(names, e.Name)
			}
			if value := string(Get(got, e.Name)); lastEdit(edits, e.Name) == k && value != string(e.Value) {
				t.Fatalf("%s with %q became %s: %q is %s", obj, edits, got, e.Name, value)
			}
		}
		var order []string
		for name := range Members(got) {
			order = append(order, string(name))
		}
		if !slices.Equal(order, names) {
			t.Fatalf("%s with %q became %s: order %q, want %q", obj, edits, got, order, names)
		}
	})
}

func lastEdit(edits []Edit, name string) int {
	last := -1
	for k, e := range edits {
		if e.Name == name {
			last = k
		}
	}
	return last
}

// Replacing alone must leave every byte outside of the values in its place.
func TestApplyReplacesInPlace(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		obj, parts := drawObject(t)
		if len(parts) == 0 {
			return
		}
		p := rapid.SampledFrom(parts).Draw(t, "target")
		at := strings.Index(obj, p.raw) + len(p.raw)
		at += strings.Index(obj[at:], p.value)
		want := obj[:at] + `"new"` + obj[at+len(p.value):]
		if got := string(Apply(nil, []byte(obj), set(p.name, `"new"`))); got != want && strings.Count(obj, p.raw) == 1 {
			t.Fatalf("%s: got %s, want %s", obj, got, want)
		}
		if got := string(Apply(nil, []byte(obj), cut("absent"))); got != obj {
			t.Fatalf("%s became %s", obj, got)
		}
	})
}

func FuzzApply(f *testing.F) {
	f.Add([]byte(` { "a" : 1 , "b":2, "c":[] } `), "a", "b", []byte("null"))
	f.Add([]byte(`{"\u0061":1}`), "a", "a", []byte(``))
	f.Fuzz(func(t *testing.T, obj []byte, x, y string, value []byte) {
		if len(value) > 0 && Validate(value) != nil {
			value = []byte("0")
		}
		got := Apply(nil, obj, Edit{x, value}, Edit{y, nil})
		if Validate(obj) != nil || KindOf(obj) != Object {
			return
		}
		if err := Validate(got); err != nil && !errors.Is(err, ErrDepth) {
			t.Fatalf("%q, set %q to %q, cut %q: %q: %v", obj, x, value, y, got, err)
		}
		if Has(got, y) {
			t.Errorf("%q is still in %q", y, got)
		}
		if x != y && len(value) > 0 && !slices.Equal(Get(got, x), bytes.TrimSpace(value)) && strings.ToValidUTF8(x, "") == x {
			t.Errorf("%q is %q in %q", x, Get(got, x), got)
		}
	})
}
