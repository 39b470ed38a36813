package compat

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/mcpbridge/bridge/internal/mount"
	"github.com/mcpbridge/bridge/mcp"
)

func bearer(token string) http.Header { return http.Header{"Authorization": {"Bearer " + token}} }

// byUser takes what stands before the first dot of a token for its user, so
// that tokens can be renewed.
func byUser(o *mount.Options) {
	o.Legacy.Principal = func(r *http.Request) string {
		user, _, _ := strings.Cut(r.Header.Get("Authorization"), ".")
		return user
	}
}

// Every request that goes up carries the client's credential, also those that
// no request of the client caused (B-10, H-1), and always the newest of the same
// user (H-2).
func TestCredentialsAccompanyEveryRequest_B10_H1_H2(t *testing.T) {
	w := newWorld(t, mcp.V20251125, byUser)
	withTasks(w.server)
	c := w.client
	c.header = bearer("alice.1")
	c.initialize(`{"roots":{}}`)
	w.server.on("tools/call", rootsFirst(`{"content":[]}`), rootsFirst(`{"content":[]}`), created)
	w.server.on("tasks/get", status(`"status":"completed","result":{"content":[]}`))
	c.call("resources/subscribe", `{"uri":"u:1"}`)
	x := c.start("tools/call", `{"name":"t"}`)
	question := x.until("roots/list")
	c.header = bearer("alice.2")
	c.answer(question, `{"roots":[]}`)
	x.finish()
	c.call("tools/call", `{"name":"t"}`)
	want := map[string][]string{
		"server/discover":      {"alice.1"},
		"subscriptions/listen": {"alice.1", "alice.1"},
		"tools/call":           {"alice.1", "alice.2", "alice.2"},
		"tasks/get":            {"alice.2"},
	}
	for method, tokens := range want {
		all := w.server.wait(method, len(tokens))
		for n, token := range tokens {
			if got := all[n].Header.Get("Authorization"); got != "Bearer "+token {
				t.Errorf("H-1, H-2: %s number %d went up with %q, want %s", method, n, got, token)
			}
		}
	}
}

// A session id proves nothing (H-7): with another credential, or none, nobody
// gets at what the bridge has or does by itself (H-9): streams, resumes (E-24),
// pings, levels, subscriptions, kept lists, questions, and the end of the
// session (H-8). What another credential may begin is a call, which the server
// authorizes (H-6).
func TestASessionIDProvesNothing_H7_H8_H9_E24(t *testing.T) {
	w := newWorld(t, mcp.V20251125, nil)
	c := w.client
	c.header = bearer("alice")
	c.initialize(`{"roots":{}}`)
	w.server.on("prompts/list", result(`{"resultType":"complete","ttlMs":60000,"cacheScope":"private","prompts":[]}`))
	c.call("prompts/list", "")
	w.server.on("tools/call", rootsFirst(`{"content":[]}`))
	x := c.start("tools/call", `{"name":"t"}`)
	question := x.until("roots/list")

	refused := map[string]func(*client) *reply{
		"GET":     func(c *client) *reply { return c.send(http.MethodGet, "", nil) },
		"DELETE":  func(c *client) *reply { return c.send(http.MethodDelete, "", nil) },
		"resume":  func(c *client) *reply { return c.send(http.MethodGet, "", http.Header{"Last-Event-Id": {x.primed}}) },
		"unknown": func(c *client) *reply { return c.post(`{"jsonrpc":"2.0","id":1,"method":"x/y"}`) },
	}
	for _, method := range []string{"ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe", "tasks/list"} {
		refused[method] = func(c *client) *reply {
			return c.post(`{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":{"uri":"u:1","level":"info"}}`)
		}
	}
	for who, header := range map[string]http.Header{"mallory": bearer("mallory"), "nobody": nil} {
		thief := w.newClient()
		thief.session, thief.header = c.session, header
		for what, send := range refused {
			if r := send(thief); r.status != http.StatusNotFound && r.status != http.StatusForbidden {
				t.Errorf("H-7, H-9: %s of %s: HTTP %d", what, who, r.status)
			}
		}
		// Neither of these means anything, whatever its status.
		thief.post(`{"jsonrpc":"2.0","id":` + question.ID + `,"result":{"roots":[{"uri":"file:///stolen"}]}}`)
		thief.post(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + x.id + `}}`)
		// And what is kept for alice is no answer for others.
		thief.post(`{"jsonrpc":"2.0","id":1,"method":"prompts/list"}`)
	}
	for n, up := range w.server.requests("prompts/list") {
		if want := []string{"Bearer alice", "Bearer mallory"}[n]; up.Header.Get("Authorization") != want {
			t.Errorf("H-1, H-9: prompts/list number %d went up with %q, want %s", n, up.Header.Get("Authorization"), want)
		}
	}
	c.answer(question, `{"roots":[]}`)
	if x.finish(); x.response == nil || x.response.Error != nil {
		t.Fatalf("H-8: the session was disturbed: %+v", x.response)
	}
	for _, up := range w.server.requests("tools/call") {
		if got := member(up.Params, "inputResponses"); got != "" && !same(got, `{"r":{"roots":[]}}`) || up.Header.Get("Authorization") != "Bearer alice" {
			t.Errorf("H-8, D-I11: %s went up with %s", up.Params, up.Header.Get("Authorization"))
		}
	}
}

// J-24, D-I11: between a question and its answer the user stays the same; what
// another one sends is no answer, and the retry goes up for the one who called.
func TestRoundsActForOneUser_J24_DI11(t *testing.T) {
	w := newWorld(t, mcp.V20251125, byUser)
	c := w.client
	c.header = bearer("alice.1")
	c.initialize(`{"roots":{}}`)
	w.server.on("tools/call", rootsFirst(`{"content":[]}`))
	x := c.start("tools/call", `{"name":"t"}`)
	question := x.until("roots/list")
	other := w.newClient()
	other.session, other.header = c.session, bearer("bob.1")
	if r := other.post(`{"jsonrpc":"2.0","id":` + question.ID + `,"result":{"roots":[]}}`); r.status != http.StatusNotFound {
		t.Errorf("J-24: HTTP %d", r.status)
	}
	c.answer(question, `{"roots":[]}`)
	x.finish()
	for _, up := range w.server.requests("tools/call") {
		if got := up.Header.Get("Authorization"); got != "Bearer alice.1" {
			t.Errorf("D-I11: a round went up with %q", got)
		}
	}
}

// H-10, B-42: what one user got as private is not shown to another, tool
// schemas included; sessions of one user share it.
func TestPrivateDataStaysWithItsUser_H10_B42(t *testing.T) {
	w := newWorld(t, mcp.V20251125, nil)
	w.server.on("prompts/list", func(x *incoming) {
		x.result(`{"resultType":"complete","ttlMs":60000,"cacheScope":"private","prompts":[{"name":` + quote(x.Header.Get("Authorization")) + `}]}`)
	})
	w.server.on("tools/list", func(x *incoming) {
		x.result(fmt.Sprintf(`{"resultType":"complete","ttlMs":0,"cacheScope":"private","tools":[{"name":"t","inputSchema":{"type":"object","properties":{"a":{"type":"string","x-mcp-header":%q}}}}]}`,
			strings.TrimPrefix(x.Header.Get("Authorization"), "Bearer ")))
	})
	w.server.on("tools/call", result(`{"resultType":"complete","content":[]}`))
	for _, user := range []string{"alice", "bob", "alice", "bob"} {
		c := w.newClient()
		c.header = bearer(user)
		c.initialize(`{}`)
		x := c.call("prompts/list", "")
		expect(t, "H-10", string(x.response.Result), `{"prompts":[{"name":"Bearer `+user+`"}]}`)
		c.call("tools/list", "")
	}
	if n := len(w.server.requests("prompts/list")); n != 2 {
		t.Errorf("B-42: the server was asked %d times", n)
	}
	alice := w.newClient()
	alice.header = bearer("alice")
	alice.initialize(`{}`)
	alice.call("tools/call", `{"name":"t","arguments":{"a":"1"}}`)
	if h := w.server.last("tools/call").Header; h.Get("Mcp-Param-Alice") != "1" || h.Get("Mcp-Param-Bob") != "" {
		t.Errorf("H-10: %v", h)
	}
}

// H-12: what a browser or a proxy adds is about this hop and stays here; what
// traces a request goes along.
func TestHeadersOfTheHopStayHere_H12(t *testing.T) {
	w := newWorld(t, mcp.V20251125, nil)
	w.open()
	w.client.header = http.Header{
		"Cookie": {"a=b"}, "Origin": {"http://localhost"}, "Proxy-Authorization": {"x"},
		"Forwarded": {"for=1.2.3.4"}, "X-Forwarded-For": {"1.2.3.4"}, "X-Forwarded-Host": {"h"}, "X-Real-Ip": {"1.2.3.4"},
		"Via": {"1.1 proxy"}, "X-Scheme": {"https"}, "Front-End-Https": {"on"},
		"Traceparent": {"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"},
	}
	w.server.on("tools/call", result(`{"resultType":"complete","content":[]}`))
	w.client.call("tools/call", `{"name":"t"}`)
	h := w.server.last("tools/call").Header
	for name := range w.client.header {
		if got := h.Get(name); (got != "") != (name == "Traceparent") {
			t.Errorf("H-12: %s: %q", name, got)
		}
	}
}

// H-11: whatever happens, the log has no credentials, answers or states.
func TestTheLogTellsNoSecrets_H11(t *testing.T) {
	w := newWorld(t, mcp.V20251125, nil)
	c := w.client
	c.header = bearer(secret)
	c.initialize(`{"roots":{},"elicitation":{"form":{},"url":{}}}`)
	for _, answers := range [][]answer{
		{asking("roots", `"r"`, `{"method":"roots/list"}`, `{"content":[{"type":"text","text":"`+secret+`"}]}`)},
		{input(`"requestState":"` + secret + `","inputRequests":{"r":{"method":"roots/list"}}`), failing(-32602, secret, quote(secret))},
		{input(`"requestState":"` + secret + `","inputRequests":{"u":{"method":"elicitation/create","params":{"mode":"url","message":"m","url":"https://example.com/?` + secret + `"}}}`), failing(-32000, secret, "")},
		{failing(-32021, secret, `{"requiredCapabilities":{"sampling":{}}}`)},
		{func(x *incoming) { x.raw(500, "text/plain", secret) }},
		{func(x *incoming) { x.raw(302, "text/plain", secret) }},
	} {
		w.server.on("tools/call", answers...)
		c.answers["roots/list"] = func(string) string { return `{"roots":[{"uri":"file:///` + secret + `"}]}` }
		c.answers["elicitation/create"] = func(string) string { return `!{"code":-32000,"message":"` + secret + `"}` }
		c.call("tools/call", `{"name":"t","arguments":{"a":"`+secret+`"}}`)
	}
	c.send(http.MethodDelete, "", nil)
	c.post(`{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":"` + secret + `"}}`)
	if text := w.log.String(); strings.Contains(text, secret) || strings.Contains(text, c.session) {
		t.Errorf("H-11: %s", text)
	}
}
