package translate

import (
	"strconv"
	"strings"
	"testing"

	"github.com/mcpbridge/bridge/mcp"
)

func BenchmarkParams(b *testing.B) {
	params := []byte(`{"name":"book_flight","arguments":{"from":"HAM","to":"LIS","when":"2026-12-01","seats":2},"_meta":{"progressToken":17}}`)
	env := Envelope{
		Method: mcp.MethodToolsCall, ClientInfo: []byte(`{"name":"client","version":"1.2.3"}`),
		Capabilities: []byte(`{"roots":{},"elicitation":{}}`), ProgressToken: []byte(`"p41-0"`),
	}
	dst := make([]byte, 0, 1024)
	b.ReportAllocs()
	b.SetBytes(int64(len(params)))
	for b.Loop() {
		dst = Params(dst[:0], params, &env)
	}
}

func benchmarkResult(b *testing.B, v mcp.Version, method, result string) {
	in, rules := []byte(result), Rules{Version: v}
	b.ReportAllocs()
	b.SetBytes(int64(len(in)))
	for b.Loop() {
		if _, err := rules.Result(method, in); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkResult(b *testing.B) {
	const info = `"resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s","version":"1"}}`
	small := `{"content":[{"type":"text","text":"Booked flight LH1172 for two."}],` + info + `}`
	plain := `{"content":[{"type":"text","text":"Booked flight LH1172 for two."}]}`
	large := `{"content":[{"type":"text","text":"` + strings.Repeat(`A line of text with a \"quote\".\n`, 2000) + `"}],` + info + `}`
	structured := `{"content":[{"type":"text","text":"[1,2,3]"}],"structuredContent":[1,2,3],` + info + `}`
	for _, v := range mcp.Legacy {
		b.Run("small/"+string(v), func(b *testing.B) { benchmarkResult(b, v, mcp.MethodToolsCall, small) })
	}
	b.Run("untouched", func(b *testing.B) { benchmarkResult(b, mcp.V20250618, mcp.MethodToolsCall, plain) })
	b.Run("64KiB", func(b *testing.B) { benchmarkResult(b, mcp.V20250618, mcp.MethodToolsCall, large) })
	b.Run("wrapped", func(b *testing.B) { benchmarkResult(b, mcp.V20250618, mcp.MethodToolsCall, structured) })
}

func BenchmarkToolsList(b *testing.B) {
	var list strings.Builder
	for i := range 100 {
		if i > 0 {
			list.WriteByte(',')
		}
		list.WriteString(`{"name":"tool_` + strconv.Itoa(i) + `","title":"Tool","description":"Does something useful with its arguments.",` +
			`"inputSchema":{"type":"object","properties":{"query":{"type":"string","description":"What to look for"},"limit":{"type":"integer","minimum":1},"region":{"type":"string","x-mcp-header":"Region"}},"required":["query"]},` +
			`"outputSchema":{"type":"array","items":{"$ref":"#/$defs/item"},"$defs":{"item":{"type":"object","properties":{"id":{"type":"string"}}}}},"annotations":{"readOnlyHint":true}}`)
	}
	result := `{"tools":[` + list.String() + `],"resultType":"complete","ttlMs":60000,"cacheScope":"public"}`
	for _, v := range mcp.Legacy {
		b.Run(string(v), func(b *testing.B) { benchmarkResult(b, v, mcp.MethodToolsList, result) })
	}
}
