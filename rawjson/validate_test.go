package rawjson

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

var valid = []string{
	`null`, `true`, `false`, `""`, `"a"`, `{}`, `[]`, `0`, `-0`, `1`, `-1.5e+10`, `1E5`, `0.0e-0`,
	" \t\r\n{ } \n", `[ ]`, `[1,2]`, `[[],{}]`, `{"a":1,"b":{"a":1}}`, `[{"a":1},{"a":1}]`,
	`123456789012345678901234567890`, `"\"\\\/\b\f\n\r\t\u00e9\uD83D\uDE00"`, `"é😀"`, "\"\u2028\x7f\"",
	`"12345678"`, `"1234567890123456é"`, `{"":0}`, `{"a":1,"A":2,"a ":3}`,
	`"\ud800"`, `"\udc00\ud800"`, `"\ud800\u0041"`, `{"\ud800":1,"\ud801":2,"\ufffd":3}`, `{"é":1,"è":2}`,
}

var invalid = []struct {
	text   string
	reason fault
}{
	{``, endOfText}, {` `, endOfText}, {`{`, endOfText}, {`[`, endOfText}, {`[1`, endOfText}, {`[1,`, endOfText},
	{`{"a"`, endOfText}, {`{"a":`, endOfText}, {`{"a":1`, endOfText}, {`{"a":1,`, endOfText}, {`"`, endOfText},
	{`"abcdefghijk`, endOfText},
	{`[1,]`, noValue}, {`[,1]`, noValue}, {`{,}`, noName},
	{`{"a":1,}`, noName}, {`{a:1}`, noName}, {`{'a':1}`, noName},
	{`{"a" 1}`, noColon}, {`{"a":1 "b":2}`, noObjectEnd},
	{`[1 2]`, noArrayEnd}, {`[1}`, noArrayEnd},
	{`{"a":1]`, noObjectEnd},
	{`{} {}`, trailing}, {`1 2`, trailing}, {`nulll`, trailing},
	{`01`, noValue}, {`-01`, noValue}, {`+1`, noValue}, {`.5`, noValue},
	{`1.`, noValue}, {`1.e1`, noValue}, {`1e`, noValue}, {`1e+`, noValue}, {`-`, noValue},
	{`0x10`, trailing}, {`NaN`, noValue}, {`Infinity`, noValue}, {`-Infinity`, noValue},
	{`tru`, badLiteral}, {`True`, noValue}, {`nul `, badLiteral},
	{`"\x"`, badEscape}, {`"\u12g4"`, badEscape}, {`"\u123"`, badEscape}, {`"\`, badEscape},
	{"\"a\nb\"", badControl}, {"\"\x00\"", badControl},
	{"\"12345678\x1f\"", badControl},
	{"\"\xff\"", badUTF8}, {"\"\xed\xa0\x80\"", badUTF8}, {"\"\xc0\xaf\"", badUTF8}, {"\"12345678\xe9\"", badUTF8},
	{"\xEF\xBB\xBF{}", noValue}, {"{}\x00", trailing}, {"[1,\u00a02]", noValue},
	{`// c`, noValue}, {"[1,\f2]", noValue},
	{`{"a":1,"a":2}`, duplicate}, {`{"a":1,"\u0061":2}`, duplicate}, {`{"\ud800":1,"\uD800":2}`, duplicate},
	{`[{"x":{"é":1,"\u00e9":2}}]`, duplicate}, {`{"":1,"":2}`, duplicate},
	{`{"😀":1,"\ud83d\ude00":2}`, duplicate}, {`{"\/":1,"/":2}`, duplicate},
}

func TestValidateAcceptsRFC8259(t *testing.T) {
	for _, text := range valid {
		if err := Validate([]byte(text)); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestValidateRefuses(t *testing.T) {
	for _, tt := range invalid {
		err := Validate([]byte(tt.text))
		var syntax *SyntaxError
		if !errors.As(err, &syntax) {
			t.Errorf("%q: error %v", tt.text, err)
			continue
		}
		last := tt.reason == endOfText && syntax.Offset != len(tt.text)
		// A number or literal that breaks off at the end may be reported as either.
		ends := syntax.Reason == reasons[endOfText] && syntax.Offset == len(tt.text)
		if syntax.Reason != reasons[tt.reason] && !ends || last || syntax.Offset > len(tt.text) {
			t.Errorf("%q: %v, want %s", tt.text, err, reasons[tt.reason])
		}
		if got, want := errors.Is(err, ErrDuplicate), tt.reason == duplicate; got != want {
			t.Errorf("%q: errors.Is(%v, ErrDuplicate) = %v", tt.text, err, got)
		}
	}
}

func TestValidateTellsTheOffset(t *testing.T) {
	for text, want := range map[string]int{
		`[1, x]`: 4, `{"a":1 2}`: 7, "[\"ok\", \"\xff\"]": 8, `{"a":1, "a":2}`: 8, `{"a":tru}`: 5, `"\q"`: 1, `[`: 1,
	} {
		var syntax *SyntaxError
		if err := Validate([]byte(text)); !errors.As(err, &syntax) || syntax.Offset != want {
			t.Errorf("%q: %v, want byte %d", text, err, want)
		}
	}
}

func TestDepthIsBounded(t *testing.T) {
	for _, pair := range [][2]string{{"[", "]"}, {`{"a":`, "}"}} {
		nest := func(n int) []byte {
			return []byte(strings.Repeat(pair[0], n) + "1" + strings.Repeat(pair[1], n))
		}
		if err := Validate(nest(MaxDepth)); err != nil {
			t.Errorf("depth %d: %v", MaxDepth, err)
		}
		if err := Validate(nest(MaxDepth + 1)); !errors.Is(err, ErrDepth) || !strings.Contains(err.Error(), "more than 256 levels") {
			t.Errorf("depth %d: %v", MaxDepth+1, err)
		}
	}
	if err := Validate([]byte(strings.Repeat("[", 1<<20))); !errors.Is(err, ErrDepth) {
		t.Errorf("depth %d: %v", 1<<20, err)
	}
}

// object returns an object with n members that all differ, some of them
// escaped, and nested objects in between.
func object(n int, format string) string {
	var b strings.Builder
	for k := range n {
		fmt.Fprintf(&b, `,"`+format+`":{"a":%d}`, k, k)
	}
	return "{" + strings.TrimPrefix(b.String(), ",") + "}"
}

func TestDuplicatesAreFoundInObjectsOfAnySize(t *testing.T) {
	for _, n := range []int{1, 2, maxLinear - 1, maxLinear, maxLinear + 1, 63, 64, 65, 100, 1000, 20000} {
		for _, format := range []string{"%d", "a name with a long beginning %06d and a long end", `\u0041%d`} {
			text := object(n, format)
			if err := Validate([]byte(text)); err != nil {
				t.Fatalf("%d members %q: %v", n, format, err)
			}
			for _, k := range []int{0, n / 2, n - 1} {
				again := strings.TrimSuffix(text, "}") + fmt.Sprintf(`,"`+format+`":null}`, k)
				if err := Validate([]byte(again)); !errors.Is(err, ErrDuplicate) {
					t.Fatalf("%d members, %q repeated: %v", n, fmt.Sprintf(format, k), err)
				}
			}
		}
	}
}

func TestDuplicatesAreFoundBesideManyOpenObjects(t *testing.T) {
	// Each level holds five names when the next one opens, so that the fixed
	// array of names runs out.
	const level = `{"a":1,"b":2,"c":3,"d":4,"e":`
	for depth := range 40 {
		opened, closed := strings.Repeat(level, depth), strings.Repeat(`}`, depth)
		if err := Validate([]byte(opened + `{"a":1,"b":2}` + closed)); err != nil {
			t.Fatalf("depth %d: %v", depth, err)
		}
		if err := Validate([]byte(opened + `{"a":1,"b":2,"a":3}` + closed)); !errors.Is(err, ErrDuplicate) {
			t.Fatalf("depth %d: %v", depth, err)
		}
		after := opened + `1` + strings.Repeat(`,"b":0}`, depth)
		if err := Validate([]byte(after)); depth > 0 && !errors.Is(err, ErrDuplicate) {
			t.Fatalf("depth %d: %v", depth, err)
		}
	}
}

func TestSurveyFindsTopLevelMembers(t *testing.T) {
	fields := []Field{{Name: "a"}, {Name: "b"}, {Name: "c"}, {Name: "d/é"}}
	text := `{"x":{"a":0}, "b" : [1, 2] ,"\u0061":null,"d\/\u00e9":"e"}`
	if err := Survey([]byte(text), fields); err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprintf("%s|%s|%v|%s", fields[0].Value, fields[1].Value, fields[2].Value == nil, fields[3].Value)
	if want := `null|[1, 2]|true|"e"`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	fields = []Field{{Name: "a"}, {Name: "b"}}
	if err := Survey([]byte(`{"a":1,"b":tru}`), fields); err == nil || string(fields[0].Value) != "1" || fields[1].Value != nil {
		t.Errorf("broken text: %v, %s, %s", err, fields[0].Value, fields[1].Value)
	}
}

func TestSurveyFindsInnerMembers(t *testing.T) {
	for text, want := range map[string]string{
		`{"a":1,"o":{"x":{"a":0},"a":2},"p":{"a":3}}`: `1 2 `,
		`{"o":{"a":2, "b" : [3] }}`:                   ` 2 [3]`,
		`{"p":{"a":2},"\u006f":{"\u0061":4}}`:         ` 4 `,
		`{"o":[{"a":2}]}`:                             `  `,
		`{"q":{"o":{"a":2}}}`:                         `  `,
		`[{"a":2}]`:                                   `  `,
		`{"a":"o"}`:                                   `"o"  `,
	} {
		fields := []Field{{Name: "a"}, {Name: "a", In: "o"}, {Name: "b", In: "o"}}
		if err := Survey([]byte(text), fields); err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprintf("%s %s %s", fields[0].Value, fields[1].Value, fields[2].Value); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

func TestBalancedIgnoresNamesAndUTF8(t *testing.T) {
	if err := Balanced([]byte("[{\"a\":1,\"a\":2},\"\xff\"]")); err != nil {
		t.Error(err)
	}
	if err := Balanced([]byte(`[{"a":1]`)); err == nil {
		t.Error("broken text was accepted")
	}
}

// paddings are what surrounds the part of interest in a long string.
var paddings = []string{"plain text ", `\\`, `\"`, `\n\t`, "é", "日本", "😀", "a\\\\é"}

// parts can occur in strings, or must not.
var parts = []string{
	``, `\"`, `\\`, `\\\"`, `\\\\`, `\/\b\f\n\r\t`, `\u00e9`, `\ud83d\ude00`, "é", "日", "😀", "\x7f", "\u2028",
	`"`, `\`, `\x`, `\"\`, `\u12g4`, `\u`, `\é`, "\n", "\x00", "\x1f", "\\\x00",
	"\x80", "\xbf", "\xc0\xaf", "\xc3", "\xc3a", "\xc3\"", "\xe0\x80\x80", "\xe0\x9f\xbf", "\xe6\x97", "\xed\xa0\x80", "\xed\xbf\xbf",
	"\xf0\x8f\xbf\xbf", "\xf0\x9f\x98", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff", "é\x80", "日\xbf", "😀\x80",
}

// FuzzValidate compares with jsontext, and with encoding/json where that has an opinion.
// jsontext has no mode for our rule on
// surrogates (escapes of lone ones are fine, raw ones are not, and names differ
// when the surrogates do), so texts with such escapes are only compared where
// both rules say the same.
func FuzzValidate(f *testing.F) {
	for _, text := range valid {
		f.Add([]byte(text))
	}
	for _, tt := range invalid {
		f.Add([]byte(tt.text))
	}
	f.Add([]byte(object(20, `\u0041%d`)))
	for _, pad := range paddings { // long strings take another path
		for k, part := range parts {
			f.Add([]byte(`{"a":"` + strings.Repeat(pad, 150/len(pad)) + part + strings.Repeat(pad, k) + `"}`))
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		err := Validate(b)
		if errors.Is(err, ErrDepth) {
			return
		}
		surrogates := strings.Contains(strings.ToLower(string(b)), `\ud`)
		strict := jsontext.Value(b).IsValid()
		loose := utf8.Valid(b) && jsontext.Value(b).IsValid(jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))
		if strict && err != nil {
			t.Errorf("%q is valid, got %v", b, err)
		}
		if err == nil && !loose || err == nil && !strict && !surrogates {
			t.Errorf("%q is invalid, got no error", b)
		}
		if errors.Is(err, ErrDuplicate) && utf8.Valid(b) && !loose {
			return // the duplicate came before the other fault
		}
		if errors.Is(err, ErrDuplicate) && jsontext.Value(b).IsValid(jsontext.AllowInvalidUTF8(true)) {
			t.Errorf("%q has no duplicates, got %v", b, err)
		}
		if err == nil && !json.Valid(b) { // which knows neither duplicates nor UTF-8
			t.Errorf("%q is invalid to encoding/json, got no error", b)
		}
		if (Balanced(b) == nil) != json.Valid(b) {
			t.Errorf("%q: Balanced: %v; encoding/json: %v", b, Balanced(b), json.Valid(b))
		}
		if (Balanced(b) == nil) != jsontext.Value(b).IsValid(jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true)) {
			t.Errorf("%q: Balanced: %v", b, Balanced(b))
		}
	})
}
