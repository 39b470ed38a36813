package legacy

import (
	"net/http"
	"strings"
	"testing"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/budget"
	"github.com/mcpbridge/bridge/mcp"
)

// What is handed on to a modern server is charged to whoever sent it, answers included.
func TestModernRequestsThatAreHandedOnSayWhoIsCharged(t *testing.T) {
	memory := budget.New(10 * tenth)
	b := newFake()
	var charged *budget.Account
	b.modern = http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { charged = downstream.ChargedTo(r.Context()) })
	_, p := serve(t, Options{Memory: memory}, b)
	_ = text(t, p.post(`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`))
	want(t, "an account", charged != nil, true)
}

// Responses of a batch wait for the others: together they are bounded like anything else.
func TestResponsesOfABatchThatWaitAreCharged(t *testing.T) {
	const batch = `[{"jsonrpc":"2.0","id":1,"method":"hold"},{"jsonrpc":"2.0","id":2,"method":"hold"},{"jsonrpc":"2.0","id":3,"method":"hold"}]`
	result := `{"x":"` + strings.Repeat("x", 2*tenth) + `"}`
	for name, send := range map[string]func(*testing.T, *budget.Budget, *fakeBackend) func() string{
		"Streamable HTTP": func(t *testing.T, memory *budget.Budget, b *fakeBackend) func() string {
			_, p := serve(t, Options{Memory: memory}, b)
			p.initialize(mcp.V20250326)
			answer := p.async(batch)
			return func() string { return text(t, <-answer) }
		},
		"a connection": func(t *testing.T, memory *budget.Budget, b *fakeBackend) func() string {
			l := serveStdio(t, Options{Memory: memory}, b)
			l.initialize(mcp.V20250326)
			l.send(batch)
			return l.next
		},
	} {
		t.Run(name, func(t *testing.T) {
			memory, b := budget.New(8*tenth), newFake()
			got := send(t, memory, b)
			calls := []*call{<-b.held, <-b.held, <-b.held}
			before := memory.Used()
			for _, c := range calls {
				c.finish(result)
			}
			all := got()
			want(t, "one is kept, the last is passed on", strings.Count(all, `"result"`) <= 2, true)
			want(t, "for the others there is no room", strings.Contains(all, "limits.memory"), true)
			eventually(t, "nothing is left", func() bool { return memory.Used() < before })
		})
	}
}
