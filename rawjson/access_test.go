package rawjson

import (
	"bytes"
	"encoding/json"
	"hash/maphash"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestKindOf(t *testing.T) {
	for text, want := range map[string]Kind{
		``: Invalid, ` `: Invalid, `x`: Invalid, ` null`: Null, `true`: True, `false`: False,
		`"a"`: String, `-1`: Number, `7`: Number, "\n{}": Object, `[]`: Array,
	} {
		if got := KindOf([]byte(text)); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

func TestMembersAndElementsKeepOrderAndBytes(t *testing.T) {
	var got []string
	for name, value := range Members([]byte(` { "b" : 1.0 , "\u0061":{"x":[1, 2]},"":"}\"," } `)) {
		got = append(got, string(name)+"="+string(value))
	}
	if want := []string{`b=1.0`, `a={"x":[1, 2]}`, `="}\","`}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	got = nil
	for value := range Elements([]byte(` [ 1 ,"a,]",{ } , [ ] , null ] `)) {
		got = append(got, string(value))
	}
	if want := []string{`1`, `"a,]"`, `{ }`, `[ ]`, `null`}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	for _, text := range []string{``, `null`, `"{"`, `1`} {
		for name := range Members([]byte(text + " ")) {
			t.Errorf("%q has a member %q", text, name)
		}
		for value := range Elements([]byte(text + " ")) {
			t.Errorf("%q has an element %q", text, value)
		}
	}
}

func TestIterationStopsOnBreak(t *testing.T) {
	n := 0
	for range Members([]byte(`{"a":1,"b":2}`)) {
		n++
		break
	}
	for range Elements([]byte(`[1,2]`)) {
		n++
		break
	}
	if n != 2 {
		t.Errorf("%d iterations", n)
	}
}

func TestGetTellsNullFromAbsent(t *testing.T) { // P-7
	obj := []byte(`{"a":null,"b":{"c":1},"d\"\u00e9":2 }`)
	for name, want := range map[string]string{"a": "null", "b": `{"c":1}`, `d"é`: "2", "c": "", "d": "", `d\"\u00e9`: ""} {
		got := Get(obj, name)
		if string(got) != want || Has(obj, name) != (want != "") || (got == nil) != (want == "") {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
	if Get([]byte(`["a",1]`), "a") != nil || Get(nil, "a") != nil {
		t.Error("what is no object has a member")
	}
}

func TestValuesCannotBeAppendedInto(t *testing.T) {
	obj := []byte(`{"a":1,"b":[2,3]}`)
	_ = append(Get(obj, "a"), 'x')
	for _, value := range Members(obj) {
		_ = append(value, 'x')
	}
	for value := range Elements(Get(obj, "b")) {
		_ = append(value, 'x')
	}
	fields := []Field{{Name: "a"}}
	if err := Survey(obj, fields); err != nil {
		t.Fatal(err)
	}
	_ = append(fields[0].Value, 'x')
	if string(obj) != `{"a":1,"b":[2,3]}` {
		t.Errorf("text became %s", obj)
	}
}

func TestText(t *testing.T) {
	for text, want := range map[string]string{
		`""`: "", ` "a" `: "a", `"\"\\\/\b\f\n\r\t"`: "\"\\/\b\f\n\r\t", `"\u00e9\uD83D\uDE00"`: "é😀",
		`"\ud800"`: "\uFFFD", `"\ud800\ud800\udc00x"`: "\uFFFD\U00010000x", `"\udc00\u0041"`: "\uFFFDA", `"<&>"`: "<&>",
	} {
		if got, ok := Text([]byte(text)); !ok || got != want {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
	for _, text := range []string{``, `1`, `null`, `{"a":"b"}`, `"a`} {
		if got, ok := Text([]byte(text)); ok {
			t.Errorf("%s: got %q", text, got)
		}
	}
}

// P-6: what differs in a lone surrogate only is not the same thing, and is written as it was read.
func TestNamesKeepLoneSurrogatesApart(t *testing.T) {
	seen := map[string]string{}
	for _, text := range []string{`"\ud800"`, `"\ud801"`, `"\udc00"`, `"\ufffd"`, `"\ud800\ud800\udc00"`, `"\ud83d\ude00"`, `"a\/\ud800\\"`, `"plain"`, `"é"`} {
		name, ok := Name([]byte(text))
		same, _ := NameBytes([]byte(text))
		if !ok || string(same) != name {
			t.Errorf("%s: got %q and %q, %v", text, name, same, ok)
		}
		if other, there := seen[name]; there {
			t.Errorf("%s and %s are the same", text, other)
		}
		seen[name] = text
		if again, _ := Name(AppendQuote(nil, name)); again != name {
			t.Errorf("%s: written and read again it is %q, not %q", text, again, name)
		}
		if want, _ := Text([]byte(text)); Readable(name) != want || !utf8.ValidString(Readable(name)) {
			t.Errorf("%s: %q is shown as %q, want %q", text, name, Readable(name), want)
		}
	}
	for _, text := range []string{``, `1`, `null`, `{"a":"b"}`, `"a`} {
		if got, ok := Name([]byte(text)); ok {
			t.Errorf("%s: got %q", text, got)
		}
	}
}

func TestInt(t *testing.T) {
	for text, want := range map[string]int64{
		`0`: 0, `-0`: 0, ` 42 `: 42, `-7`: -7, `9223372036854775807`: 1<<63 - 1, `-9223372036854775808`: -1 << 63,
	} {
		if got, ok := Int([]byte(text)); !ok || got != want {
			t.Errorf("%s: got %d, %v", text, got, ok)
		}
	}
	for _, text := range []string{``, `1.0`, `1e3`, `"1"`, `9223372036854775808`, `-9223372036854775809`, `99999999999999999999`, `null`, `-`, `true`} {
		if got, ok := Int([]byte(text)); ok {
			t.Errorf("%s: got %d", text, got)
		}
	}
}

func TestAppendQuoteEscapesOnlyWhatItMust(t *testing.T) {
	for s, want := range map[string]string{
		"": `""`, "a\"\\/": `"a\"\\/"`, "<&>\u2028": "\"<&>\u2028\"", "\n\r\t\b\x00\x1f\x7f": "\"\\n\\r\\t\\u0008\\u0000\\u001f\x7f\"",
		"é😀": `"é😀"`, "a\xffb": "\"a\uFFFDb\"", "\uFFFD": "\"\uFFFD\"", "\xed\xa0\x80|\xed\xbf\xbf": `"\ud800|\udfff"`, "\xed\xa0": "\"\uFFFD\uFFFD\"",
	} {
		if got := string(AppendQuote(nil, s)); got != want {
			t.Errorf("%q: got %s, want %s", s, got, want)
		}
	}
}

func TestNamesWithLoneSurrogatesSurviveQuoting(t *testing.T) { // P-6
	for name := range Members([]byte(`{"a\ud800\udc00\udbff\"":1}`)) {
		if got, want := string(AppendQuote(nil, string(name))), "\"a\U00010000\\udbff\\\"\""; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestCompact(t *testing.T) {
	in := " { \"a b\" : [ 1 , \"\\\" \" ] ,\r\n\t\"c\":{ } } "
	if got, want := string(Compact([]byte("x"), []byte(in))), `x{"a b":[1,"\" "],"c":{}}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestEqual(t *testing.T) { // B-36
	tests := []struct {
		a, b string
		want bool
	}{
		{`1`, ` 1 `, true}, {`1`, `1.0`, true}, {`10e-1`, `1`, true}, {`100`, `1e2`, true}, {`0.001`, `1E-3`, true}, {`-0`, `0.00`, true}, {`0e5`, `0`, true},
		{`1`, `-1`, false}, {`1`, `2`, false}, {`10`, `1`, false}, {`9007199254740993`, `9007199254740992`, false}, {`1e99999999999`, `1e99999999999`, true},
		{`1e99999999999`, `1e99999999998`, false}, {`123e-2`, `1.23`, true}, {`1.5`, `1.50`, true},
		{`"a\/b"`, `"a/b"`, true}, {`"\u00e9"`, `"é"`, true}, {`"\ud800"`, `"\ud801"`, false}, {`"1"`, `1`, false}, {`""`, `"a"`, false},
		{`null`, `null`, true}, {`null`, `false`, false}, {`true`, `true `, true},
		{`[]`, `[ ]`, true}, {`[1,[2]]`, `[ 1 , [ 2.0 ] ]`, true}, {`[1]`, `[1,2]`, false}, {`[1,2]`, `[2,1]`, false}, {`[1,2]`, `[1]`, false},
		{`{}`, `{ }`, true}, {`{"a":1,"b":[{}]}`, `{ "\u0062":[{ }], "a":1.0 }`, true}, {`{"a":1}`, `{"a":1,"b":2}`, false}, {`{"a":1}`, `{"b":1}`, false},
		{`{}`, `[]`, false}, {``, ``, true}, {``, `1`, false},
	}
	seed := maphash.MakeSeed()
	for _, tt := range tests {
		if (Hash(seed, []byte(tt.a)) == Hash(seed, []byte(tt.b))) != tt.want {
			t.Errorf("Hash(%s) and Hash(%s) differ: %v", tt.a, tt.b, tt.want)
		}
		if (Sum([]byte(tt.a)) == Sum([]byte(tt.b))) != tt.want {
			t.Errorf("Sum(%s) and Sum(%s) differ: %v", tt.a, tt.b, tt.want)
		}
		if got := Equal([]byte(tt.a), []byte(tt.b)); got != tt.want || Equal([]byte(tt.b), []byte(tt.a)) != tt.want {
			t.Errorf("Equal(%s, %s) = %v", tt.a, tt.b, got)
		}
	}
}

// Sum is compared with that of other processes, of other versions, too.
func TestSumNeverChanges(t *testing.T) {
	if got := Sum([]byte(`{"name":"book","arguments":{"a":[1,true,"x"]}}`)); got != 9081957665247980215 {
		t.Errorf("it is %d now: replicas of two versions do not find each other's calls", got)
	}
}

// Values that nest as deep as they may are gone over once, not once more for each level: the
// comparisons below took most of a minute.
func TestEqualGoesOverDeepValuesOnce(t *testing.T) {
	large := strings.Repeat("0,", 1<<20)
	for before, after := range map[string]string{`[`: `]`, `{"a":`: `}`, `{"b":1,"a":`: `}`} {
		nested := func(last string) []byte {
			return []byte(strings.Repeat(before, MaxDepth-1) + `[` + large + last + `]` + strings.Repeat(after, MaxDepth-1))
		}
		a, b, c := nested("1"), nested("1.0"), nested("2")
		for range 4 {
			if !Equal(a, b) || Equal(a, c) {
				t.Fatalf("%s: equal to itself %v, to another %v", before, Equal(a, b), Equal(a, c))
			}
		}
	}
}

// Where members come in another order what is below them is gone over for each level, up to a bound.
func TestEqualGoesOverReorderedObjectsSoOften(t *testing.T) {
	nested := func(levels int, before, after string) []byte {
		return []byte(strings.Repeat(before, levels) + `0` + strings.Repeat(after, levels))
	}
	for levels, want := range map[int]bool{1: true, maxReordered: true, maxReordered + 1: false, MaxDepth: false} {
		if got := Equal(nested(levels, `{"a":`, `,"b":1}`), nested(levels, `{"b":1,"a":`, `}`)); got != want {
			t.Errorf("%d levels: %v", levels, got)
		}
	}
}

// FuzzAccess checks that reading agrees with encoding/json on valid text and
// that nothing panics on any other.
func FuzzAccess(f *testing.F) {
	for _, text := range valid {
		f.Add([]byte(text))
		f.Add([]byte(`{"a":` + text + `,"b":[` + text + `]}`))
	}
	for _, tt := range invalid {
		f.Add([]byte(tt.text))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var names int
		for name, value := range Members(b) {
			names++
			_ = AppendQuote(nil, string(name))
			_ = Get(b, string(name))
			_, _ = Text(value)
			_, _ = Int(value)
		}
		for value := range Elements(b) {
			_ = KindOf(value)
		}
		_ = Apply(nil, b, Edit{"a", nil}, Edit{"b", []byte("1")})
		small := Compact(nil, b)
		_ = Equal(b, small)
		seed := maphash.MakeSeed()
		if same := Hash(seed, b) == Hash(seed, small); Validate(b) != nil {
			return
		} else if !same || !Equal(b, small) || Validate(small) != nil {
			t.Errorf("%q became %q", b, small)
		}
		var buf bytes.Buffer
		if err := json.Compact(&buf, b); err != nil || buf.String() != string(small) {
			t.Errorf("%q: got %q, want %q", b, small, buf.String())
		}
		compareDecoded(t, b, names)
	})
}

func compareDecoded(t *testing.T, b []byte, names int) {
	switch KindOf(b) {
	case String:
		var want string
		got, ok := Text(b)
		if err := json.Unmarshal(b, &want); err != nil || !ok || got != want || !utf8.ValidString(got) {
			t.Errorf("%q: got %q, want %q, %v", b, got, want, err)
		}
		if again, _ := Text(AppendQuote(nil, got)); again != got {
			t.Errorf("%q: quoted and read again: %q", got, again)
		}
	case Object:
		var want map[string]json.RawMessage
		if err := json.Unmarshal(b, &want); err != nil {
			t.Fatal(err)
		}
		if names != len(want) && !strings.Contains(strings.ToLower(string(b)), `\ud`) {
			t.Errorf("%q: %d members, want %d", b, names, len(want))
		}
		for name, value := range want {
			if !strings.Contains(name, "\uFFFD") && string(Get(b, name)) != string(value) {
				t.Errorf("%q: member %q is %q, want %q", b, name, Get(b, name), value)
			}
		}
	case Array:
		var want []json.RawMessage
		if err := json.Unmarshal(b, &want); err != nil {
			t.Fatal(err)
		}
		got := slices.Collect(Elements(b))
		if !slices.EqualFunc(got, want, func(x []byte, y json.RawMessage) bool { return string(x) == string(y) }) {
			t.Errorf("%q: got %q, want %q", b, got, want)
		}
	}
}

func FuzzAppendQuote(f *testing.F) {
	f.Add("a\"\\\xff\xed\xa0\x80\u2028")
	f.Fuzz(func(t *testing.T, s string) {
		b := AppendQuote(nil, s)
		if err := Validate(b); err != nil {
			t.Fatalf("%q became %q: %v", s, b, err)
		}
		got, ok := Text(b)
		if !ok || utf8.ValidString(s) && got != s {
			t.Errorf("%q became %q, read as %q", s, b, got)
		}
	})
}
