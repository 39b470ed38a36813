package bridge

import (
	"context"
	"testing"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/observe"
	"github.com/mcpbridge/bridge/observe/metrics"
	"github.com/mcpbridge/bridge/rawjson"
	"github.com/mcpbridge/bridge/upstream"
)

// asking is an upstream that wants to know one thing before it answers.
type asking struct {
	instant
	question upstream.Answer
}

func (a *asking) Do(ctx context.Context, call *upstream.Call, notify func(jsonrpc.Message)) (*upstream.Answer, error) {
	if rawjson.Has(call.Params, "inputResponses") {
		return a.instant.Do(ctx, call, notify)
	}
	question := a.question
	return &question, nil
}

// answering is a client's side of a call. It remembers the server request's id.
type answering struct {
	discard
	asked jsonrpc.ID
	ends  int
}

func (a *answering) Send(msg downstream.Message) { a.asked = msg.ID }
func (a *answering) Finish(downstream.Message)   { a.ends++ }
func (a *answering) Continue(work func())        { work() }

// questioned returns a function that makes a call with one question, on one
// goroutine, and reports whether it ended.
func questioned(t testing.TB) func() bool {
	conv := conversationOn(t, &asking{
		instant{upstream.Answer{Result: []byte(benchResult)}},
		upstream.Answer{Result: []byte(`{"resultType":"input_required","requestState":"s","inputRequests":{"q":{"method":"elicitation/create",` +
			`"params":{"mode":"form","message":"Sure?","requestedSchema":{"type":"object","properties":{"ok":{"type":"boolean"}}}}}}}`)},
	})
	ctx, accept := context.Background(), []byte(`{"action":"accept","content":{"ok":true}}`)
	out := &answering{}
	return func() bool {
		out.ends = 0
		conv.Serve(ctx, downstream.Caller{}, benchRequest, out)
		conv.Answer(downstream.Caller{}, jsonrpc.Message{ID: out.asked, Result: accept})
		return out.ends == 1
	}
}

// BenchmarkQuestion is the bridge's own share of a call with one question.
func BenchmarkQuestion(b *testing.B) {
	run := questioned(b)
	b.ReportAllocs()
	for b.Loop() {
		if !run() {
			b.Fatal("the call did not end")
		}
	}
}

// TestAllocationBudget is the bridge's own share: the hops cost nothing, except
// for the Answer of each round, and the question's id that the client remembers.
func TestAllocationBudget(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector empties pools")
	}
	conv, notify, ask := benchConversation(t), progressing(t), questioned(t)
	var out downstream.Reply = discard{}
	ctx := context.Background()
	watched := benchConversation(t)
	watched.Driver.Watch = metrics.NewRegistry("", "").Mount("/mcp", observe.Server{})
	for name, tt := range map[string]struct {
		max float64
		f   func()
	}{
		"plain call": {5, func() { conv.Serve(ctx, downstream.Caller{}, benchRequest, out) }},
		"call with one question": {27, func() {
			if !ask() {
				t.Error("the call did not end")
			}
		}},
		"call with a hundred progress notifications": {11, func() {
			if got := notify(); got != 100 {
				t.Errorf("%d notifications reached the client", got)
			}
		}},
		"plain call, watched": {5, func() { watched.Serve(ctx, downstream.Caller{}, benchRequest, out) }},
	} {
		if got := testing.AllocsPerRun(200, tt.f); got > tt.max {
			t.Errorf("%s: %v allocations, budget %v", name, got, tt.max)
		}
	}
}
