package legacy

import (
	"net/http"
	"testing"
	"time"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/jsonrpc"
)

// leftCall returns the client and the conversation of a call whose question is kept. It is just being left to
// another process: nobody knows its question any more, and its stream is still here.
func leftCall(t *testing.T, leaving int) (*peer, *fakeConv) {
	t.Helper()
	b := newFake()
	_, p := serve(t, stored(), b)
	p.initialize("2025-11-25")
	done := make(chan struct{})
	go func() {
		defer close(done)
		p.post(`{"jsonrpc":"2.0","id":"call","method":"hold"}`)
	}()
	k := <-b.held
	question := downstream.Question(`"q"`, "elicitation/create", []byte(`{}`))
	err := k.Checkpointer().Save(downstream.Checkpoint{Request: k.req.ID, N: 1, Record: []byte(`{}`), Open: []jsonrpc.ID{`"q"`}, Message: &question, TTL: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	<-done // its response has begun
	b.last().mu.Lock()
	b.last().leaving = leaving
	b.last().mu.Unlock()
	return p, b.last()
}

// TestAnswerThatMeetsACallOnItsWayIsNotLost: it is taken when somebody has it.
func TestAnswerThatMeetsACallOnItsWayIsNotLost(t *testing.T) {
	p, conv := leftCall(t, 3)
	want(t, "the answer", p.status(`{"jsonrpc":"2.0","id":"q","result":{"action":"decline"}}`), http.StatusAccepted)
	conv.mu.Lock()
	defer conv.mu.Unlock()
	want(t, "answers that were taken", len(conv.answered), 1)
}

// TestAnswerThatNobodyTakesIsToComeAgain: no 202 for what counts for nothing.
func TestAnswerThatNobodyTakesIsToComeAgain(t *testing.T) {
	p, _ := leftCall(t, 1000)
	want(t, "the answer", p.status(`{"jsonrpc":"2.0","id":"q","result":{"action":"decline"}}`), http.StatusServiceUnavailable)
}
