package bridge

import (
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/bridge/ask"
	"github.com/mcpbridge/bridge/ask/page"
	"github.com/mcpbridge/bridge/downstream"
)

// behind is somebody behind a gateway that signs in for all, and says who it is.
func behind(user string) downstream.Caller {
	return downstream.Caller{Principal: "gateway", Header: http.Header{"X-Auth-Request-User": {user}}}
}

var mineIn = regexp.MustCompile(`href="([^"]*/mine/[0-9a-f]+)"`)

// mine is what waits for the person of a question, as the page says that opens it.
func mine(t *testing.T, desk *page.Desk, link string) string {
	t.Helper()
	var cookies []*http.Cookie
	open := func(at string) string {
		r := httptest.NewRequest(http.MethodGet, at, nil)
		r.Host = "127.0.0.1"
		for _, cookie := range cookies {
			r.AddCookie(cookie)
		}
		w := httptest.NewRecorder()
		desk.ServeHTTP(w, r)
		cookies = append(cookies, w.Result().Cookies()...)
		return w.Body.String()
	}
	at := mineIn.FindStringSubmatch(open(link))
	if at == nil {
		t.Fatal("the page names no others that wait")
	}
	return open(at[1])
}

// What waits for one person behind an Authorization is nobody else's, neither the call nor its question.
func TestPeopleBehindOneAuthorizationAreToldApart(t *testing.T) {
	asks := []step{inputRequired(`"alice's"`, form1("q")), inputRequired(`"bob's"`, form1("q")), result(booked)}
	book := `{"name":"book"}`
	check := func(t *testing.T, up *script, who *person, call func(user string) *client) {
		t.Helper()
		alice, bob := call("alice"), call("bob")
		pass(20 * time.Second)
		again := call("bob")
		pass(20 * time.Second)
		links := []string{linkOf(t, alice.result()), linkOf(t, bob.result()), linkOf(t, again.result())}
		if links[0] == links[1] || links[1] != links[2] {
			t.Fatalf("two people have the links %q", links)
		}
		if others := mine(t, who.desk, links[0]); !strings.Contains(others, links[0]) || strings.Contains(others, links[1]) {
			t.Errorf("what waits for alice: %s", others)
		}
		who.answer(links[0], "f0=Alice&action=accept")
		if got := call("bob"); got.over() {
			t.Errorf("bob got %s", got.result())
		}
		if got := call("alice").result(); !strings.Contains(got, `"ok"`) {
			t.Error(got)
		}
		if last := up.calls()[2]; len(up.calls()) != 3 || member(last, "requestState") != `"alice's"` || last.Header.Get("X-Auth-Request-User") != "alice" {
			t.Errorf("%d requests, the last one by %s with %s", len(up.calls()), last.Header, member(last, "requestState"))
		}
	}
	t.Run("without a session", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c, up := newCrowd(t, Limits{}, ask.Page, asks...)
			check(t, up, c.person, func(user string) *client { return c.callAs(behind(user), book) })
		})
	})
	t.Run("in a session that they share", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			conv, up, who := mute(t, ask.Page, asks...)
			conv.Principal = "gateway"
			n := 0
			check(t, up, who, func(user string) *client {
				n++
				return requestBy(t, conv, behind(user), string(rune('0'+n)), book)
			})
		})
	})
}

// A proxy says anew with each request who somebody is, in a token that is as new, and numbers requests.
func TestAPersonIsKnownAgainByANewToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, up := newCrowd(t, Limits{}, ask.Page, inputRequired(`"s"`, form1("q")), inputRequired(`"s"`, form1("q")), result(booked))
		call := func(subject, made string) *client {
			claims := base64.URLEncoding.EncodeToString([]byte(`{"iss":"the proxy","sub":"` + subject + `","iat":` + made + `}`))
			return c.callAs(downstream.Caller{Principal: "gateway", Header: http.Header{
				"X-Pomerium-Jwt-Assertion": {"e30." + claims + ".signed" + made}, "X-Amz-Cf-Id": {made}, "X-Kong-Request-Id": {made},
			}}, `{"name":"book"}`)
		}
		ada := call("ada", "1")
		pass(20 * time.Second)
		c.answer(linkOf(t, ada.result()), "f0=Ada&action=accept")
		call("bob", "2")
		got := call("ada", "3").result()
		if last := up.calls()[2]; !strings.Contains(got, `"ok"`) || len(up.calls()) != 3 || !strings.Contains(member(last, "inputResponses"), "Ada") {
			t.Errorf("%d requests, the last one with %s; %s", len(up.calls()), member(last, "inputResponses"), got)
		}
	})
}

// Whoever has many calls that wait has those of nobody else ended.
func TestWhoHasManyCallsThatWaitHasNobodyElsesEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ask1 := inputRequired(`"s"`, form1("q"))
		c, _ := newCrowd(t, Limits{FlowsPerSession: 2}, ask.Page, ask1, ask1, ask1, ask1, ask1)
		alice := c.callAs(behind("alice"), `{"name":"book"}`)
		pass(20 * time.Second)
		for _, n := range []string{"1", "2", "3"} {
			c.callAs(behind("bob"), `{"name":"book","arguments":{"n":`+n+`}}`)
			pass(20 * time.Second)
		}
		again := c.callAs(behind("alice"), `{"name":"book"}`)
		pass(20 * time.Second)
		if before, now := linkOf(t, alice.result()), linkOf(t, again.result()); before != now || c.b.replies.Len() != 2 {
			t.Errorf("alice is asked at %s, then at %s; %d calls wait", before, now, c.b.replies.Len())
		}
	})
}
