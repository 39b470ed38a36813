package session

import (
	"net/http"
	"testing"
	"time"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/hop"
	"github.com/mcpbridge/bridge/jsonrpc"
)

func TestWhereCallsWaitIsBoundedAndForgotten(t *testing.T) {
	s, now := &Session{stored: new(stored)}, time.Now()
	msg := jsonrpc.Message{Method: "tools/call", Params: []byte(`{"name":"book","arguments":{"a":1,"b":2}}`)}
	at := func(want downstream.ReplicaID) {
		t.Helper()
		if got := s.WaitsAt(&msg, http.Header{"X-Api-Key": {"ada"}}); got != want {
			t.Errorf("it waits at %v, want %v", got, want)
		}
	}
	at(0)
	call := downstream.Likeness(&msg, hop.Person("", http.Header{"X-Api-Key": {"ada"}}))
	s.stored.waiting.adopt([]waiting{{call, 7, now.Add(time.Minute)}, {call + 1, 9, now.Add(time.Hour)}})
	msg.Params = []byte(`{"_meta":{"progressToken":1},"arguments":{"b":2.0,"a":1},"name":"book"}`)
	at(7)
	s.stored.waiting.adopt([]waiting{{call, 8, now.Add(time.Second)}})
	if got := s.WaitsAt(&msg, http.Header{"X-Api-Key": {"bob"}}); got != 0 {
		t.Errorf("the same call of somebody else waits at %v", got)
	}
	at(7) // the later one counts, whichever is heard of last
	s.stored.waiting.adopt([]waiting{{call, 8, now.Add(2 * time.Minute)}})
	at(8)
	for i := range 2 * maxWaiting {
		s.stored.waiting.adopt([]waiting{{call + 2 + uint64(i), 9, now.Add(time.Hour)}})
	}
	if n := len(s.stored.waiting.all()); n != maxWaiting {
		t.Errorf("%d entries", n)
	}
	at(0)
	s.stored.waiting = waitingCalls{}
	s.stored.waiting.adopt([]waiting{{call, 7, now.Add(-time.Second)}})
	if s.stored.waiting.all() != nil {
		t.Error("one whose time is over is kept")
	}
}
