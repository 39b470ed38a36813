package mrtr

import (
	"testing"

	"github.com/mcpbridge/bridge/mcp"
)

var (
	benchCaps     = []byte(everyCapability)
	benchComplete = []byte(`{"resultType":"complete","content":[{"type":"text","text":"ok"}]}`)
	benchQuestion = []byte(`{"resultType":"input_required","requestState":"s","inputRequests":{` + form("q") + `}}`)
	benchAccept   = []byte(accept)
)

// plainFlow is a call that is answered at once. It returns the last verb.
func plainFlow() Verb {
	f := Flow{Method: mcp.MethodToolsCall, Capabilities: benchCaps}
	step(&f, Started())
	return step(&f, Result(benchComplete, `"complete"`)).Do
}

// askingFlow is a call with that many rounds of one question each. It also makes
// what the next round carries.
func askingFlow(rounds int) Verb {
	f := Flow{Method: mcp.MethodToolsCall, Capabilities: benchCaps}
	step(&f, Started())
	for range rounds {
		step(&f, Result(benchQuestion, `"input_required"`))
		step(&f, Answered("q", benchAccept))
		_ = f.InputResponses()
	}
	return step(&f, Result(benchComplete, `"complete"`)).Do
}

func BenchmarkFlow(b *testing.B) {
	for name, run := range map[string]func() Verb{
		"plain":           plainFlow,
		"one-question":    func() Verb { return askingFlow(1) },
		"three-questions": func() Verb { return askingFlow(3) },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if do := run(); do != Deliver {
					b.Fatal(do)
				}
			}
		})
	}
}

func TestAllocationBudget(t *testing.T) {
	for name, tt := range map[string]struct {
		max float64
		f   func() Verb
	}{
		"plain call":      {0, plainFlow},
		"one question":    {10, func() Verb { return askingFlow(1) }},
		"three questions": {30, func() Verb { return askingFlow(3) }},
	} {
		var do Verb
		if got := testing.AllocsPerRun(100, func() { do = tt.f() }); got > tt.max {
			t.Errorf("%s: %v allocations, budget %v", name, got, tt.max)
		}
		if do != Deliver {
			t.Errorf("%s: ends with verb %d", name, do)
		}
	}
}
