package bridge

import (
	"context"
	"strconv"
	"testing"

	"github.com/rs/zerolog"

	"github.com/mcpbridge/bridge/bridge/catalog"
	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/rawjson"
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

func (discard) Checkpointer() downstream.Checkpointer { return nil }

func (discard) Interactive() bool               { return true }
func (discard) Queue(downstream.Message)        {}
func (discard) Flush()                          {}
func (discard) Send(downstream.Message)         {}
func (discard) Finish(downstream.Message)       {}
func (discard) Refuse(*downstream.Refusal) bool { return true }
func (discard) Abandon()                        {}
func (discard) Address() downstream.Address     { return downstream.Address{} }
func (discard) Reachable() bool                 { return true }
func (discard) Attached() bool                  { return true }
func (discard) Delivered() bool                 { return true }
func (discard) Continue(work func())            { go work() }
func (discard) Outlast() func()                 { return func() {} }

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

// chatty is an upstream that tells a hundred times of progress before it answers.
type chatty struct {
	instant
	params []byte
}

func (c *chatty) Do(ctx context.Context, call *upstream.Call, notify func(jsonrpc.Message)) (*upstream.Answer, error) {
	c.params = append(c.params[:0], `{"progressToken":`...)
	c.params = append(c.params, rawjson.Get(rawjson.Get(call.Params, "_meta"), "progressToken")...)
	c.params = append(c.params, `,"total":300,"message":"a step","progress":`...)
	for at := range 100 {
		params := strconv.AppendInt(c.params, int64(at+100), 10)
		notify(jsonrpc.Message{Method: mcp.NotificationProgress, Params: append(params, '}')})
	}
	return c.instant.Do(ctx, call, notify)
}

// tally is a client that counts what is queued for it.
type tally struct {
	discard
	queued int
}

func (c *tally) Queue(downstream.Message) { c.queued++ }

// progressing returns a function that makes a call with a hundred notifications of
// progress, and tells how many reach its client.
func progressing(t testing.TB) func() int {
	conv := conversationOn(t, &chatty{instant: instant{upstream.Answer{Result: []byte(benchResult)}}, params: make([]byte, 0, 256)})
	req := downstream.NewRequest(jsonrpc.Message{ID: "7", Method: mcp.MethodToolsCall,
		Params: []byte(`{"name":"echo","arguments":{"text":"hello"},"_meta":{"progressToken":7}}`)})
	ctx, out := context.Background(), &tally{}
	return func() int {
		out.queued = 0
		conv.Serve(ctx, downstream.Caller{}, req, out)
		return out.queued
	}
}

// BenchmarkPlainCall is the bridge's own share of a call: everything between
// the two hops.
func BenchmarkPlainCall(b *testing.B) { benchmarkCall(b, benchConversation(b)) }
