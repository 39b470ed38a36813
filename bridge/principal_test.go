package bridge

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
)

// A session may carry calls of several principals when tokens change in its
// life (H-6): each answers and cancels its own.
func TestAnotherPrincipalNeitherAnswersNorCancels_DI11(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conv, up := session(t, Limits{}, inputRequired(`"s"`, question1("q")), result(booked))
		alice, mallory := downstream.Caller{Principal: "alice", Authorization: "a1"}, downstream.Caller{Principal: "mallory", Authorization: "m"}
		accepted := 0
		alice.Accepted = func() { accepted++ }
		c := &client{t: t, conv: conv}
		go conv.Serve(context.Background(), alice, downstream.NewRequest(jsonrpc.Message{ID: "1", Method: mcp.MethodToolsCall, Params: []byte(book)}), c)
		synctest.Wait()
		if accepted != 1 {
			t.Fatalf("the upstream's answer was reported %d times", accepted)
		}
		answer := jsonrpc.Message{ID: c.asked()[0].ID, Result: []byte(`{"action":"accept"}`)}
		cancel := jsonrpc.Message{Method: mcp.NotificationCancelled, Params: []byte(`{"requestId":1}`)}
		for _, other := range []downstream.Caller{mallory, {}} {
			conv.Answer(other, answer)
			conv.Notify(other, cancel)
			synctest.Wait()
			if len(up.calls()) != 1 || c.ends != 0 {
				t.Fatalf("%q interfered", other.Principal)
			}
		}
		conv.Answer(downstream.Caller{Principal: "alice", Authorization: "a2"}, answer)
		synctest.Wait()
		c.result()
		if got := up.calls()[1].Authorization; got != "a2" {
			t.Fatalf("H-2: the retry carried %q", got)
		}
	})
}

func TestARefusedTokenIsNotAccepted_H6(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conv, _ := session(t, Limits{}) // every request fails
		c := &client{t: t, conv: conv}
		caller := downstream.Caller{Principal: "p", Accepted: func() { t.Error("accepted") }}
		go conv.Serve(context.Background(), caller, downstream.NewRequest(jsonrpc.Message{ID: "1", Method: mcp.MethodToolsCall, Params: []byte(book)}), c)
		synctest.Wait()
		c.result()
	})
}
