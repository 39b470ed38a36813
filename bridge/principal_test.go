package bridge

import (
	"context"
	"errors"
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

// The server may say only later that it knows a token: the calls that were made with it are their maker's then.
func TestWhoHasTakenTheSessionOverAnswersItsEarlierCalls_H6(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ask := inputRequired(`"s"`, question1("q"))
		conv, up := session(t, Limits{}, ask, result(booked), ask, hang)
		conv.Principal = "ada"
		before := downstream.Caller{Principal: "ada's second", Authorization: "a2", Unproven: true}
		after := downstream.Caller{Principal: "ada", Authorization: "a3", Also: []string{"ada's second", "ada's third"}}
		c := requestBy(t, conv, before, "1", book)
		if conv.Knows(visited(), "1") || !conv.Knows(before, "1") || !conv.Knows(after, "1") {
			t.Error("the call is not its maker's alone")
		}
		if err := conv.Answer(visited(), jsonrpc.Message{ID: c.asked()[0].ID, Result: []byte(accepted)}); !errors.Is(err, downstream.ErrNotHere) {
			t.Errorf("it is answered by another: %v", err)
		}
		if err := conv.Answer(after, jsonrpc.Message{ID: c.asked()[0].ID, Result: []byte(accepted)}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		c.result()
		if got := up.calls()[1].Authorization; got != "a3" {
			t.Errorf("the second round carried %q", got)
		}
		c = requestBy(t, conv, before, "2", book)
		conv.Notify(after, jsonrpc.Message{Method: mcp.NotificationCancelled, Params: []byte(`{"requestId":2}`)})
		if !c.abandoned {
			t.Error("it was not cancelled")
		}
	})
}

// Of a kept call its record says whose it is.
func TestAKeptCallIsWhoseItsRecordSays_H6(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conv, _ := session(t, Limits{}, inputRequired(`"s"`, question1("q")))
		requestBy(t, conv, downstream.Caller{Principal: "ada"}, "1", book)
		flow := conv.Flows()[0]
		for caller, want := range map[string]bool{"ada": true, "eve": false} {
			if got := conv.Owns(downstream.Caller{Principal: caller, Unproven: true}, flow); got != want {
				t.Errorf("it is %s's: %v", caller, got)
			}
		}
		if conv.Owns(downstream.Caller{Principal: "ada", Unproven: true}, []byte(`{}`)) || !conv.Owns(downstream.Caller{Principal: "ada"}, []byte(`{}`)) {
			t.Error("one that cannot be read is not the owner's")
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
