package legacy

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/sessions"
	"github.com/rs/zerolog"
)

const ping = `{"jsonrpc":"2.0","id":1,"method":"echo","params":{"n":1}}`

func TestInitializeMintsAnUnguessableSession_A26(t *testing.T) {
	_, p := serve(t, Options{}, newFake())
	seen := map[string]bool{}
	for range 50 {
		resp := p.post(initialize(mcp.V20251125))
		want(t, "status", resp.StatusCode, 200)
		want(t, "type", resp.Header.Get("Content-Type"), "application/json")
		id := resp.Header.Get("Mcp-Session-Id")
		if len(id) < 22 || seen[id] {
			t.Fatalf("session id %q is too short or repeated", id)
		}
		for _, c := range id {
			if c < 0x21 || c > 0x7e {
				t.Fatalf("session id %q holds %q", id, c)
			}
		}
		seen[id] = true
		want(t, "body", text(t, resp), `{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-11-25"}}`)
	}
}

func TestInitializeWithALiveSessionIsRefusedAndTheSessionKept_A3(t *testing.T) {
	h, p := serve(t, Options{}, newFake())
	p.initialize(mcp.V20251125)
	status, body := p.call(initialize(mcp.V20251125))
	want(t, "status", status, 200)
	if !strings.Contains(body, "-32600") || !strings.Contains(body, `"id":0`) {
		t.Errorf("body = %s", body)
	}
	status, _ = p.call(ping)
	want(t, "the session still works", status, 200)
	want(t, "sessions", h.Sessions(), 1)
}

func TestInitializeWithAStaleSessionSucceeds_A3(t *testing.T) {
	_, p := serve(t, Options{}, newFake())
	p.session = "GONE"
	p.initialize(mcp.V20250618)
	if p.session == "GONE" {
		t.Error("no new session")
	}
}

func TestInitializeErrorsAre200ExceptAuthorization_A23_A25(t *testing.T) {
	for name, tc := range map[string]struct {
		err    error
		status int
		body   string
	}{
		"rpc error":   {&jsonrpc.Error{Code: -32602, Message: "bad version"}, 200, `{"jsonrpc":"2.0","id":0,"error":{"code":-32602,"message":"bad version"}}`},
		"other error": {errors.New("secret detail"), 200, `{"jsonrpc":"2.0","id":0,"error":{"code":-32603,"message":"internal error of the bridge","data":{"bridge":{}}}}`},
		"refusal":     {&downstream.Refusal{Status: 403, Challenge: []string{"Bearer a", "Basic b"}, Body: []byte(`{"e":1}`)}, 403, `{"e":1}`},
	} {
		t.Run(name, func(t *testing.T) {
			b := newFake()
			b.open = func(downstream.Caller, jsonrpc.Message) error { return tc.err }
			h, p := serve(t, Options{}, b)
			resp := p.post(initialize(mcp.V20251125))
			want(t, "status", resp.StatusCode, tc.status)
			want(t, "body", text(t, resp), tc.body)
			if tc.status == 403 {
				want(t, "challenges", resp.Header.Values("WWW-Authenticate"), []string{"Bearer a", "Basic b"})
			}
			want(t, "sessions", h.Sessions(), 0)
		})
	}
}

func TestPlainResultIsJSON_E4(t *testing.T) {
	_, p := serve(t, Options{}, newFake())
	p.initialize(mcp.V20251125)
	resp := p.post(ping)
	want(t, "status", resp.StatusCode, 200)
	want(t, "type", resp.Header.Get("Content-Type"), "application/json")
	body := text(t, resp)
	want(t, "body", body, `{"jsonrpc":"2.0","id":1,"result":{"n":1}}`)
	want(t, "length", resp.ContentLength, len(body))
}

func TestLargeResultHasContentLength(t *testing.T) {
	_, p := serve(t, Options{}, newFake())
	p.initialize(mcp.V20251125)
	big := strings.Repeat("x", 200_000)
	resp := p.post(`{"jsonrpc":"2.0","id":1,"method":"echo","params":{"s":"` + big + `"}}`)
	body := text(t, resp)
	want(t, "length", resp.ContentLength, len(body))
	want(t, "body", body, `{"jsonrpc":"2.0","id":1,"result":{"s":"`+big+`"}}`)
}

func TestNotificationsAndAnswersAre202WithoutBody_E3(t *testing.T) {
	b := newFake()
	_, p := serve(t, Options{}, b)
	p.initialize(mcp.V20251125)
	for _, msg := range []string{
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
		`{"jsonrpc":"2.0","id":"leg","result":{}}`,
		`{"jsonrpc":"2.0","id":"nobody asked","error":{"code":-1,"message":"no"}}`,
	} {
		status, body := p.call(msg)
		want(t, "status", status, 202)
		want(t, "body", body, "")
	}
	want(t, "notified", b.last().notified, []string{"notifications/initialized"})
	want(t, "answered", b.last().answered, []string{`"leg"`, `"nobody asked"`})
}

func TestUnknownSessionIs404_A28(t *testing.T) {
	_, p := serve(t, Options{}, newFake())
	p.session = "NEVER-EXISTED"
	status, body := p.call(ping)
	want(t, "POST", status, 404)
	if !strings.Contains(body, `"id":1`) {
		t.Errorf("the id is not in %s", body)
	}
	want(t, "GET", p.get("").StatusCode, 404)
	want(t, "DELETE", p.do(p.request("DELETE", "")).StatusCode, 404)
}

func TestMissingSessionIsServedStatelessly_A28(t *testing.T) {
	_, p := serve(t, Options{}, newFake())
	status, body := p.call(`{"jsonrpc":"2.0","id":"a","method":"whoami"}`)
	want(t, "status", status, 200)
	want(t, "body", body, `{"jsonrpc":"2.0","id":"a","result":{"stateless":true,"interactive":true}}`)
	status, _ = p.call(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	want(t, "notification", status, 202)
	resp := p.post(`{"jsonrpc":"2.0","id":2,"method":"chatty"}`)
	want(t, "a stream without session has no ids", readEvents(t, resp).rest(),
		[]string{`|{"jsonrpc":"2.0","method":"notifications/message"}`, `|{"jsonrpc":"2.0","id":2,"result":{}}`})
}

func TestMissingSessionIs400WhenRequired_A28(t *testing.T) {
	_, p := serve(t, Options{RequireSession: true}, newFake())
	status, _ := p.call(ping)
	want(t, "status", status, 400)
}

func TestDeleteEndsTheSession_A30(t *testing.T) {
	b := newFake()
	h, p := serve(t, Options{}, b)
	p.initialize(mcp.V20251125)
	get := p.get("")
	waiting := p.async(`{"jsonrpc":"2.0","id":9,"method":"hold"}`)
	<-b.held
	want(t, "DELETE", p.do(p.request("DELETE", "")).StatusCode, 204)
	want(t, "cause", b.last().cause(), error(sessions.Removed))
	want(t, "the open call ended", (<-waiting).StatusCode, 200)
	readEvents(t, get).rest() // ends, too
	want(t, "afterwards", p.post(ping).StatusCode, 404)
	want(t, "again", p.do(p.request("DELETE", "")).StatusCode, 404)
	want(t, "sessions", h.Sessions(), 0)
}

func TestAnotherPrincipalSeesNoSession_H8(t *testing.T) {
	b := newFake()
	_, p := serve(t, Options{}, b)
	p.header.Set("Authorization", "Bearer alice")
	p.initialize(mcp.V20251125)
	want(t, "alice", p.post(ping).StatusCode, 200)
	for _, auth := range []string{"Bearer mallory", "bearer alice", ""} {
		p.header.Set("Authorization", auth)
		if auth == "" {
			p.header.Del("Authorization")
		}
		want(t, "POST "+auth, p.post(ping).StatusCode, 404)
		want(t, "GET "+auth, p.get("").StatusCode, 404)
		want(t, "resume "+auth, p.get("1-0").StatusCode, 404)
		want(t, "DELETE "+auth, p.do(p.request("DELETE", "")).StatusCode, 404)
		p.post(`{"jsonrpc":"2.0","id":"leg","result":{}}`)
	}
	p.header.Set("Authorization", "Bearer alice")
	p.post(`{"jsonrpc":"2.0","id":"leg","result":{}}`)
	answerers := b.last().answerer
	if own := answerers[len(answerers)-1]; len(answerers) != 3 || slices.Index(answerers, own) != 2 {
		t.Errorf("foreign answers pass for alice's: %v", answerers)
	}
	want(t, "alice again", p.post(ping).StatusCode, 200)
}

func TestCallerCarriesPrincipalAndCredentials_H6(t *testing.T) {
	b := newFake()
	var seen downstream.Caller
	b.open = func(c downstream.Caller, _ jsonrpc.Message) error { seen = c; return nil }
	_, p := serve(t, Options{}, b)
	p.header.Set("Authorization", "Bearer alice")
	p.initialize(mcp.V20251125)
	if seen.Authorization != "Bearer alice" || seen.Principal == "" || strings.Contains(seen.Principal, "alice") {
		t.Errorf("caller = %+v", seen)
	}
	answer := p.async(`{"jsonrpc":"2.0","id":9,"method":"hold"}`)
	k := <-b.held
	want(t, "same principal in the session", k.caller.Principal, seen.Principal)
	k.finish(`{}`)
	<-answer
}

func TestCustomPrincipalLetsTokensRotate_H6(t *testing.T) {
	_, p := serve(t, Options{Principal: func(r *http.Request) string { return r.Header.Get("X-User") }}, newFake())
	p.header.Set("X-User", "alice")
	p.header.Set("Authorization", "Bearer old")
	p.initialize(mcp.V20251125)
	p.header.Set("Authorization", "Bearer new")
	want(t, "rotated", p.post(ping).StatusCode, 200)
	p.header.Set("X-User", "bob")
	want(t, "other user", p.post(ping).StatusCode, 404)
}

func TestVersionHeader_A34_E10(t *testing.T) {
	for _, tc := range []struct {
		session mcp.Version
		header  string
		status  int
	}{
		{mcp.V20251125, "", 200},
		{mcp.V20251125, "2025-11-25", 200},
		{mcp.V20251125, "2025-03-26", 200}, // supported but different
		{mcp.V20251125, "2026-07-28", 400}, // no legacy version
		{mcp.V20251125, "1999-01-01", 400},
		{mcp.V20250618, "nonsense", 400},
		{mcp.V20250326, "nonsense", 200}, // has no such header
		{mcp.V20241105, "nonsense", 200},
	} {
		t.Run(string(tc.session)+" "+tc.header, func(t *testing.T) {
			_, p := serve(t, Options{}, newFake())
			p.initialize(tc.session)
			p.version = ""
			if tc.header != "" {
				p.header.Set("MCP-Protocol-Version", tc.header)
			}
			status, _ := p.call(ping)
			want(t, "status", status, tc.status)
		})
	}
}

func TestVersionHeaderOnInitializeIsIgnored_A34(t *testing.T) {
	_, p := serve(t, Options{}, newFake())
	p.header.Set("MCP-Protocol-Version", "2031-01-01")
	p.header.Set("Mcp-Method", "initialize")
	want(t, "status", p.initialize(mcp.V20251125).StatusCode, 200)
}

func TestUnsupportedVersionWithoutSessionIs400_A34(t *testing.T) {
	_, p := serve(t, Options{}, newFake())
	p.header.Set("MCP-Protocol-Version", "2031-01-01")
	want(t, "status", p.post(ping).StatusCode, 400)
}

func TestModernRequestsPassUnchanged_A11(t *testing.T) {
	b := newFake()
	var got string
	b.modern = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body := make([]byte, r.ContentLength)
		_, _ = r.Body.Read(body)
		got = string(body)
		w.WriteHeader(299)
	})
	_, p := serve(t, Options{}, b)
	for _, msg := range []string{
		`{"jsonrpc":"2.0","id":1,  "method":"server/discover"}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`,
	} {
		got = ""
		want(t, "status", p.post(msg).StatusCode, 299)
		want(t, "body", got, msg)
	}
	p.initialize(mcp.V20251125)
	want(t, "a legacy session is not modern", p.post(`{"jsonrpc":"2.0","id":1,"method":"server/discover"}`).StatusCode, 200)
}

func TestModernRequestsAreRefusedWithALegacyError_A11(t *testing.T) {
	_, p := serve(t, Options{}, newFake())
	status, body := p.call(`{"jsonrpc":"2.0","id":1,"method":"server/discover"}`)
	want(t, "status", status, 400)
	for _, code := range []string{"-32020", "-32021", "-32022"} {
		if strings.Contains(body, code) {
			t.Errorf("modern error %s would stop the client from falling back", code)
		}
	}
}

func TestRepeatedIDsNeverCross_B1(t *testing.T) {
	b := newFake()
	_, p := serve(t, Options{}, b)
	p.initialize(mcp.V20251125)
	const n = 20
	answers := make([]string, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			resp := p.post(`{"jsonrpc":"2.0","id":1,"method":"hold","params":{"caller":"` + string(rune('a'+i)) + `"}}`)
			answers[i] = text(t, resp)
		})
	}
	calls := make([]*call, n)
	for i := range calls {
		calls[i] = <-b.held
	}
	for i := n - 1; i >= 0; i-- { // in another order than they came
		calls[i].finish(string(calls[i].req.Params))
	}
	wg.Wait()
	for i, got := range answers {
		want(t, "answer", got, `{"jsonrpc":"2.0","id":1,"result":{"caller":"`+string(rune('a'+i))+`"}}`)
	}
}

func TestRefusalBeforeCommitKeepsStatusAndChallenge_H3(t *testing.T) {
	_, p := serve(t, Options{}, newFake())
	p.initialize(mcp.V20251125)
	resp := p.post(`{"jsonrpc":"2.0","id":1,"method":"refuse"}`)
	want(t, "status", resp.StatusCode, 401)
	want(t, "challenge", resp.Header.Get("WWW-Authenticate"), `Bearer scope="x"`)
}

func TestRefusalAfterCommitMeetsTheNextRequest_H4(t *testing.T) {
	b := newFake()
	var log bytes.Buffer
	_, p := serve(t, Options{Logger: zerolog.New(&log).Level(zerolog.InfoLevel)}, b)
	p.header.Set("Authorization", "Bearer secret")
	p.initialize(mcp.V20251125)
	go func() {
		k := <-b.held
		k.Send([]byte(`{"jsonrpc":"2.0","method":"notifications/message"}`))
		if k.Refuse(&downstream.Refusal{Status: 401, Challenge: []string{"Bearer"}}) {
			t.Error("refused after the stream had begun")
		}
		k.finish(`{"isError":true}`)
	}()
	_ = readEvents(t, p.post(`{"jsonrpc":"2.0","id":1,"method":"hold"}`)).rest()
	resp := p.post(ping)
	want(t, "next", resp.StatusCode, 401)
	want(t, "challenge", resp.Header.Get("WWW-Authenticate"), "Bearer")
	want(t, "the one after", p.post(ping).StatusCode, 200)
	line := log.String()
	want(t, "the log tells it", strings.Contains(line, `"level":"info","session_id":"`+p.session[:8]+`","status":401,"message":"the server refused a client's credentials after`), true)
	want(t, "and not which", strings.Contains(line, "secret"), false)
}

func TestAbandonedExchangeIsAnEmptyStream_E9(t *testing.T) {
	_, p := serve(t, Options{}, newFake())
	p.initialize(mcp.V20251125)
	resp := p.post(`{"jsonrpc":"2.0","id":1,"method":"abandon"}`)
	want(t, "status", resp.StatusCode, 200)
	want(t, "events", len(readEvents(t, resp).rest()), 0)
}

func TestPanickingBackendAnswersAndLeaksNothing(t *testing.T) {
	h, p := serve(t, Options{}, newFake())
	p.initialize(mcp.V20251125)
	status, body := p.call(`{"jsonrpc":"2.0","id":7,"method":"panic"}`)
	want(t, "status", status, 200)
	if !strings.Contains(body, `"id":7`) || !strings.Contains(body, "-32603") {
		t.Errorf("body = %s", body)
	}
	want(t, "in flight", h.gate.Count(), 0)
}

func TestOtherMethodsAre405(t *testing.T) {
	_, p := serve(t, Options{NoGET: true}, newFake())
	resp := p.do(p.request("PUT", "{}"))
	want(t, "PUT", resp.StatusCode, 405)
	want(t, "Allow", resp.Header.Get("Allow"), "GET, POST, DELETE, OPTIONS")
	want(t, "why", text(t, resp), `{"jsonrpc":"2.0","error":{"code":-32600,"message":"method is not allowed here; use GET, POST, DELETE, OPTIONS","data":{"bridge":{}}}}`)
	p.initialize(mcp.V20251125)
	resp = p.get("")
	want(t, "GET when not offered (A-31)", resp.StatusCode, 405)
	if resp.Header.Get("Allow") == "" {
		t.Error("no Allow header")
	}
}

func TestGetWithoutASessionIs405(t *testing.T) {
	_, p := serve(t, Options{}, newFake())
	resp := p.get("")
	want(t, "GET", resp.StatusCode, 405)
	want(t, "Allow", resp.Header.Get("Allow"), "POST, OPTIONS")
	want(t, "why", text(t, resp), `{"jsonrpc":"2.0","error":{"code":-32600,"message":"method is not allowed here without a session; use POST, OPTIONS","data":{"bridge":{}}}}`)
	want(t, "DELETE", p.do(p.request("DELETE", "")).StatusCode, 405)
}

func TestLeastRecentlyUsedSessionGivesWay(t *testing.T) {
	b := newFake()
	h, p := serve(t, Options{MaxSessions: 2}, b)
	p.initialize(mcp.V20251125)
	first, conv := p.session, b.last()
	p.session = ""
	p.initialize(mcp.V20251125)
	p.session = ""
	p.initialize(mcp.V20251125)
	want(t, "sessions", h.Sessions(), 2)
	want(t, "cause", conv.cause(), error(sessions.Evicted))
	p.session = first
	want(t, "the first one", p.post(ping).StatusCode, 404)
}

func TestASessionEndedFromTheOtherSideIsGone(t *testing.T) {
	b := newFake()
	_, p := serve(t, Options{}, b)
	p.initialize(mcp.V20251125)
	get := readEvents(t, p.get(""))
	want(t, "priming", get.next(), "0-1|")
	b.last().push.End(errors.New("the process has ended"))
	want(t, "its stream", get.rest(), []string{})
	status, _ := p.call(ping)
	want(t, "the next request", status, http.StatusNotFound)
	want(t, "the conversation is closed", b.last().cause() != nil, true)
}

// stillborn ends its sessions before they are opened.
type stillborn struct{ *fakeBackend }

func (b stillborn) Open(ctx context.Context, caller downstream.Caller, req jsonrpc.Message, push downstream.Pusher) (downstream.Conversation, []byte, error) {
	push.End(nil)
	return b.fakeBackend.Open(ctx, caller, req, push)
}

func TestASessionThatEndedBeforeItBeganIsGone(t *testing.T) {
	b := newFake()
	_, p := serve(t, Options{}, stillborn{b})
	p.initialize(mcp.V20251125)
	status, _ := p.call(ping)
	want(t, "the next request", status, http.StatusNotFound)
}

// A late challenge is for the next request that the same credentials begin. What
// only runs once, answers and notifications, is taken whoever was refused.
func TestLateRefusalSwallowsNoAnswerAndNoNotification_H4(t *testing.T) {
	const note, reply = `{"jsonrpc":"2.0","method":"notifications/x"}`, `{"jsonrpc":"2.0","id":"q","result":{}}`
	b := newFake()
	_, p := serve(t, Options{}, b)
	p.header.Set("Authorization", "Bearer one")
	p.initialize(mcp.V20250326)
	go func() {
		k := <-b.held
		k.Send([]byte(note))
		k.Refuse(&downstream.Refusal{Status: 403, Challenge: []string{"Bearer"}})
		k.finish(`{"isError":true}`)
	}()
	first := readEvents(t, p.post(hold)).rest()
	want(t, "an answer", p.post(reply).StatusCode, 202)
	want(t, "a notification", p.post(note).StatusCode, 202)
	want(t, "a batch", p.post("["+reply+","+note+"]").StatusCode, 202)
	last, _, _ := strings.Cut(first[0], "|")
	want(t, "a lost stream", len(readEvents(t, p.get(last)).rest()), 1)
	conv := b.last()
	conv.mu.Lock()
	want(t, "answers", conv.answered, []string{`"q"`, `"q"`})
	want(t, "notifications", len(conv.notified), 2)
	conv.mu.Unlock()
	p.header.Set("Authorization", "Bearer two") // fresh ones were not refused
	want(t, "a request with other credentials", p.post(`{"jsonrpc":"2.0","id":1,"method":"tools/call"}`).StatusCode, 200)
	p.header.Set("Authorization", "Bearer one")
	want(t, "a request", p.post(ping).StatusCode, 403)
}
