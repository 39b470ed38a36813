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
		told := new(inbox)
		conv.push = told
		alice, mallory := downstream.Caller{Principal: "alice", Authorization: "a1", Rotation: 3}, downstream.Caller{Principal: "mallory", Authorization: "m"}
		c := &client{t: t, conv: conv}
		go conv.Serve(context.Background(), alice, downstream.NewRequest(jsonrpc.Message{ID: "1", Method: mcp.MethodToolsCall, Params: []byte(book)}), c)
		synctest.Wait()
		if len(told.accepted) != 1 || told.accepted[0].Authorization != "a1" || told.accepted[0].Rotation != 3 {
			t.Fatalf("the upstream's answer was reported %v", told.accepted)
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
		if len(told.accepted) != 1 {
			t.Fatal("it was reported again")
		}
		if got := up.calls()[1].Authorization; got != "a2" {
			t.Fatalf("H-2: the retry carried %q", got)
		}
	})
}

func TestARefusedTokenIsNotAccepted_H6(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conv, _ := session(t, Limits{}) // every request fails
		c := &client{t: t, conv: conv}
		told := new(inbox)
		conv.push = told
		caller := downstream.Caller{Principal: "p", Rotation: 1}
		go conv.Serve(context.Background(), caller, downstream.NewRequest(jsonrpc.Message{ID: "1", Method: mcp.MethodToolsCall, Params: []byte(book)}), c)
		synctest.Wait()
		c.result()
		if len(told.accepted) > 0 {
			t.Error("accepted")
		}
	})
}

// TestASessionWithoutAChannelIsKept: what changes in it is to be stored, though nothing can
// be pushed.
func TestASessionWithoutAChannelIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conv, _ := session(t, Limits{})
		told := &inbox{deaf: true}
		conv.push = told
		request(t, conv, "1", mcp.MethodSetLevel, `{"level":"error"}`).result()
		if told.changes != 1 || told.take() != "" {
			t.Errorf("%d changes", told.changes)
		}
	})
}
