package bridge

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/bridge/ask"
	"github.com/mcpbridge/bridge/ask/page"
)

// person is somebody with a browser.
type person struct {
	t    *testing.T
	desk *page.Desk
}

// answer opens a link and submits its form.
func (p *person) answer(link, fields string) {
	p.t.Helper()
	if status, text := p.form(link).send(fields); status != http.StatusOK {
		p.t.Fatalf("the answer got %d: %s", status, text)
	}
	synctest.Wait()
}

// open opens a link.
func (p *person) open(link string) (status int, text string) {
	w := p.get(link)
	return w.Code, w.Body.String()
}

func (p *person) get(link string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, link, nil)
	r.Host = "127.0.0.1"
	w := httptest.NewRecorder()
	p.desk.ServeHTTP(w, r)
	return w
}

// opened is a form in a browser.
type opened struct {
	*person
	link, guard string
	cookies     []*http.Cookie
}

// form opens a link that must show a form.
func (p *person) form(link string) *opened {
	p.t.Helper()
	w := p.get(link)
	guard := guardIn.FindStringSubmatch(w.Body.String())
	if guard == nil {
		p.t.Fatalf("%s shows no form: %s", link, w.Body)
	}
	return &opened{p, link, guard[1], w.Result().Cookies()}
}

// send submits it.
func (o *opened) send(fields string) (status int, text string) {
	r := httptest.NewRequest(http.MethodPost, o.link, strings.NewReader("guard="+o.guard+"&"+fields))
	r.Host = "127.0.0.1"
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	for _, cookie := range o.cookies {
		r.AddCookie(cookie)
	}
	w := httptest.NewRecorder()
	o.desk.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

// mute returns a session of a client that declared nothing, in front of a page.
func mute(t *testing.T, policy ask.Policy, steps ...step) (*conversation, *script, *person) {
	t.Helper()
	conv, up := session(t, Limits{}, steps...)
	conv.declare(conv.ClientInfo, emptyObject)
	base, _ := url.Parse("http://127.0.0.1/questions")
	desk := page.New(base, 100, "")
	conv.Driver.Ask = ask.New(ask.Options{Server: "flights", Policy: policy, Desk: desk})
	conv.Driver.Wait = 20 * time.Second
	return conv, up, &person{t, desk}
}

func form1(key string) string {
	return `"` + key + `":{"method":"elicitation/create","params":{"message":"Name?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}}}`
}

func linkOf(t *testing.T, text string) string {
	t.Helper()
	link := linkIn.FindString(text)
	if link == "" {
		t.Fatalf("no link in %s", text)
	}
	return link
}
