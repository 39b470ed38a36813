package bridge

import (
	"context"
	"testing"

	"github.com/rs/zerolog"

	"github.com/mcpbridge/bridge/bridge/catalog"
	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/mrtr"
	"github.com/mcpbridge/bridge/upstream"
)

// instant is an upstream that answers at once.
type instant struct{ answer upstream.Answer }

func (i *instant) Do(context.Context, *upstream.Call, func(jsonrpc.Message)) (*upstream.Answer, error) {
	answer := i.answer
	return &answer, nil
}
func (*instant) Listen(context.Context, *upstream.Call, func(jsonrpc.Message)) error { return nil }
func (*instant) Close() error                                                        { return nil }

type discard struct{}

func (discard) Safe() downstream.Safe { return nil }

func (discard) Interactive() bool               { return true }
func (discard) Queue(downstream.Message)        {}
func (discard) Flush()                          {}
func (discard) Send(downstream.Message)         {}
func (discard) Finish(downstream.Message)       {}
func (discard) Refuse(*downstream.Refusal) bool { return true }
func (discard) Abandon()                        {}
func (discard) Address() downstream.Address     { return downstream.Address{} }
func (discard) Reachable() bool                 { return true }
func (discard) Continue(work func())            { go work() }

var benchRequest = downstream.NewRequest(jsonrpc.Message{ID: "7", Method: mcp.MethodToolsCall, Params: []byte(`{"name":"echo","arguments":{"text":"hello"}}`)})

func benchmarkCall(b *testing.B, conv *conversation) {
	req := benchRequest
	var out downstream.Reply = discard{}
	ctx := context.Background()
	b.ReportAllocs()
	for b.Loop() {
		conv.Serve(ctx, downstream.Caller{}, req, out)
	}
}

const benchResult = `{"resultType":"complete","content":[{"type":"text","text":"hello"}]}`

func benchConversation(t testing.TB) *conversation {
	return conversationOn(t, &instant{upstream.Answer{Result: []byte(benchResult)}})
}

func conversationOn(t testing.TB, up upstream.Caller) *conversation {
	bridge := New(Options{Upstream: up, Log: zerolog.Nop()})
	t.Cleanup(bridge.Close)
	conv := bridge.newConversation(mcp.V20251125, downstream.Caller{}, catalog.Unknown, nil)
	conv.declare([]byte(`{"name":"old","version":"1"}`), []byte(`{"elicitation":{},"sampling":{}}`))
	return conv
}

// progressing returns a function that has a call notify its client of progress.
func progressing(t testing.TB) func() {
	k := &call{conv: benchConversation(t), out: discard{}}
	k.flow.Progress.Token, k.token = []byte("7"), []byte(`"p-1-0"`)
	k.flow.State = mrtr.Sending
	msg := jsonrpc.Message{Method: mcp.NotificationProgress,
		Params: []byte(`{"progressToken":"p-1-0","progress":3,"total":10,"message":"step 3 of 10"}`)}
	r := &round{call: k}
	return func() {
		k.flow.Progress.Started = false
		r.notify(msg)
	}
}

// BenchmarkProgress is the bridge's own share of a progress notification.
func BenchmarkProgress(b *testing.B) {
	notify := progressing(b)
	b.ReportAllocs()
	for b.Loop() {
		notify()
	}
}

// BenchmarkPlainCall is the bridge's own share of a call: everything between
// the two hops.
func BenchmarkPlainCall(b *testing.B) { benchmarkCall(b, benchConversation(b)) }
