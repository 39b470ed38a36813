package bridge

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
)

const (
	listed   = `{"resultType":"complete","tools":[],"ttlMs":60000,"cacheScope":"private"}`
	resource = `{"contents":[{"uri":"file:///a","text":"x"}],"ttlMs":60000,"cacheScope":"public"}`
)

func TestListsAreCached_B40_B46(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conv, up := session(t, Limits{}, result(listed), result(listed), result(listed))
		for range 3 {
			request(t, conv, "1", mcp.MethodToolsList, `{"_meta":{"progressToken":1}}`).result()
		}
		if n := len(up.calls()); n != 1 {
			t.Fatalf("%d upstream requests", n)
		}
		request(t, conv, "1", mcp.MethodToolsList, `{"cursor":""}`).result() // B-41: another result
		pass(2 * time.Minute)
		if n := len(up.calls()); n != 2 {
			t.Fatalf("B-46: %d upstream requests without a client's", n)
		}
		request(t, conv, "1", mcp.MethodToolsList, `{}`).result()
		if n := len(up.calls()); n != 3 {
			t.Fatalf("%d upstream requests after the TTL", n)
		}
	})
}

func TestWhatDistinguishesRequestsPartitionsTheCache_B41_B42(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var steps []step
		for range 9 {
			steps = append(steps, result(listed))
		}
		conv, up := session(t, Limits{}, steps...)
		read := func(header http.Header, params string) (asked bool) {
			before := len(up.calls())
			c := &client{t: t, conv: conv}
			conv.Serve(context.Background(), downstream.Caller{Header: header},
				downstream.NewRequest(jsonrpc.Message{ID: "1", Method: mcp.MethodToolsList, Params: []byte(params)}), c)
			c.result()
			return len(up.calls()) > before
		}
		alice, bob := http.Header{"X-Api-Key": {"alice"}}, http.Header{"X-Api-Key": {"bob"}}
		for i, tc := range []struct {
			header http.Header
			params string
			asked  bool
		}{
			{nil, `{}`, true},
			{http.Header{"User-Agent": {"x"}, "Mcp-Session-Id": {"s"}}, `{"_meta":{"progressToken":1,"` + mcp.MetaClientInfo + `":{}}}`, false},
			{alice, `{}`, true},
			{bob, `{}`, true},
			{alice, `{}`, false},
			{nil, `{"_meta":{"vendor/x":1,"progressToken":1}}`, true},
			{nil, `{"_meta":{"vendor/x":2}}`, true},
			{nil, `{"_meta":{"vendor/x":1,"progressToken":2}}`, false},
		} {
			if got := read(tc.header, tc.params); got != tc.asked {
				t.Errorf("request %d: the server was asked: %v", i, got)
			}
		}
	})
}

// One person's tokens may have different rights at the server: what one of them read is no
// answer for another where that is told them apart, and for anybody where it is told of none.
func TestResultsAreKeptForWhomTheServerTold_B42(t *testing.T) {
	for name, tc := range map[string]struct {
		byToken, one bool
		also         []string
		asked        string
	}{
		"by principal":                      {asked: "true false true"},
		"by token":                          {byToken: true, asked: "true true true"},
		"one for all":                       {one: true, asked: "true false false"},
		"where tokens took another's place": {also: []string{"ada's newer"}, asked: "true true true"},
		"one for all, with newer tokens":    {one: true, also: []string{"ada's newer"}, asked: "true false false"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				conv, up := session(t, Limits{}, result(listed), result(listed), result(listed))
				conv.Driver.ByToken, conv.Driver.OneIdentity = tc.byToken, tc.one
				var asked []string
				for _, caller := range []downstream.Caller{
					{Principal: "ada", Authorization: "Bearer all"}, {Principal: "ada", Authorization: "Bearer little"}, {Principal: "eve", Authorization: "Bearer other"},
				} {
					before := len(up.calls())
					caller.Also = tc.also
					c := &client{t: t, conv: conv}
					conv.Serve(t.Context(), caller, downstream.NewRequest(jsonrpc.Message{ID: "1", Method: mcp.MethodToolsList, Params: []byte(`{}`)}), c)
					c.result()
					asked = append(asked, strconv.FormatBool(len(up.calls()) > before))
				}
				if got := strings.Join(asked, " "); got != tc.asked {
					t.Errorf("the server was asked: %s, want %s", got, tc.asked)
				}
			})
		})
	}
}

func TestFlowsAreNeverCached_B43(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conv, up := session(t, Limits{}, inputRequired(`"s"`, question1("q")), result(resource),
			inputRequired(`"s"`, question1("q")))
		c := request(t, conv, "1", mcp.MethodResourcesRead, `{"uri":"file:///a"}`)
		c.answer(0, `{"action":"accept"}`)
		c.result()
		request(t, conv, "2", mcp.MethodResourcesRead, `{"uri":"file:///a"}`)
		if n := len(up.calls()); n != 3 {
			t.Fatalf("%d upstream requests", n)
		}
		conv.Close(nil)
	})
}

// TestAKeptResultThatCannotBeShownEndsItsCall: with an error, as it would have ended with
// the result fresh from the server, who is not asked a second time. A cancellation of the
// call finds it over.
func TestAKeptResultThatCannotBeShownEndsItsCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conv, up := session(t, Limits{}, result(listed))
		req := downstream.NewRequest(jsonrpc.Message{ID: "1", Method: mcp.MethodToolsList, Params: []byte(`{}`)})
		capabilities, _ := conv.Declares()
		_, slot := conv.Driver.Catalog.Lookup("", nil, &req, capabilities)
		slot.Keep([]byte(`{"tools":7,"ttlMs":60000,"cacheScope":"public"}`))
		c := request(t, conv, "1", mcp.MethodToolsList, `{}`)
		if n := len(up.calls()); n != 0 {
			t.Errorf("the server was asked %d times", n)
		}
		if e := c.rpcError(); e == nil || !strings.Contains(e.Message, "tools has the wrong type") {
			t.Errorf("the client got %v", e)
		}
		if conv.Knows(downstream.Caller{}, "1") {
			t.Error("the call goes on")
		}
	})
}
