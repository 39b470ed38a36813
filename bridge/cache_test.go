package bridge

import (
	"context"
	"fmt"
	"net/http"
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

func TestCacheIsPartitionedByPrincipal_B42_B45(t *testing.T) {
	c := newCache()
	key := func(principal string) cacheKey {
		return cacheKey{principal: principal, method: mcp.MethodResourcesRead}
	}
	put(c, key("alice"), 0, []byte(resource))
	for _, principal := range []string{"bob", ""} {
		if got, _ := c.get(key(principal)); got != nil {
			t.Fatalf("%q got what took alice's credentials", principal)
		}
	}
	put(c, key(""), 0, []byte(resource))
	if got, _ := c.get(key("bob")); got == nil {
		t.Fatal("a public result is not shared")
	}
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

func TestNotificationsInvalidate_B44(t *testing.T) {
	c := newCache()
	tools := cacheKey{method: mcp.MethodToolsList}
	read := cacheKey{method: mcp.MethodResourcesRead, uri: "file:///dir"}
	b := &Bridge{cache: c}
	put(c, tools, 0, []byte(listed))
	put(c, read, 0, []byte(resource))
	b.invalidates(jsonrpc.Message{Method: mcp.NotificationToolsListChanged})
	if got, _ := c.get(tools); got != nil {
		t.Fatal("tools survived")
	}
	put(c, tools, 0, []byte(listed)) // asked for before the notification
	if got, _ := c.get(tools); got != nil {
		t.Fatal("an older answer was stored after the notification")
	}
	b.invalidates(jsonrpc.Message{Method: mcp.NotificationResourcesUpdated, Params: []byte(`{"uri":"file:///dir/part"}`)})
	if got, _ := c.get(read); got != nil {
		t.Fatal("the ancestor of an updated resource survived")
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

func TestCacheIsBounded(t *testing.T) {
	c := newCache()
	for i := range maxCacheEntries + 10 {
		put(c, cacheKey{rest: fmt.Sprintf("%04d", i)}, 0, []byte(listed))
	}
	if len(c.entries) > maxCacheEntries || c.bytes != len(c.entries)*(4+len(listed)) {
		t.Fatalf("%d entries, %d bytes", len(c.entries), c.bytes)
	}
	for i := range 100 { // what a client writes into its requests counts as well
		put(c, cacheKey{rest: fmt.Sprint(i) + strings.Repeat("x", 1<<20)}, 0, []byte(listed))
	}
	if c.bytes > maxCacheBytes || c.bytes < maxCacheBytes/2 {
		t.Fatalf("%d entries, %d bytes", len(c.entries), c.bytes)
	}
	c.drop(func(cacheKey) bool { return true })
	if c.bytes != 0 {
		t.Fatalf("%d bytes in an empty cache", c.bytes)
	}
}

// put keeps a result for as long as it says.
func put(c *cache, key cacheKey, epoch uint64, result []byte) {
	ttl, public := lifetime(result)
	c.put(key, epoch, result, ttl, public)
}
