package bridge

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/bridge/ask"
	"github.com/mcpbridge/bridge/bridge/catalog"
	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
)

// formless returns a session of a client that opens addresses but shows no forms.
func formless(t *testing.T, steps ...step) (*conversation, *script, *person) {
	conv, up, someone := mute(t, ask.Page, steps...)
	conv.declare(conv.ClientInfo, []byte(`{"elicitation":{"url":{}}}`))
	return conv, up, someone
}

func TestClientThatOpensAddressesIsInvitedToThePage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conv, up, ada := formless(t, inputRequired(`"s"`, form1("q")), result(booked))
		c := request(t, conv, "1", mcp.MethodToolsCall, `{"name":"book","_meta":{"progressToken":7}}`)
		asked := c.asked()
		if len(asked) != 1 || asked[0].Method != mcp.MethodElicitationCreate || !strings.Contains(string(asked[0].Params), `"mode":"url"`) {
			t.Fatalf("asked %v", asked)
		}
		for _, told := range c.notified(mcp.NotificationProgress) {
			if linkIn.Match(told.Params) {
				t.Error("the link came by progress, too")
			}
		}
		link := linkOf(t, string(asked[0].Params))
		c.answer(0, `{"action":"accept"}`)
		pass(time.Minute) // longer than a call of a client that cannot be asked waits
		ada.answer(link, "f0=Ada&action=accept")
		if got := c.result(); !strings.Contains(got, `"ok"`) {
			t.Error(got)
		}
		if got := member(up.calls()[1], "inputResponses"); got != `{"q":{"action":"accept","content":{"name":"Ada"}}}` {
			t.Error(got)
		}
		if done := c.notified(mcp.NotificationElicitationComplete); len(done) != 1 || len(c.notified(mcp.NotificationCancelled)) != 0 {
			t.Errorf("the end of the interaction was told %d times", len(done))
		}
		if conv.table.questions.len() != 0 {
			t.Error("a question is left")
		}
	})
}

func TestWhoDoesNotOpenThePageHasAnswered(t *testing.T) {
	for _, action := range []string{"decline", "cancel"} {
		synctest.Test(t, func(t *testing.T) {
			conv, up, ada := formless(t, inputRequired(`"s"`, form1("q")), result(booked))
			c := request(t, conv, "1", mcp.MethodToolsCall, book)
			c.answer(0, `{"action":"`+action+`"}`)
			if got := c.result(); !strings.Contains(got, `"ok"`) {
				t.Error(got)
			}
			if got := member(up.calls()[1], "inputResponses"); got != `{"q":{"action":"`+action+`"}}` {
				t.Error(got)
			}
			if ada.desk.Len()+conv.table.questions.len() != 0 {
				t.Error("something is left")
			}
		})
	}
}

func TestInvitationThatFailsLeavesTheLink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conv, _, ada := formless(t, inputRequired(`"s"`, form1("q")), result(booked))
		c := request(t, conv, "1", mcp.MethodToolsCall, book)
		c.refuseToAnswer(0, &jsonrpc.Error{Code: jsonrpc.CodeInternal, Message: "no browser"})
		pass(20 * time.Second)
		link := linkOf(t, c.result())
		ada.answer(link, "f0=Ada&action=accept")
		again := request(t, conv, "2", mcp.MethodToolsCall, book)
		if got := again.result(); !strings.Contains(got, `"ok"`) {
			t.Error(got)
		}
	})
}

func TestUnansweredInvitationComesAgainAndGoesWithItsCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conv, _, ada := formless(t, inputRequired(`"s"`, form1("q")))
		first := request(t, conv, "1", mcp.MethodToolsCall, book)
		pass(20 * time.Second)
		second := request(t, conv, "2", mcp.MethodToolsCall, book)
		if len(second.asked()) != 1 || second.asked()[0].ID != first.asked()[0].ID {
			t.Fatalf("asked %v", second.asked())
		}
		conv.cancelled(downstream.Caller{}, "2")
		synctest.Wait()
		if ada.desk.Len()+conv.table.questions.len()+len(conv.table.calls) != 0 {
			t.Error("something is left")
		}
		if len(second.notified(mcp.NotificationCancelled)) != 1 {
			t.Error("the invitation was not taken back")
		}
	})
}

func TestLinkIsLoggedToClientsThatNamedNoLevel(t *testing.T) {
	for _, logs := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			conv, _, _ := mute(t, ask.Page, inputRequired(`"s"`, form1("q")))
			conv.Server = &catalog.Server{Logging: logs, Version: string(mcp.V20260728)}
			c := request(t, conv, "1", mcp.MethodToolsCall, `{"name":"book"}`)
			told := c.notified(mcp.NotificationMessage)
			if logs != (len(told) == 1 && linkIn.Match(told[0].Params)) {
				t.Errorf("logging %v: told %d times", logs, len(told))
			}
			conv.Close(nil)
		})
	}
}
