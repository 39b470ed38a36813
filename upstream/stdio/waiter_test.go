package stdio

import (
	"bytes"
	"testing"

	"github.com/mcpbridge/bridge/jsonrpc"
)

func TestWhatWaitsForASlowCallerIsBoundedInBytes(t *testing.T) {
	w := &waiter{wake: make(chan struct{}, 1)}
	big := jsonrpc.Message{Params: bytes.Repeat([]byte("x"), maxQueuedBytes+1)}
	small := jsonrpc.Message{Params: []byte("{}")}
	for i, step := range []struct {
		msg  jsonrpc.Message
		want bool
	}{{big, true}, {small, false}, {big, false}} {
		if got := w.push(step.msg); got != step.want {
			t.Errorf("message %d taken: %v", i, got)
		}
	}
	if news, _, _ := w.deliver(sink{}); !news || !w.push(small) || !w.push(small) {
		t.Error("nothing is taken after a delivery")
	}
}
