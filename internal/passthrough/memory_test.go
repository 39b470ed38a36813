package passthrough

import (
	"context"
	"strings"
	"testing"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/budget"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/upstream"
)

// What a server answers a modern client is charged like anything else that is held, refused
// where there is no memory, and given back.
func TestAnswersToModernRequestsAreCharged(t *testing.T) {
	const size = 100 << 10
	memory := budget.New(10 * size)
	account := memory.Guest("somebody")
	server := &scripted{verbatim: func(_ context.Context, call *upstream.Call, _ func(jsonrpc.Message)) (*upstream.Answer, error) {
		if short := upstream.Charge(call.Held, size); short != nil {
			return nil, &upstream.Failure{Cause: upstream.NoMemory, Sent: true, Err: short, Detail: short.Error()}
		}
		if memory.Used() < size {
			t.Error("the answer is not charged")
		}
		return &upstream.Answer{Result: []byte(`{}`)}, nil
	}}
	conv := NewConnections(ConnectionOptions{Server: server}).Open()
	for name, ask := range map[string]func() string{
		"over HTTP": func() string {
			r := request("tools/list", "", "")
			return ask(t, ProcessOptions{Server: server}, r.WithContext(downstream.Charging(r.Context(), account))).Body.String()
		},
		"over a connection": func() string {
			msg, _ := jsonrpc.Parse([]byte(`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}`))
			out := &outcome{done: make(chan string, 1)}
			conv.Serve(t.Context(), downstream.Caller{Account: account}, downstream.NewRequest(msg), out)
			return <-out.done
		},
	} {
		if got := ask(); !strings.Contains(got, `"result":{}`) {
			t.Errorf("%s: %s", name, got)
		}
		account.Charge(9 * size)
		if got := ask(); !strings.Contains(got, "limits.memory") {
			t.Errorf("%s, without memory: %s", name, got)
		}
		account.Give(9 * size)
		if left := memory.Used(); left != 0 {
			t.Errorf("%s: %d bytes are still charged", name, left)
		}
	}
}
