package bridge

import (
	"net/url"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/bridge/ask"
	"github.com/mcpbridge/bridge/ask/page"
	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/rs/zerolog"
)

// crowd is a bridge whose clients open no sessions.
type crowd struct {
	t *testing.T
	b *Bridge
	*person
}

func newCrowd(t *testing.T, limits Limits, policy ask.Policy, steps ...step) (*crowd, *script) {
	base, _ := url.Parse("http://127.0.0.1/questions")
	up := &script{steps: steps}
	desk := page.New(base, 100, "")
	b := New(Options{
		Upstream: up, Log: zerolog.Nop(), Limits: limits, Wait: 20 * time.Second,
		Ask: ask.New(ask.Options{Server: "flights", Policy: policy, Desk: desk}),
	})
	t.Cleanup(b.Close)
	return &crowd{t, b, &person{t, desk}}, up
}

// call sends a tools/call on its own, which takes JSON only.
func (c *crowd) call(principal, params string) *client {
	return c.callAs(downstream.Caller{Principal: principal}, params)
}

func (c *crowd) callAs(caller downstream.Caller, params string) *client {
	conv := c.b.Stateless(caller, mcp.V20250618).(*conversation)
	far := &client{t: c.t, conv: conv, jsonOnly: true}
	go conv.Serve(c.t.Context(), caller,
		downstream.NewRequest(jsonrpc.Message{ID: "1", Method: mcp.MethodToolsCall, Params: []byte(params)}), far)
	synctest.Wait()
	return far
}

func TestRequestsWithoutSessionAreKnownByTheirPrincipal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, up := newCrowd(t, Limits{}, ask.Page, inputRequired(`"s"`, form1("q")), inputRequired(`"s"`, form1("q")), result(booked))
		ada := c.call("ada", `{"name":"book"}`)
		eve := c.call("eve", `{"name":"book"}`)
		pass(20 * time.Second)
		if linkOf(t, ada.result()) == linkOf(t, eve.result()) {
			t.Fatal("two people have one link")
		}
		c.answer(linkOf(t, ada.result()), "f0=Ada&action=accept")
		if got := c.call("ada", `{"name":"book"}`).result(); !strings.Contains(got, `"ok"`) {
			t.Error(got)
		}
		if got := member(up.calls()[2], "inputResponses"); got != `{"q":{"action":"accept","content":{"name":"Ada"}}}` {
			t.Error(got)
		}
		c.b.Close()
		synctest.Wait()
		if c.desk.Len() != 0 || c.b.replies.Len() != 0 {
			t.Error("something is left")
		}
	})
}

func TestNobodyInParticularIsNotAskedOnAPage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, up := newCrowd(t, Limits{}, ask.Page, result(booked))
		c.call("", `{"name":"book"}`)
		if got := member(up.calls()[0], "_meta", "io.modelcontextprotocol/clientCapabilities"); got != `{}` {
			t.Errorf("declared upstream: %s", got)
		}
	})
}

func TestRequestsWithoutSessionAreAnsweredByPolicy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, up := newCrowd(t, Limits{}, ask.Decline, inputRequired(`"s"`, form1("q")), result(booked))
		if got := c.call("", `{"name":"book"}`).result(); !strings.Contains(got, `"ok"`) {
			t.Error(got)
		}
		if got := member(up.calls()[1], "inputResponses"); got != `{"q":{"action":"decline"}}` {
			t.Error(got)
		}
	})
}

func TestWaitingCallsWithoutSessionAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ask1 := inputRequired(`"s"`, form1("q"))
		c, _ := newCrowd(t, Limits{FlowsPerSession: 2}, ask.Page, ask1, ask1, ask1, ask1)
		c.call("eve", `{"name":"book"}`)
		for _, n := range []string{"1", "2", "3"} {
			c.call("ada", `{"name":"book","arguments":{"n":`+n+`}}`)
		}
		pass(20 * time.Second)
		if waiting := c.b.replies.Len(); c.desk.Len() != 3 || waiting != 3 { // two of ada's, and eve's
			t.Errorf("%d questions, %d calls", c.desk.Len(), waiting)
		}
	})
}

// Whoever makes tokens up is one party, however many principals that makes: the page has
// places left for others.
func TestStrangersOfOneAddressLeaveQuestionsToOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asks := make([]step, 101)
		for i := range asks {
			asks[i] = inputRequired(`"s"`, form1("q"))
		}
		c, _ := newCrowd(t, Limits{}, ask.Page, asks...)
		for n := range 100 {
			c.callAs(downstream.Caller{Principal: "made up " + strconv.Itoa(n), Tenant: "address 192.0.2.1"}, `{"name":"book"}`)
		}
		if n := c.desk.Len(); n != 88 {
			t.Errorf("one address has %d of 100 places for questions", n)
		}
		ada := c.callAs(downstream.Caller{Principal: "ada", Tenant: "address 192.0.2.2"}, `{"name":"book"}`)
		pass(20 * time.Second)
		linkOf(t, ada.result())
	})
}

func TestClientThatTakesOnlyJSONIsServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conv, up, ada := mute(t, ask.Page, inputRequired(`"s"`, form1("q")), result(booked))
		conv.declare(conv.ClientInfo, []byte(declaredByClient)) // which cannot be used on such requests
		first := requestOn(&client{t: t, conv: conv, jsonOnly: true}, "1", mcp.MethodToolsCall, book)
		pass(20 * time.Second)
		ada.answer(linkOf(t, first.result()), "f0=Ada&action=accept")
		again := requestOn(&client{t: t, conv: conv, jsonOnly: true}, "2", mcp.MethodToolsCall, book)
		if got := again.result(); !strings.Contains(got, `"ok"`) || len(up.calls()) != 2 {
			t.Error(got)
		}
		if len(first.sent)+len(again.sent) != 0 {
			t.Error("messages before the response")
		}
	})
}
