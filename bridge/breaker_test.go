package bridge

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/mcpbridge/bridge/bridge/call"
	"github.com/mcpbridge/bridge/bridge/catalog"
	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/mrtr"
)

// declares reports whether a capability was declared with the latest request.
func declares(up *script, capability string) bool {
	calls := up.calls()
	return strings.Contains(member(calls[len(calls)-1], "_meta", mcp.MetaClientCapabilities), `"`+capability+`"`)
}

func TestAClientThatHasNeverAnsweredIsNotAskedAgainForAWhile_F3(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asks, done := inputRequired(`"s"`, question1("q")), result(booked)
		conv, up := session(t, Limits{Flow: mrtr.Limits{ServerRequest: time.Minute}}, asks, done, asks, asks, done)
		request(t, conv, "1", mcp.MethodToolsCall, book)
		pass(time.Minute)
		c := request(t, conv, "2", mcp.MethodToolsCall, book)
		if got := c.result(); declares(up, "elicitation") || !declares(up, "sampling") || !strings.Contains(got, "did not serve when it was last asked") {
			t.Errorf("declared %s, result %s", up.calls()[2].Params, got)
		}
		pass(6 * time.Minute)
		c = request(t, conv, "3", mcp.MethodToolsCall, book)
		if !declares(up, "elicitation") {
			t.Error("not declared after the rest")
		}
		c.answer(0, `{"action":"decline"}`)
		c.result()
	})
}

func TestAClientThatHasAnsweredOnceMayLeaveQuestionsUnanswered_F3(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asks, done := inputRequired(`"s"`, question1("q")), result(booked)
		conv, up := session(t, Limits{Flow: mrtr.Limits{ServerRequest: time.Minute}}, asks, done, asks, done, asks, done)
		request(t, conv, "1", mcp.MethodToolsCall, book).answer(0, `{"action":"decline"}`)
		request(t, conv, "2", mcp.MethodToolsCall, book)
		pass(time.Minute)
		request(t, conv, "3", mcp.MethodToolsCall, book).answer(0, `{"action":"decline"}`)
		if !declares(up, "elicitation") || len(up.calls()) != 6 {
			t.Errorf("not declared, or a call too many or too few: %d", len(up.calls()))
		}
	})
}

// What a client has answered is in the record of its session, and costs one write for each kind.
func TestASessionThatIsBroughtBackKnowsWhatItsClientHasAnswered_F3(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asks, done := inputRequired(`"s"`, question1("q")), result(booked)
		limits := Limits{Flow: mrtr.Limits{ServerRequest: time.Minute}}
		conv, _ := session(t, limits, asks, done, asks, done)
		box := &keptInbox{of: conv}
		conv.push = box
		for _, id := range []string{"1", "2"} {
			request(t, conv, id, mcp.MethodToolsCall, book).answer(0, `{"action":"decline"}`)
			synctest.Wait()
		}
		if len(box.kept) != 1 {
			t.Fatalf("it is kept %d times", len(box.kept))
		}
		there, up := session(t, limits, asks, done, asks, done)
		record, err := readRecord(box.kept[0])
		if err != nil {
			t.Fatal(err)
		}
		there.fill(record)
		request(t, there, "3", mcp.MethodToolsCall, book)
		pass(time.Minute)
		request(t, there, "4", mcp.MethodToolsCall, book).answer(0, `{"action":"decline"}`)
		if !declares(up, "elicitation") {
			t.Error("one question that was left unanswered has it asked no more")
		}
	})
}

// A client that answers what was switched off meanwhile is one that serves it, in its record, too.
func TestAnAnswerThatComesLateIsKept_F3(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conv, _ := session(t, Limits{})
		conv.Trust(mcp.Elicitation)
		box := &keptInbox{of: conv}
		conv.push = box
		conv.Distrust(mcp.Elicitation, call.ForGood)
		synctest.Wait()
		conv.Trust(mcp.Elicitation)
		synctest.Wait()
		if len(box.kept) != 2 || strings.Contains(string(box.kept[1]), "breaker\":{\"elicitation") {
			t.Errorf("kept: %s", box.kept)
		}
	})
}

// keptInbox keeps what its session is each time that it changes, as a front with a store does.
type keptInbox struct {
	inbox
	of   *conversation
	kept [][]byte
}

func (k *keptInbox) Changed() { k.kept = append(k.kept, k.of.Record()) }

func TestAClientThatLacksAMethodIsNotAskedAgain_F3(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asks, done := inputRequired(`"s"`, question1("q")), result(booked)
		conv, up := session(t, Limits{}, asks, done, done)
		request(t, conv, "1", mcp.MethodToolsCall, book).refuseToAnswer(0, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound})
		pass(1000 * time.Hour)
		request(t, conv, "2", mcp.MethodToolsCall, book).result()
		if declares(up, "elicitation") {
			t.Error("declared again")
		}
	})
}

func TestWhyNothingWasDeclared_C33(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ask := inputRequired(`"s"`, question1("q"))
		conv, _ := session(t, Limits{}, ask, ask)
		c := requestOn(&client{t: t, conv: conv, jsonOnly: true}, "1", mcp.MethodToolsCall, book)
		if got := c.result(); !strings.Contains(got, "Accept header lacks text/event-stream") {
			t.Error(got)
		}
		conv.Declaration = catalog.Undeclared
		if got := request(t, conv, "2", mcp.MethodToolsCall, book).result(); !strings.Contains(got, "which needs a session") {
			t.Error(got)
		}
		b := New(Options{Upstream: &script{steps: []step{ask}}, Log: zerolog.Nop()})
		defer b.Close()
		conv = b.newConversation(mcp.V20251125, downstream.Caller{}, catalog.Unknown, nil)
		conv.declare(nil, []byte(`{"roots":{}}`))
		if got := request(t, conv, "3", mcp.MethodToolsCall, book).result(); !strings.Contains(got, "which the client did not declare") {
			t.Error(got)
		}
	})
}
