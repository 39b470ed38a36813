package jsonrpc

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/mcpbridge/bridge/rawjson"
)

// call is a tools/call of a usual size: 300 bytes.
var call = []byte(`{"jsonrpc":"2.0","id":42,"method":"tools/call","params":{"name":"create_issue","arguments":{` +
	`"repository":"example/project","title":"Build fails on arm64","body":"Since yesterday the build fails with an internal error.",` +
	`"labels":["bug","build"],"priority":2},"_meta":{"progressToken":7,"example.com/trace":"00-4bf92f3577"}}}`)

func sample(b *testing.B, text []byte, f func()) {
	b.ReportAllocs()
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		f()
	}
}

func BenchmarkParse(b *testing.B) {
	large := []byte(`{"jsonrpc":"2.0","id":42,"result":{"content":[` + strings.Repeat(`{"type":"text","text":"The quick brown fox jumps over the lazy dog.\n"},`, 1000) +
		`{"type":"text","text":"end"}]}}`)
	stringID := []byte(strings.Replace(string(call), "42", `"8b1d6c0e-7c55-4a34"`, 1))
	failure := []byte(`{"jsonrpc":"2.0","id":42,"error":{"code":-32602,"message":"unknown tool"}}`)
	for _, tt := range []struct {
		name string
		text []byte
	}{{"Call", call}, {"StringID", stringID}, {"LargeResult", large}, {"Error", failure}} {
		b.Run(tt.name, func(b *testing.B) {
			sample(b, tt.text, func() {
				if _, err := Parse(tt.text); err != nil {
					b.Fatal(err)
				}
			})
		})
	}
}

// BenchmarkParseEncodingJSON is the usual way, for comparison. It checks neither
// duplicates nor UTF-8.
func BenchmarkParseEncodingJSON(b *testing.B) {
	sample(b, call, func() {
		var m struct {
			JSONRPC string          `json:"jsonrpc"`
			ID      json.RawMessage `json:"id"`
			Method  string          `json:"method"`
			Params  json.RawMessage `json:"params"`
		}
		if err := json.Unmarshal(call, &m); err != nil {
			b.Fatal(err)
		}
	})
}

func BenchmarkAppendRequest(b *testing.B) {
	params := rawjson.Get(call, "params")
	dst := make([]byte, 0, 1024)
	sample(b, params, func() { dst = AppendRequest(dst[:0], "42", "tools/call", params) })
}

func TestAllocationBudget(t *testing.T) {
	dst := make([]byte, 0, 1024)
	result := AppendResult(nil, `"8b1d6c0e"`, []byte(`{"content":[]}`))
	budget := map[string]struct {
		max float64
		f   func()
	}{
		"parse a request with a small id": {0, func() { _, _ = Parse(call) }},
		"parse a response, string id":     {1, func() { _, _ = Parse(result) }},
		"parse the expected response":     {0, func() { _, _, _ = ParseResponse(result, `"8b1d6c0e"`) }},
		"append a request":                {0, func() { dst = AppendRequest(dst[:0], "42", "tools/call", call) }},
		"append a result":                 {0, func() { dst = AppendResult(dst[:0], "42", call) }},
	}
	for name, tt := range budget {
		if got := testing.AllocsPerRun(100, tt.f); got > tt.max {
			t.Errorf("%s: %v allocations, budget %v", name, got, tt.max)
		}
	}
}
