package catalog

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/hop"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/negotiate"
)

const (
	listed   = `{"resultType":"complete","tools":[],"ttlMs":60000,"cacheScope":"private"}`
	resource = `{"contents":[{"uri":"file:///a","text":"x"}],"ttlMs":60000,"cacheScope":"public"}`
)

func fresh() *Catalog { return New(negotiate.NewProber(negotiate.Options{}), nil) }

func requestOf(method, params string) *downstream.Request {
	req := downstream.NewRequest(jsonrpc.Message{ID: "1", Method: method, Params: []byte(params)})
	return &req
}

// ask answers a request as a session does: from the catalogue, or else with result,
// which it keeps. It reports whether the server was asked.
func ask(c *Catalog, principal string, req *downstream.Request, result string) (asked bool) {
	known, slot := c.Lookup(principal, nil, req, nil)
	if slot != nil {
		slot.Keep([]byte(result))
	}
	return known == nil
}

func TestResultsArePartitionedByPrincipal_B42_B45(t *testing.T) {
	c, read := fresh(), requestOf(mcp.MethodResourcesRead, `{"uri":"file:///a"}`)
	for _, tt := range []struct {
		principal string
		asked     bool
	}{{"alice", true}, {"alice", false}, {"bob", true}, {"", true}, {"carol", false}} {
		if asked := ask(c, tt.principal, read, resource); asked != tt.asked {
			t.Errorf("%q: the server was asked: %v", tt.principal, asked)
		}
	}
}

// A server may answer by these fields, whoever it means an answer for.
func TestResultsArePartitionedByWhatTheyMayVaryBy_B41(t *testing.T) {
	for _, result := range []string{resource, strings.Replace(resource, "public", "private", 1)} {
		c, read := fresh(), requestOf(mcp.MethodResourcesRead, `{"uri":"file:///a"}`)
		for _, tt := range []struct {
			header http.Header
			asked  bool
		}{
			{nil, true}, {nil, false},
			{http.Header{"Accept-Language": {"de"}}, true}, {http.Header{"Accept-Language": {"fr"}}, true}, {http.Header{"Accept-Language": {"de"}}, false},
			{http.Header{"Accept-Language": {"de", "fr"}}, true}, {http.Header{"Accept-Language": {"fr", "de"}}, true},
			{http.Header{"Accept-Language": {"de"}, "Connection": {"accept-language"}}, false}, // it goes nowhere
			{http.Header{"Baggage": {"user=1"}}, true}, {http.Header{"Baggage": {"user=2"}}, true}, {http.Header{"Baggage": {"user=1"}}, false},
			{http.Header{"Baggage": {"user=1,sentry-trace_id=7"}}, false}, {http.Header{"Baggage": {"sentry-trace_id=8, sentry-release=1"}}, false},
			{http.Header{"Accept-Language": {"de"}, "Baggage": {"user=1"}}, true}, {http.Header{"Accept-Language": {"de", "user=1"}}, true},
			{http.Header{"Traceparent": {"00-1"}, "X-Request-Id": {"1"}}, false},
		} {
			known, slot := c.Lookup("", tt.header, read, nil)
			if slot != nil {
				slot.Keep([]byte(result))
			}
			if asked := known == nil; asked != tt.asked {
				t.Errorf("%v: the server was asked: %v", tt.header, asked)
			}
		}
	}
}

// What clients make up there is bounded like the rest of what they ask.
func TestMadeUpLanguagesAreBounded(t *testing.T) {
	c, read, kept := fresh(), requestOf(mcp.MethodToolsList, `{}`), 0
	for i := range 100 { // a mebibyte each: 32 of them fit
		_, slot := c.Lookup("", http.Header{"Accept-Language": {fmt.Sprint(i) + strings.Repeat("x", 1<<20)}}, read, nil)
		slot.Keep([]byte(listed))
	}
	for _, of := range c.Cached() {
		kept += of.Results
	}
	if kept == 0 || kept > 32 {
		t.Errorf("%d results of a mebibyte are kept", kept)
	}
}

// Most clients name one language, always the same.
func TestAVariantOfOneLanguageCostsNoMemory(t *testing.T) {
	for _, header := range []http.Header{nil, {"Accept-Language": {"de"}}, {"Accept-Language": {"*"}, "Connection": {"keep-alive"}}} {
		if n := testing.AllocsPerRun(100, func() { hop.Variant(header) }); n > 0 {
			t.Errorf("%v: %v allocations", header, n)
		}
	}
}

func TestNotificationsInvalidate_B44(t *testing.T) {
	c := fresh()
	tools, read := requestOf(mcp.MethodToolsList, `{}`), requestOf(mcp.MethodResourcesRead, `{"uri":"file:///dir"}`)
	ask(c, "", tools, listed)
	ask(c, "", read, resource)
	c.Invalidate(mcp.NotificationToolsListChanged, nil)
	if ask(c, "", read, resource) || !ask(c, "", tools, listed) {
		t.Error("a changed list of tools makes the tools stale, and nothing else")
	}
	c.Invalidate(mcp.NotificationResourcesUpdated, []byte(`{"uri":"file:///dir/part"}`))
	if !ask(c, "", read, resource) {
		t.Error("the ancestor of an updated resource survived")
	}
	_, slot := c.Lookup("", nil, requestOf(mcp.MethodPromptsList, `{}`), nil)
	c.Invalidate(mcp.NotificationPromptsListChanged, nil)
	slot.Keep([]byte(`{"prompts":[],"ttlMs":60000}`))
	if result, _ := c.Lookup("", nil, requestOf(mcp.MethodPromptsList, `{}`), nil); result != nil {
		t.Error("an answer from before the notification was kept after it")
	}
}

func TestOtherMethodsAreNeverKept_B43(t *testing.T) {
	if result, slot := fresh().Lookup("", nil, requestOf(mcp.MethodToolsCall, `{"name":"a"}`), nil); result != nil || slot != nil {
		t.Error("a call of a tool may be answered from the catalogue")
	}
}

func TestWhatClientsWriteIntoRequestsIsBounded(t *testing.T) {
	c := fresh()
	asked := 0
	for range 2 {
		for i := range 100 { // a mebibyte each: 32 of them fit
			if ask(c, "", requestOf(mcp.MethodToolsList, fmt.Sprintf(`{"x":"%d%s"}`, i, strings.Repeat("x", 1<<20))), listed) {
				asked++
			}
		}
	}
	if kept := 200 - asked; kept > 32 {
		t.Errorf("%d results of a mebibyte are kept", kept)
	}
}

// What a request's _meta holds besides the protocol's members is told apart from them
// in one pass, however many a client makes up.
func TestMadeUpMembersOfMetaAreGoneOverOnce(t *testing.T) {
	var meta strings.Builder
	for i := 0; meta.Len() < 16<<20; i++ {
		fmt.Fprintf(&meta, "%q:0,", fmt.Sprintf("%sx%d", mcp.MetaPrefix, i))
	}
	if got := foreignMeta([]byte(`{` + meta.String() + `"progressToken":1}`)); got != nil {
		t.Errorf("%.80s", got)
	}
	if got := foreignMeta([]byte(`{ "a" : [1, 2],` + meta.String() + `"progressToken":1, "b\n": {}}`)); string(got) != `{"a":[1, 2],"b\n":{}}` {
		t.Errorf("%.80s", got)
	}
}

// P-6: URIs that differ in half a character are those of other resources.
func TestResultsOfOtherResourcesAreNotGiven_B41(t *testing.T) {
	c := fresh()
	for i, uri := range []string{`x:\ud800`, `x:\ud801`, `x:\ufffd`} {
		if !ask(c, "", requestOf(mcp.MethodResourcesRead, `{"uri":"`+uri+`"}`), resource) {
			t.Errorf("resource %d was given the result of another", i)
		}
	}
	c.Invalidate(mcp.NotificationResourcesUpdated, []byte(`{"uri":"x:\ud801"}`))
	for uri, asked := range map[string]bool{`x:\ud800`: false, `x:\ud801`: true, `x:\uFFFD`: false} {
		if ask(c, "", requestOf(mcp.MethodResourcesRead, `{"uri":"`+uri+`"}`), resource) != asked {
			t.Errorf("%s: the server was asked: %v", uri, !asked)
		}
	}
}
