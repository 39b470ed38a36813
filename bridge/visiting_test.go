package bridge

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/bridge/ask"
	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/mrtr"
	"github.com/mcpbridge/bridge/upstream"
)

func visited() downstream.Caller { return downstream.Caller{Principal: "ada", Authorization: "good"} }

// visitors are who may know no more than the id of ada's session: a token of somebody's, and one that is forged in her name.
func visitors() []downstream.Caller {
	return []downstream.Caller{{Principal: "eve", Authorization: "evil", Unproven: true}, {Principal: "ada", Authorization: "forged", Unproven: true, Rotation: 1}}
}

// visit runs a test for each kind of visitor.
func visit(t *testing.T, test func(t *testing.T, visitor downstream.Caller)) {
	for _, visitor := range visitors() {
		t.Run(visitor.Authorization, func(t *testing.T) { synctest.Test(t, func(t *testing.T) { test(t, visitor) }) })
	}
}

// How a visitor answers says nothing of the session's client.
func TestAVisitorSwitchesNoQuestionsOff_H6(t *testing.T) {
	visit(t, func(t *testing.T, visitor downstream.Caller) {
		asks, done := inputRequired(`"s"`, question1("q")), result(booked)
		conv, up := session(t, Limits{Flow: mrtr.Limits{ServerRequest: time.Minute}}, asks, done, asks, done, asks, done)
		conv.Principal = "ada"
		c := requestBy(t, conv, visitor, "1", book)
		conv.Answer(visitor, jsonrpc.Message{ID: c.asked()[0].ID, Error: &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound}})
		synctest.Wait()
		requestBy(t, conv, visitor, "2", book)
		pass(time.Minute)
		c = requestBy(t, conv, visited(), "3", book)
		if !declares(up, "elicitation") || len(c.asked()) != 1 {
			t.Fatalf("the owner is not asked any more after %d requests: %+v", len(up.calls()), c.response)
		}
		conv.Answer(visited(), jsonrpc.Message{ID: c.asked()[0].ID, Result: []byte(accepted)})
		synctest.Wait()
		c.result()
	})
}

// Nor does a visitor's silence, or that he answers, count for it.
func TestAVisitorMakesNobodyTrusted_F3(t *testing.T) {
	visit(t, func(t *testing.T, visitor downstream.Caller) {
		asks, done := inputRequired(`"s"`, question1("q")), result(booked)
		conv, up := session(t, Limits{Flow: mrtr.Limits{ServerRequest: time.Minute}}, asks, done, asks, done)
		conv.Principal = "ada"
		c := requestBy(t, conv, visitor, "1", book)
		conv.Answer(visitor, jsonrpc.Message{ID: c.asked()[0].ID, Result: []byte(`{"action":"decline"}`)})
		synctest.Wait()
		requestBy(t, conv, visited(), "2", book)
		pass(time.Minute)
		requestBy(t, conv, visited(), "3", book)
		if declares(up, "elicitation") {
			t.Error("a client that never answered is asked")
		}
	})
}

// The page of a visitor's question leads to nobody else's.
func TestAVisitorsPageLeadsToNobodysQuestions(t *testing.T) {
	visit(t, func(t *testing.T, visitor downstream.Caller) {
		asks := []step{inputRequired(`"1"`, form1("q")), inputRequired(`"2"`, form1("q")), inputRequired(`"3"`, form1("q"))}
		conv, _, who := mute(t, ask.Page, asks...)
		conv.Principal = "ada"
		calls := []*client{requestBy(t, conv, visited(), "1", `{"name":"a"}`), requestBy(t, conv, visitor, "2", `{"name":"b"}`), requestBy(t, conv, visited(), "3", `{"name":"c"}`)}
		pass(20 * time.Second)
		links := []string{linkOf(t, calls[0].result()), linkOf(t, calls[1].result()), linkOf(t, calls[2].result())}
		if others := mine(t, who.desk, links[1]); strings.Contains(others, links[0]) || strings.Contains(others, links[2]) {
			t.Errorf("what waits for the visitor: %s", others)
		}
		if others := mine(t, who.desk, links[0]); strings.Contains(others, links[1]) || !strings.Contains(others, links[2]) {
			t.Errorf("what waits for the owner: %s", others)
		}
	})
}

// What answering for visitors costs is not the session's.
func TestAVisitorSpendsNothingOfTheSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conv, _ := session(t, Limits{})
		if first, second := conv.Visitors().Spent(), conv.Visitors().Spent(); first == conv.Spent() || first != second {
			t.Error("visitors have no allowance of their own, or many")
		}
	})
}

// What a server lists for a visitor promises its owner nothing.
func TestWhatAVisitorIsToldOfToolsHoldsForNobodyElse_D15(t *testing.T) {
	harmless := result(`{"tools":[{"name":"x","inputSchema":{"type":"object"},"outputSchema":{"type":"array"},"annotations":{"readOnlyHint":true}}]}`)
	destructive := result(`{"tools":[{"name":"x","inputSchema":{"type":"object"}}]}`)
	lost := failure(&upstream.Failure{Cause: upstream.Lost, Sent: true, Detail: "reset"})
	object := result(`{"resultType":"complete","content":[],"structuredContent":{"v":1}}`)
	visit(t, func(t *testing.T, visitor downstream.Caller) {
		conv, up := session(t, Limits{}, destructive, harmless, lost, object, lost)
		conv.Principal = "ada"
		by := func(caller downstream.Caller, id, method string) *client {
			c := &client{t: t, conv: conv}
			go conv.Serve(t.Context(), caller, downstream.NewRequest(jsonrpc.Message{ID: jsonrpc.ID(id), Method: method, Params: []byte(`{"name":"x"}`)}), c)
			synctest.Wait()
			return c
		}
		by(visited(), "1", mcp.MethodToolsList).result()
		by(visitor, "2", mcp.MethodToolsList).result()
		by(visited(), "3", mcp.MethodToolsCall).rpcError()
		if n := len(up.calls()); n != 3 {
			t.Errorf("the tool ran %d times", n-2)
		}
		if got := by(visited(), "4", mcp.MethodToolsCall).result(); !strings.Contains(got, `"structuredContent":{"v":1}`) {
			t.Errorf("the owner got %s", got)
		}
	})
}

// A visitor could not come back for a task, and its owner's places are not his.
func TestAVisitorsTasksAreNotHosted(t *testing.T) {
	visit(t, func(t *testing.T, visitor downstream.Caller) {
		conv, _ := hostingSession(t, result(booked), result(booked))
		conv.Principal = "ada"
		if got := requestBy(t, conv, visitor, "1", asTask).result(); strings.Contains(got, "taskId") {
			t.Errorf("the visitor got %s", got)
		}
		if got := requestBy(t, conv, visited(), "2", asTask).result(); !strings.Contains(got, "taskId") {
			t.Errorf("the owner got %s", got)
		}
	})
}
