package translate

import (
	"testing"

	"github.com/mcpbridge/bridge/mcp"
)

const benchProgress = `{"progressToken":"p41-0","progress":3,"total":10,"message":"step 3 of 10"}`

// BenchmarkProgress is a progress notification on its way down, under the
// client's token; in later rounds also with a value and total of its own.
func BenchmarkProgress(b *testing.B) {
	params, token, value, total := []byte(benchProgress), []byte("7"), []byte("13"), []byte("20")
	dst := make([]byte, 0, 1024)
	for _, v := range mcp.Legacy {
		b.Run(string(v), func(b *testing.B) {
			rules := Rules{Version: v}
			b.ReportAllocs()
			for b.Loop() {
				from := rules.Progress(params)
				dst = from.AppendTo(dst[:0], token, value, total)
			}
		})
	}
}

func TestAllocationBudget(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector empties pools")
	}
	params := []byte(`{"name":"book_flight","arguments":{"from":"HAM"},"_meta":{"progressToken":17}}`)
	first := Envelope{
		Method: mcp.MethodToolsCall, ClientInfo: []byte(`{"name":"client","version":"1.2.3"}`),
		Capabilities: []byte(`{"roots":{},"elicitation":{}}`), ProgressToken: []byte(`"p41-0"`),
	}
	retry := first
	retry.InputResponses, retry.RequestState = []byte(`{"q":{"action":"accept"}}`), []byte(`"s"`)
	dst := make([]byte, 0, 1024)
	for name, tt := range map[string]struct {
		max float64
		f   func()
	}{
		"params of a first round": {0, func() { dst = Params(dst[:0], params, &first) }},
		"params of a retry":       {0, func() { dst = Params(dst[:0], params, &retry) }},
		"no params":               {0, func() { dst = Params(dst[:0], nil, &first) }},
	} {
		if got := testing.AllocsPerRun(200, tt.f); got > tt.max {
			t.Errorf("%s: %v allocations, budget %v", name, got, tt.max)
		}
	}
}

// TestAllocationBudgetOfEachVersion: what goes down is spliced into the caller's
// memory. Only a result on its own is a piece of memory, its one allocation.
func TestAllocationBudgetOfEachVersion(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector empties pools")
	}
	const info = `"resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s","version":"1"}}`
	result := []byte(`{"content":[{"type":"text","text":"Booked."}],` + info + `}`)
	structured := []byte(`{"content":[{"type":"text","text":"[1]"}],"structuredContent":[1],` + info + `}`)
	tools := []byte(`{"tools":[{"name":"a","title":"A","icons":[],"inputSchema":{"type":"object"},` +
		`"outputSchema":{"type":"array","items":{"$ref":"#/$defs/i"},"$defs":{"i":{"type":"string"}}}}],` + info + `}`)
	progress := []byte(benchProgress)
	dst := make([]byte, 0, 1024)
	for _, v := range mcp.Legacy {
		rules := Rules{Version: v}
		into := func(method string, result []byte) func() {
			return func() { dst, _ = rules.AppendResult(dst[:0], method, result) }
		}
		for name, tt := range map[string]struct {
			max float64
			f   func()
		}{
			"result":            {0, into(mcp.MethodToolsCall, result)},
			"structured result": {2, into(mcp.MethodToolsCall, structured)},
			"list of tools":     {0, into(mcp.MethodToolsList, tools)},
			"result on its own": {1, func() { _, _ = rules.Result(mcp.MethodToolsCall, result) }},
			"progress": {0, func() {
				from := rules.Progress(progress)
				dst = from.AppendTo(dst[:0], []byte("7"), nil, nil)
			}},
		} {
			if got := testing.AllocsPerRun(200, tt.f); got > tt.max {
				t.Errorf("%s, %s: %v allocations, budget %v", v, name, got, tt.max)
			}
		}
	}
}
