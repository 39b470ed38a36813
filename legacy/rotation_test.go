package legacy

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/mcp"
)

// jwt is the header with a token that claims these.
func jwt(claims, signature string) string {
	return "Bearer eyJhbGciOiJub25lIn0." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + "." + signature
}

const (
	answerToLeg = `{"jsonrpc":"2.0","id":"leg","result":{}}`
	callTool    = `{"jsonrpc":"2.0","id":7,"method":"tools/call"}`
)

// asUser sets the credentials of the next requests.
func (p *peer) asUser(auth string) *peer {
	p.header.Set("Authorization", auth)
	return p
}

// holding starts a tools/call that the backend answers when accept was called,
// and returns who made it.
func (p *peer) callAs(t *testing.T, b *fakeBackend, auth string) downstream.Caller {
	t.Helper()
	p.asUser(auth)
	answer := p.async(`{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"hold":true}}`)
	k := <-b.held
	b.last().push.Accepted(k.caller)
	k.finish(`{}`)
	want(t, "a new call with "+auth, (<-answer).StatusCode, 200)
	return k.caller
}

func TestARefreshedTokenOfTheSameSubjectTakesTheSessionOver_H6(t *testing.T) {
	b := newFake()
	_, p := serve(t, Options{}, b)
	first, refreshed := jwt(`{"iss":"https://as","sub":"alice","jti":"1"}`, "a"), jwt(`{"jti":"2","sub":"alice","iss":"https://as"}`, "b")
	p.asUser(first).initialize(mcp.V20251125)
	opened := p.callAs(t, b, first)
	want(t, "GET before the upstream accepted the token", p.asUser(refreshed).get("").StatusCode, 404)
	want(t, "ping before", p.post(ping).StatusCode, 404)
	if c := p.callAs(t, b, refreshed); c.Authorization != refreshed || c.Principal == opened.Principal {
		t.Errorf("the unproven caller was %q", c.Principal)
	}
	want(t, "ping after", p.post(ping).StatusCode, 200)
	want(t, "principal after", p.callAs(t, b, refreshed).Principal, opened.Principal)
	again := jwt(`{"iss":"https://as","sub":"alice","jti":"3"}`, "c")
	p.callAs(t, b, again)
	want(t, "the second refresh", p.post(ping).StatusCode, 200)
	want(t, "DELETE", p.do(p.request("DELETE", "")).StatusCode, 204)
}

// That the server has accepted a token is not all where it may take anybody's.
func TestATokenThatTheServerDoesNotKnowTakesNoSessionOver_H6(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFake()
		var asked []string
		known := false
		_, p := servePipe(t, Options{Genuine: func(_, bound, newer string, _ bool) bool {
			asked = append(asked, bound, newer)
			return known
		}}, b)
		first, newer := jwt(`{"iss":"https://as","sub":"alice","jti":"1"}`, "a"), jwt(`{"iss":"https://as","sub":"alice","jti":"2"}`, "b")
		p.asUser(first).initialize(mcp.V20251125)
		p.callAs(t, b, newer)
		p.callAs(t, b, newer)
		want(t, "asked", asked, []string{first, newer})
		want(t, "ping", p.post(ping).StatusCode, 404)
		want(t, "the owner's", p.asUser(first).post(ping).StatusCode, 200)
		known = true
		time.Sleep(time.Minute)
		p.callAs(t, b, newer)
		want(t, "asked again", asked, []string{first, newer, first, newer})
		want(t, "ping when it is known", p.asUser(newer).post(ping).StatusCode, 200)
	})
}

// Nobody need be asked about the first token of a session that had none: whoever knows its id
// could do everything in it.
func TestNobodyIsAskedAboutTheFirstTokenOfASession_H6(t *testing.T) {
	b := newFake()
	_, p := serve(t, Options{Genuine: func(string, string, string, bool) bool { t.Error("asked"); return false }}, b)
	p.initialize(mcp.V20251125)
	p.callAs(t, b, "Bearer alice")
	want(t, "ping", p.post(ping).StatusCode, 200)
}

// A server that takes the second word of the header reads another token than one that takes
// the rest of it, and may have accepted the first for its own sake.
func TestAHeaderWithTwoReadingsTakesNoSessionOver_H6(t *testing.T) {
	alice := jwt(`{"iss":"https://as","sub":"alice"}`, "a")
	_, token, _ := strings.Cut(jwt(`{"iss":"https://as","sub":"alice"}`, "x"), " ")
	_, claims, _ := strings.Cut(token, ".")
	for _, forged := range []string{"Bearer OPAQUE ." + claims, "Bearer OPAQUE " + token, "Bearer  " + token, "Bearer opaque." + claims, "Bearer " + token + " x"} {
		b := newFake()
		_, p := serve(t, Options{}, b)
		p.asUser(alice).initialize(mcp.V20251125)
		p.callAs(t, b, alice)
		p.callAs(t, b, forged) // the server judges it, and may take OPAQUE
		want(t, forged+": GET", p.get("").StatusCode, 404)
		want(t, forged+": DELETE", p.do(p.request("DELETE", "")).StatusCode, 404)
	}
}

func TestOtherTokensMayCallButNeverTakeOver_H6_Q6(t *testing.T) {
	alice := jwt(`{"iss":"https://as","sub":"alice"}`, "a")
	for _, other := range []string{
		"Bearer opaque",
		"Basic " + alice[len("Bearer "):],
		jwt(`{"iss":"https://as","sub":"mallory"}`, "a"),
		jwt(`{"iss":"https://evil","sub":"alice"}`, "a"),
		jwt(`{"iss":"https://as"}`, "a"),
		jwt(`{"iss":"https://as","sub":"alice","sub":"alice"}`, "a"),
		jwt(`["alice"]`, "a"),
		"Bearer a.%%%.c",
	} {
		b := newFake()
		_, p := serve(t, Options{}, b)
		p.asUser(alice).initialize(mcp.V20251125)
		if c := p.callAs(t, b, other); c.Authorization != other {
			t.Errorf("the call went up with %q", c.Authorization)
		}
		want(t, "ping of "+other, p.post(ping).StatusCode, 404)
		want(t, "GET of "+other, p.get("").StatusCode, 404)
		want(t, "the owner's ping", p.asUser(alice).post(ping).StatusCode, 200)
	}
}

// A server of the clients' own era that the bridge speaks for knows a session as one client's: nobody else begins a
// call in it, and what is refused does not tell whether there is such a session.
func TestASessionThatIsHandedOnExistsForNobodyElse_H8(t *testing.T) {
	b := newFake()
	b.orderly = true
	_, p := serve(t, Options{}, b)
	p.asUser("Bearer alice").initialize(mcp.V20250618)
	live, unknown := p.session, strings.Repeat("A", len(p.session))
	answer := func(session string, r func() *http.Response) string {
		p.session = session
		resp := r()
		resp.Header.Del("Date")
		return fmt.Sprint(resp.StatusCode, resp.Header, text(t, resp))
	}
	for _, other := range []string{"Bearer bob", ""} {
		p.asUser(other)
		for _, body := range []string{
			callTool, answerToLeg, ping, note, `[` + callTool + `]`, `{"jsonrpc":"2.0","id":7,"method":"tools/list"}`,
			`{"jsonrpc":"2.0","id":7,"method":"resources/read","params":{"uri":"a:b"}}`, `{"jsonrpc":"2.0","id":7,"method":"no/such"}`,
			`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}`,
		} {
			post := func() *http.Response { return p.post(body) }
			want(t, other+": "+body, answer(live, post), answer(unknown, post))
		}
		for _, last := range []string{"", "0-1", "1-1"} {
			get := func() *http.Response { return p.get(last) }
			want(t, other+": GET after "+last, answer(live, get), answer(unknown, get))
		}
		end := func() *http.Response { return p.do(p.request(http.MethodDelete, "")) }
		want(t, other+": DELETE", answer(live, end), answer(unknown, end))
	}
	p.session = live
	want(t, "the owner's call", p.asUser("Bearer alice").post(callTool).StatusCode, 200)
}

func TestASessionThatWasOpenedWithoutCredentialsIsBoundToTheFirst_H6(t *testing.T) {
	b := newFake()
	_, p := serve(t, Options{}, b)
	p.initialize(mcp.V20251125)
	want(t, "anonymous", p.post(ping).StatusCode, 200)
	alice := p.callAs(t, b, "Bearer alice")
	want(t, "alice", p.post(ping).StatusCode, 200)
	want(t, "principal", p.callAs(t, b, "Bearer alice").Principal, alice.Principal)
	p.callAs(t, b, "Bearer mallory")
	want(t, "the second user", p.post(ping).StatusCode, 404)
	p.header.Del("Authorization")
	want(t, "anonymous again", p.post(callTool).StatusCode, 404)
	want(t, "and its answers", p.post(answerToLeg).StatusCode, 404)
}

// The server that never sees a token accepts every one of them: signed by nobody,
// it must not take a session over.
func TestATokenThatTheServerNeverSeesTakesNothingOver_H6(t *testing.T) {
	for _, opened := range []string{jwt(`{"iss":"https://as","sub":"alice"}`, "signed"), ""} {
		b := newFake()
		_, p := serve(t, Options{CredentialsEndHere: true}, b)
		p.asUser(opened)
		if opened == "" {
			p.header.Del("Authorization")
		}
		p.initialize(mcp.V20251125)
		forged := jwt(`{"iss":"https://as","sub":"alice"}`, "")
		p.callAs(t, b, forged)
		want(t, "GET with the forged token", p.asUser(forged).get("").StatusCode, 404)
		want(t, "DELETE with it", p.do(p.request("DELETE", "")).StatusCode, 404)
	}
}
