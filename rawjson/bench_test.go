package rawjson

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

// call is a tools/call of a usual size.
var call = []byte(`{"jsonrpc":"2.0","id":42,"method":"tools/call","params":{"name":"create_issue","arguments":{` +
	`"repository":"example/project","title":"Build fails on arm64","body":"Since yesterday the build fails with an internal error.",` +
	`"labels":["bug","build"],"priority":2},"_meta":{"progressToken":7,"example.com/trace":"00-4bf92f3577"}}}`)

// tools is a page of tool definitions, about 100 KB.
var tools = []byte(`{"tools":[` + strings.TrimSuffix(strings.Repeat(`{"name":"create_issue","description":"Creates an issue in a \"repository\".`+
	` Use this when the user wants to report something.","inputSchema":{"type":"object","properties":{"repository":{"type":"string","description":`+
	`"owner/name"},"title":{"type":"string","minLength":1},"labels":{"type":"array","items":{"type":"string"}}},"required":["repository","title"]},`+
	`"annotations":{"readOnlyHint":false,"idempotentHint":false}},`, 230), ",") + `],"nextCursor":"x"}`)

var texts = []struct {
	name string
	text []byte
}{
	{"Call", call},
	{"Tools", tools},
	{"LongString", []byte(`{"text":"` + strings.Repeat(`The quick brown fox jumps over the lazy dog. `, 2500) + `"}`)},
	{"NonASCII", []byte(`{"text":"` + strings.Repeat(`Zwölf Boxkämpfer jagen Viktor über den Sylter Deich. `, 2000) + `"}`)},
	{"Escapes", []byte(`{"text":"` + strings.Repeat(`func main() {\n\tfmt.Println(\"héllo, wörld\") // as files have it\n}\n`, 900) + `"}`)},
	{"Quotes", []byte(`{"text":"` + strings.Repeat(`{\"id\":12,\"name\":\"a b\",\"tags\":[\"x\",\"yy\"]},`, 1300) + `"}`)},
	{"CJK", []byte(`{"text":"` + strings.Repeat(`微服务架构`, 4300) + `"}`)},
	{"Unicode", []byte(`{"text":"` + strings.Repeat(`\u003cdiv\u003e\u0026nbsp; as Go escapes HTML`, 1500) + `"}`)},
	{"WideObject", []byte(object(10000, "member-%d"))},
}

func sample(b *testing.B, text []byte, f func()) {
	b.ReportAllocs()
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		f()
	}
}

// BenchmarkValidate compares with jsontext, which has the same rules, and with
// encoding/json, which looks at neither duplicates nor UTF-8.
func BenchmarkValidate(b *testing.B) {
	for _, tt := range texts {
		b.Run(tt.name+"/rawjson", func(b *testing.B) {
			sample(b, tt.text, func() {
				if Validate(tt.text) != nil {
					b.Fatal("invalid")
				}
			})
		})
		b.Run(tt.name+"/jsontext", func(b *testing.B) {
			sample(b, tt.text, func() {
				if !jsontext.Value(tt.text).IsValid() {
					b.Fatal("invalid")
				}
			})
		})
		b.Run(tt.name+"/encoding_json", func(b *testing.B) {
			sample(b, tt.text, func() {
				if !json.Valid(tt.text) {
					b.Fatal("invalid")
				}
			})
		})
	}
}

func BenchmarkSurvey(b *testing.B) {
	sample(b, call, func() {
		fields := [3]Field{{Name: "id"}, {Name: "method"}, {Name: "params"}}
		if err := Survey(call, fields[:]); err != nil {
			b.Fatal(err)
		}
	})
}

// BenchmarkGet looks for what is not there, behind everything that is.
func BenchmarkGet(b *testing.B) {
	for _, tt := range texts {
		b.Run(tt.name, func(b *testing.B) {
			sample(b, tt.text, func() {
				if Get(tt.text, "absent") != nil {
					b.Fatal("found")
				}
			})
		})
	}
}

func BenchmarkMembers(b *testing.B) {
	params := Get(call, "params")
	sample(b, params, func() {
		n := 0
		for name := range Members(params) {
			n += len(name)
		}
	})
}

// BenchmarkApply adds what a modern request needs to the params of a call, and
// does the same by jsontext's tokens.
func BenchmarkApply(b *testing.B) {
	params := Get(call, "params")
	meta := []byte(`{"progressToken":7,"io.modelcontextprotocol/protocolVersion":"2026-07-28"}`)
	dst := make([]byte, 0, 4096)
	b.Run("rawjson", func(b *testing.B) {
		sample(b, params, func() {
			dst = Apply(dst[:0], params, Edit{"task", nil}, Edit{"_meta", meta}, Edit{"requestState", []byte(`"x"`)})
		})
	})
	b.Run("jsontext", func(b *testing.B) {
		sample(b, params, func() {
			var err error
			if dst, err = applyByTokens(dst[:0], params, meta); err != nil {
				b.Fatal(err)
			}
		})
	})
	b.Run("encoding_json", func(b *testing.B) {
		sample(b, params, func() {
			var m map[string]json.RawMessage
			if err := json.Unmarshal(params, &m); err != nil {
				b.Fatal(err)
			}
			m["_meta"], m["requestState"] = meta, json.RawMessage(`"x"`)
			if _, err := json.Marshal(m); err != nil {
				b.Fatal(err)
			}
		})
	})
}

func BenchmarkCompact(b *testing.B) {
	dst := make([]byte, 0, len(tools))
	sample(b, tools, func() { dst = Compact(dst[:0], tools) })
}

func BenchmarkEqual(b *testing.B) {
	spaced := []byte(strings.ReplaceAll(string(call), `":`, `": `))
	sample(b, call, func() {
		if !Equal(call, spaced) {
			b.Fatal("different")
		}
	})
}

func BenchmarkHash(b *testing.B) {
	seed := maphash.MakeSeed()
	sample(b, call, func() { _ = Hash(seed, call) })
}

// TestAllocationBudget keeps the paths that every message takes free of
// allocations.
func TestAllocationBudget(t *testing.T) {
	dst := make([]byte, 0, 4096)
	params := Get(call, "params")
	arr := []byte(`[1,{"a":2},"c"]`)
	for name, f := range map[string]func(){
		"Validate": func() { _ = Validate(call) },
		"Balanced": func() { _ = Balanced(call) },
		"Survey": func() {
			fields := [2]Field{{Name: "id"}, {Name: "params"}}
			_ = Survey(call, fields[:])
		},
		"Get": func() { _ = Get(call, "params") },
		"Members": func() {
			n := 0
			for name, value := range Members(params) {
				n += len(name) + len(value)
			}
		},
		"Elements": func() {
			n := 0
			for value := range Elements(arr) {
				n += len(value)
			}
		},
		"Int":         func() { _, _ = Int(arr[1:2]) },
		"AppendQuote": func() { dst = AppendQuote(dst[:0], "some \"text\"") },
		"Apply": func() {
			dst = Apply(dst[:0], params, Edit{"task", nil}, Edit{"_meta", arr}, Edit{"new", arr})
		},
		"Compact": func() { dst = Compact(dst[:0], call) },
		"Sum":     func() { _ = Sum(call) },
	} {
		if got := testing.AllocsPerRun(100, f); got != 0 {
			t.Errorf("%s: %v allocations", name, got)
		}
	}
}

// applyByTokens is the edit of BenchmarkApply by way of jsontext. It keeps the
// values' bytes but not the spacing.
func applyByTokens(dst, params, meta []byte) ([]byte, error) {
	w := sliceWriter{dst}
	dec := jsontext.NewDecoder(bytes.NewReader(params))
	enc := jsontext.NewEncoder(&w, jsontext.PreserveRawStrings(true))
	if err := copyMembers(enc, dec, meta); err != nil {
		return nil, fmt.Errorf("apply by tokens: %w", err)
	}
	return w.b, nil
}

func copyMembers(enc *jsontext.Encoder, dec *jsontext.Decoder, meta []byte) error {
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	if err := enc.WriteToken(jsontext.BeginObject); err != nil {
		return err
	}
	for dec.PeekKind() != '}' {
		name, err := dec.ReadValue()
		if err != nil {
			return err
		}
		name = slices.Clone(name)
		value, err := dec.ReadValue()
		if err != nil {
			return err
		}
		if string(name) == `"task"` {
			continue
		}
		if string(name) == `"_meta"` {
			value = meta
		}
		if err := enc.WriteValue(name); err != nil {
			return err
		}
		if err := enc.WriteValue(value); err != nil {
			return err
		}
	}
	if err := enc.WriteToken(jsontext.String("requestState")); err != nil {
		return err
	}
	if err := enc.WriteValue([]byte(`"x"`)); err != nil {
		return err
	}
	return enc.WriteToken(jsontext.EndObject)
}

type sliceWriter struct{ b []byte }

func (w *sliceWriter) Write(p []byte) (int, error) {
	w.b = append(w.b, p...)
	return len(p), nil
}
