package legacy

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/observe"
	"github.com/mcpbridge/bridge/sessions"
)

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
		want(t, "an answer "+auth, p.post(answerToLeg).StatusCode, 404)
	}
	p.header.Set("Authorization", "Bearer alice")
	p.post(answerToLeg)
	if answerers := b.last().answerer; len(answerers) != 1 {
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

// refusing counts what is refused, and why.
type refusing struct {
	observe.Nobody
	why [observe.Refusals]atomic.Int32
}

func (r *refusing) Refused(why observe.Refusal) { r.why[why].Add(1) }

func (r *refusing) of(why observe.Refusal) int { return int(r.why[why].Load()) }

// What is under way when the server of a session goes is answered; a client that begins anew
// does so meanwhile.
func TestASessionEndedFromTheOtherSideLastsForItsCalls(t *testing.T) {
	b := newFake()
	refused := &refusing{}
	h, p := serve(t, Options{Watch: refused}, b)
	p.initialize(mcp.V20250326)
	first := p.session
	answer := p.async(hold)
	k := <-b.held
	conv := b.last()
	conv.push.End(errors.New("its server is another one"))
	status, _ := p.call(ping)
	want(t, "the next request", status, http.StatusNotFound)
	status, _ = p.call("[" + ping + "]")
	want(t, "the next array", status, http.StatusNotFound)
	want(t, "both are counted", refused.of(observe.NoSession), 2)
	want(t, "an answer", p.post(`{"jsonrpc":"2.0","id":"q","result":{}}`).StatusCode, http.StatusAccepted)
	want(t, "it is not closed", conv.cause(), error(nil))
	p.initialize(mcp.V20250326)
	want(t, "both sessions", h.Sessions(), 2)
	k.finish(`{"late":true}`)
	want(t, "the call", text(t, <-answer), `{"jsonrpc":"2.0","id":1,"result":{"late":true}}`)
	p.session = first
	for p.live(h) != nil {
		runtime.Gosched()
	}
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

// Whatever names a session that is not here is counted, and so is what comes while the bridge stops.
func TestWhatIsTurnedAwayIsCounted(t *testing.T) {
	refused := &refusing{}
	h, p := serve(t, Options{Watch: refused}, newFake())
	p.initialize(mcp.V20250618)
	send := func(method string) int {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, p.request(method, ping))
		return w.Code
	}
	known := p.session
	p.session = "unknown"
	for _, method := range []string{http.MethodPost, http.MethodGet, http.MethodDelete} {
		want(t, method+" of an unknown session", send(method), http.StatusNotFound)
	}
	want(t, "what named an unknown session", refused.of(observe.NoSession), 3)
	h.gate.Shut()
	for _, method := range []string{http.MethodPost, http.MethodGet} {
		for _, p.session = range []string{known, "ended with the bridge"} { // which a client is not to give up
			want(t, method+" while it stops", send(method), http.StatusServiceUnavailable)
		}
	}
	want(t, "what came while it stopped", refused.of(observe.Draining), 4)
}
