package compat

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	anyway "github.com/mcpbridge/bridge/ask" // the package has an ask of its own
	"github.com/mcpbridge/bridge/ask/model"
	"github.com/mcpbridge/bridge/ask/page"
	"github.com/mcpbridge/bridge/internal/mount"
)

// What is answered for clients that cannot be asked: by policies, which are off
// unless they are configured.
var elsewhere = group{"Answered for clients that cannot be asked (settings)", []feature{
	{name: "`questions: page`: a form", rules: "C.5, D-I6", kinds: "TTTT", run: func(w *world) cell {
		return via(strings.TrimPrefix(w.toolOnPage(form(formSchema), "f0=3&action=accept", `{"action":"accept","content":{"n":3}}`), "with `questions: page` "))
	}},
	{name: "`questions: page`: a web page", rules: "C-27", kinds: "TTTT", run: func(w *world) cell {
		w.toolOnPage(webQuestion, "action=accept", `{"action":"accept"}`)
		return via("a person sees the address on a page, and agrees before it is linked")
	}},
	{name: "`questions: page`, for a client that opens addresses but shows no forms", rules: "C-27, C-32", kinds: "NNNT", run: invited},
	{name: "`questions: decline`", rules: "C.9", kinds: "TTTT", run: byPolicy(anyway.Decline, `{"action":"decline"}`, "the server is told `decline`")},
	{name: "`questions: default`", rules: "C.4", kinds: "TTTT", run: byPolicy(anyway.Default, `{"action":"accept","content":{"n":7}}`, "accepted with the form's defaults; without them the call fails")},
	{name: "`sampling.provider`", rules: "C.7", kinds: "TTTT", run: func(w *world) cell {
		w.byModel(`{"messages":[{"role":"user","content":{"type":"text","text":"t"}}],"maxTokens":5}`)
		return via("a model answers")
	}},
	{name: "`roots`", rules: "C.8", kinds: "TTTT", run: rootsOfTheConfiguration},
}}

const (
	webQuestion = `{"method":"elicitation/create","params":{"mode":"url","message":"Sign in","url":"https://example.com/in?x=1#y"}}`
	questionsAt = "http://questions.test/questions"
)

var (
	linkPattern  = regexp.MustCompile(`http://questions\.test/questions/q/\w+`)
	guardPattern = regexp.MustCompile(`name="guard" value="([^"]*)"`)
)

// unless says who can do what the client cannot.
func (c cell) unless(who string) cell {
	c.how += "; " + who
	return c
}

// mute is a world whose client declares nothing, with somebody who answers.
func (w *world) mute(opt anyway.Options, options func(*mount.Options)) *world {
	w.Helper()
	return w.declaring(`{}`, opt, options)
}

func (w *world) declaring(capabilities string, opt anyway.Options, options func(*mount.Options)) *world {
	w.Helper()
	m := newWorld(w.T, w.version, func(o *mount.Options) {
		o.Bridge.Ask = anyway.New(opt)
		if options != nil {
			options(o)
		}
	})
	m.client.initialize(capabilities)
	return m
}

// people returns a page, and options that have it asked.
func people(t *testing.T) (*page.Desk, anyway.Options) {
	base, err := url.Parse(questionsAt)
	if err != nil {
		t.Fatal(err)
	}
	desk := page.New(base, 100, "")
	return desk, anyway.Options{Server: "modern", Policy: anyway.Page, Desk: desk}
}

// answerOn opens the link in text in a browser and sends its form.
func answerOn(t *testing.T, desk *page.Desk, text, fields string) {
	t.Helper()
	link := linkPattern.FindString(text)
	browse := func(r *http.Request) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		desk.ServeHTTP(w, r)
		return w
	}
	shown := browse(httptest.NewRequest(http.MethodGet, link, nil))
	guard := guardPattern.FindStringSubmatch(shown.Body.String())
	if link == "" || guard == nil {
		t.Fatalf("no question is at %q: %s", text, shown.Body)
	}
	post := httptest.NewRequest(http.MethodPost, link, strings.NewReader("guard="+guard[1]+"&"+fields))
	post.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	for _, c := range shown.Result().Cookies() {
		post.AddCookie(c)
	}
	if sent := browse(post); sent.Code != http.StatusOK {
		t.Fatalf("the answer got %d: %s", sent.Code, sent.Body)
	}
}

// onPage makes an exchange whose question a person answers on the page.
func (w *world) onPage(method, params, request, done, fields, response string) string {
	w.Helper()
	desk, opt := people(w.T)
	m := w.mute(opt, nil)
	m.server.on(method, asking("elicitation", `"k"`, request, done))
	m.answered(desk, m.client, method, params, done, fields, response)
	return "with `questions: page` a person is asked on a page"
}

// answered calls, has the person answer, and calls again.
func (w *world) answered(desk *page.Desk, c *client, method, params, done, fields, response string) {
	w.Helper()
	first := c.call(method, params).response
	answerOn(w.T, desk, first.Text, fields)
	again := c.call(method, params).response
	expect(w.T, "the result", string(again.Result), done)
	expect(w.T, "the answer", member(w.server.last(method).Params, "inputResponses"), `{"k":`+response+`}`)
	if len(c.asked) != 0 || desk.Len() != 0 {
		w.Errorf("%d questions to the client, %d left on the page", len(c.asked), desk.Len())
	}
}

func (w *world) toolOnPage(request, fields, response string) string {
	w.Helper()
	return w.onPage("tools/call", `{"name":"t"}`, request, `{"content":[]}`, fields, response)
}

// nobodyOnPage: what nobody answers is withdrawn from the page, too.
func (w *world) nobodyOnPage() string {
	w.Helper()
	desk, opt := people(w.T)
	m := w.mute(opt, func(o *mount.Options) { o.Bridge.Wait = time.Hour; impatient(o) })
	m.server.on("tools/call", asking("elicitation", `"k"`, form(formSchema), `{"content":[]}`))
	expect(w.T, "the result", string(m.client.call("tools/call", `{"name":"t"}`).response.Result), `{"content":[]}`)
	expect(w.T, "C.9", member(m.server.last("tools/call").Params, "inputResponses"), `{"k":{"action":"cancel"}}`)
	if desk.Len() != 0 {
		w.Error("the question is left on the page")
	}
	return "with `questions: page` it is withdrawn from the page, and the server is told `cancel`"
}

// jsonOnPage: a link needs no stream.
func (w *world) jsonOnPage() {
	w.Helper()
	desk, opt := people(w.T)
	m := w.mute(opt, nil)
	m.client.header = http.Header{"Accept": {"application/json"}}
	m.server.on("tools/call", asking("elicitation", `"k"`, form(formSchema), `{"content":[]}`))
	m.answered(desk, m.client, "tools/call", `{"name":"t"}`, `{"content":[]}`, "f0=3&action=accept", `{"action":"accept","content":{"n":3}}`)
}

// namedOnPage: without a session the same call is known by its credentials; who has
// none cannot be asked, but answered for.
func (w *world) namedOnPage() {
	w.Helper()
	desk, opt := people(w.T)
	m := w.mute(opt, nil)
	m.server.on("tools/call", asking("elicitation", `"k"`, form(formSchema), `{"content":[]}`))
	stranger := m.newClient()
	stranger.header = http.Header{"Mcp-Protocol-Version": {string(w.version)}}
	if x := stranger.call("tools/call", `{"name":"t"}`); linkPattern.MatchString(x.response.Text) {
		w.Errorf("nobody in particular got a link: %s", x.response.Text)
	}
	stranger.header.Set("Authorization", "Bearer ada")
	m.answered(desk, stranger, "tools/call", `{"name":"t"}`, `{"content":[]}`, "f0=3&action=accept", `{"action":"accept","content":{"n":3}}`)
}

// invited: the client is sent to the page, and told when it is done there.
func invited(w *world) cell {
	if w.before("2025-11-25") {
		return lacks("no such client; the link comes by progress, log message and result")
	}
	desk, opt := people(w.T)
	m := w.declaring(`{"elicitation":{"url":{}}}`, opt, func(o *mount.Options) { o.Bridge.Wait = time.Hour })
	m.server.on("tools/call", asking("elicitation", `"k"`, form(formSchema), `{"content":[]}`))
	x := m.client.start("tools/call", `{"name":"t"}`)
	question := x.until("elicitation/create")
	expect(w.T, "C-27", member(question.Params, "mode"), `"url"`)
	m.client.answer(question, `{"action":"accept"}`)
	answerOn(w.T, desk, string(question.Params), "f0=3&action=accept")
	x.finish()
	expect(w.T, "the result", string(x.response.Result), `{"content":[]}`)
	done := x.notified("notifications/elicitation/complete")
	if len(done) != 1 {
		w.Fatalf("C-32: %d completions", len(done))
	}
	expect(w.T, "C-32", member(done[0].Params, "elicitationId"), member(question.Params, "elicitationId"))
	return via("the client is asked to open the page (URL elicitation), and told when it is done")
}

// byPolicy is the row of a policy that needs nobody.
func byPolicy(policy anyway.Policy, response, how string) func(*world) cell {
	return func(w *world) cell {
		m := w.mute(anyway.Options{Policy: policy}, nil)
		m.server.on("tools/call", asking("elicitation", `"k"`, form(`{"type":"object","properties":{"n":{"type":"integer","default":7}},"required":["n"]}`), `{"content":[]}`))
		expect(w.T, "the result", string(m.client.call("tools/call", `{"name":"t"}`).response.Result), `{"content":[]}`)
		expect(w.T, "the answer", member(m.server.last("tools/call").Params, "inputResponses"), `{"k":`+response+`}`)
		return via(how)
	}
}

// byModel has a model behind an HTTP API answer a sampling request, for a client that
// declares nothing and for one that declares all that its revision has.
func (w *world) byModel(params string) string {
	w.Helper()
	api := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(rw, `{"model":"small","choices":[{"message":{"content":"x"},"finish_reason":"stop"}]}`)
	}))
	w.Cleanup(api.Close)
	small, err := model.New(model.Settings{Provider: model.OpenAI, URL: api.URL, Model: "small", Timeout: patience})
	if err != nil {
		w.Fatal(err)
	}
	m := w.mute(anyway.Options{Policy: anyway.Nobody, Model: small}, nil)
	rich := m.newClient()
	if w.before("2025-11-25") { // later revisions can express all requests
		rich.initialize(declared(w.version))
		rich.answers["sampling/createMessage"] = func(string) string { return sampled }
	} else {
		rich.initialize(`{}`)
	}
	for _, c := range []*client{m.client, rich} {
		m.server.on("tools/call", asking("sampling", `"k"`, `{"method":"sampling/createMessage","params":`+params+`}`, `{"content":[]}`))
		expect(w.T, "the result", string(c.call("tools/call", `{"name":"t"}`).response.Result), `{"content":[]}`)
		if got := member(m.server.last("tools/call").Params, "inputResponses", "k", "stopReason"); got != `"endTurn"` {
			w.Errorf("the answer: %s", m.server.last("tools/call").Params)
		}
	}
	return "with `sampling.provider` a model answers"
}

func rootsOfTheConfiguration(w *world) cell {
	m := w.mute(anyway.Options{Policy: anyway.Nobody, Roots: func(http.Header) []string { return []string{"file:///srv/a"} }}, nil)
	m.server.on("tools/call", asking("roots", `"k"`, `{"method":"roots/list"}`, `{"content":[]}`))
	expect(w.T, "the result", string(m.client.call("tools/call", `{"name":"t"}`).response.Result), `{"content":[]}`)
	expect(w.T, "the answer", member(m.server.last("tools/call").Params, "inputResponses"), `{"k":{"roots":[{"uri":"file:///srv/a"}]}}`)
	return via("those of the configuration")
}
