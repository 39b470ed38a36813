package relay

import (
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/jsonrpc"
)

// D-15: what a server may have executed is not sent again, whatever the client's
// headers promise.
func TestD15WhatIsRelayedIsNotRepeated(t *testing.T) {
	var executed atomic.Int32
	_, _, conv := connected(t, func(w http.ResponseWriter, r *http.Request, _ *jsonrpc.Message) {
		if executed.Add(1) > 1 {
			panic(http.ErrAbortHandler)
		}
		if got := r.Header.Get("Idempotency-Key"); got != "k" {
			t.Errorf("the server got the key %q", got)
		}
		plain(w, response(`"a"`))
	})
	caller := downstream.Caller{Authorization: "Bearer mine", Header: http.Header{"Idempotency-Key": {"k"}}}
	for range 2 {
		out := newReply()
		conv.Serve(t.Context(), caller, downstream.NewRequest(message(t, aCall)), out)
		out.wait(t)
	}
	if n := executed.Load(); n != 2 {
		t.Errorf("two calls were executed %d times", n)
	}
}
