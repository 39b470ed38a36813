package mirror

import (
	"encoding/base64"
	"math/big"
	"strings"
	"testing"

	"github.com/mcpbridge/bridge/internal/http1"
	"github.com/mcpbridge/bridge/rawjson"
)

func TestB14ValueEncoding(t *testing.T) {
	for text, want := range map[string]string{
		"us-west1":             "us-west1",
		"Hello, 世界":            "=?base64?SGVsbG8sIOS4lueVjA==?=",
		" padded ":             "=?base64?IHBhZGRlZCA=?=",
		"line1\nline2":         "=?base64?bGluZTEKbGluZTI=?=",
		"=?base64?literal?=":   "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?=",
		"":                     "",
		"interior space":       "interior space",
		"interior\ttab":        "=?base64?aW50ZXJpb3IJdGFi?=",
		"=?base64?no end":      "=?base64?no end",
		"=?BASE64?x?=":         "=?BASE64?x?=",
		"\x7f":                 "=?base64?fw==?=",
		"\xed\xa0\x80":         "=?base64?77+9?=", // half a character has no UTF-8
		"~!@#$%^&*()_+{}|:<>?": "~!@#$%^&*()_+{}|:<>?",
	} {
		if got := string(AppendValue(nil, text)); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestB12ArgumentText(t *testing.T) {
	const none = "<none>"
	for arg, want := range map[string]string{
		`"x"`: "x", `""`: "", `"a\nb"`: "a\nb", `true`: "true", `false`: "false",
		`42`: "42", `-7`: "-7", `42.0`: "42", `4.2e1`: "42", `420e-1`: "42", `0.042E+3`: "42", `-0`: "0", `0.0`: "0", `0e5`: "0", `-0.0e999999999`: "0", `1e3`: "1000",
		`9007199254740993`:             "9007199254740993", // B-16: exact
		`123456789012345678901234567`:  "123456789012345678901234567",
		`-123456789012345678901234.00`: "-123456789012345678901234",
		`null`:                         none, `{}`: none, `[]`: none, `1.5`: none, `1e-1`: none, `1e999999999`: none, `1e-999999999`: none, `1e99999999999999999999`: none, // B-13, B-17
	} {
		got, ok := argumentText([]byte(arg))
		if !ok {
			got = none
		}
		if got != want {
			t.Errorf("%s: %q, want %q", arg, got, want)
		}
	}
	if _, ok := argumentText(nil); ok {
		t.Error("a missing argument made a header")
	}
}

func TestB15RawNamesAreLegalHeaderBytes(t *testing.T) {
	for name, want := range map[string]bool{"écho": true, "a\tb": true, "=?base64?x?=": true, "a\nb": false, " a": false, "a\t": false, "": false, "a\x00": false} {
		if got := LegalRaw(name); got != want {
			t.Errorf("%q: %v", name, got)
		}
	}
}

func FuzzEncodeValue(f *testing.F) {
	for _, s := range []string{"", "x", " x", "é", "=?base64??=", "a\r\nSet-Cookie: x", "\xed\xa0\x80 is half a character, \xf8 none"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		v := string(AppendValue(nil, text))
		if !http1.IsValue(v) || strings.ContainsAny(v, "\t\r\n") || v != strings.Trim(v, " ") {
			t.Fatalf("unsafe value %q", v)
		}
		back := v
		if b, ok := strings.CutPrefix(v, sentinelPrefix); ok && strings.HasSuffix(b, sentinelSuffix) {
			raw, err := base64.StdEncoding.DecodeString(strings.TrimSuffix(b, sentinelSuffix))
			if err != nil {
				t.Fatal(err)
			}
			back = string(raw)
		}
		if back != rawjson.Readable(text) { // only UTF-8 goes into headers
			t.Fatalf("%q came back as %q", text, back)
		}
	})
}

func FuzzIntegerText(f *testing.F) {
	for _, s := range []string{"0", "-1.50e1", "1e5", "12.340E2", "0.1", "0E400", "-0.0e-400"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, lit string) {
		if rawjson.Validate([]byte(lit)) != nil || rawjson.KindOf([]byte(lit)) != rawjson.Number {
			return
		}
		lit = strings.TrimSpace(lit)
		got, ok := integerText(lit)
		if len(lit) > 100 {
			return
		}
		if i := strings.IndexAny(lit, "eE"); i >= 0 && len(lit)-i > 4 {
			return
		}
		want, valid := new(big.Rat).SetString(lit)
		if !valid {
			t.Fatalf("%q is no number", lit)
		}
		if ok && want.RatString() != got {
			t.Fatalf("%s: %q, want %s", lit, got, want.RatString())
		}
		if !ok && want.IsInt() && len(want.RatString()) < maxDigits/2 {
			t.Fatalf("%s was refused", lit)
		}
	})
}

// FuzzSchema walks any schema without a crash and keeps what B-19 promises.
func FuzzSchema(f *testing.F) {
	for _, s := range schemaCases {
		f.Add([]byte(s.schema))
	}
	f.Fuzz(func(t *testing.T, schema []byte) {
		if rawjson.Validate(schema) != nil {
			return
		}
		p := parsePlan(schema)
		if p.illegal != "" && len(p.bindings) > 0 {
			t.Fatal("an illegal tool has bindings")
		}
		seen := map[string]bool{}
		for _, b := range p.bindings {
			name := strings.ToLower(b.header)
			if seen[name] || !http1.IsToken(b.header) || len(b.path) == 0 {
				t.Fatalf("binding %+v", b)
			}
			seen[name] = true
		}
		if !mayAnnotate(schema) && (p.illegal != "" || len(p.bindings) > 0) {
			t.Fatal("the quick test missed an annotation")
		}
		p.AppendFields(nil, schema)
	})
}
