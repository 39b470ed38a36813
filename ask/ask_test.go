package ask_test

import (
	"html"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/bridge/ask"
	"github.com/mcpbridge/bridge/ask/model"
	"github.com/mcpbridge/bridge/ask/page"
	"github.com/mcpbridge/bridge/internal/budget"
	"github.com/mcpbridge/bridge/rawjson"
)

func TestNothingConfiguredIsNoRoom(t *testing.T) {
	if ask.New(ask.Options{Policy: ask.Nobody}) != nil {
		t.Error("a room that answers nothing")
	}
}

func TestCapabilities(t *testing.T) {
	someModel, err := model.New(model.Settings{Provider: model.OpenAI})
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		opt       ask.Options
		own, want string
	}{
		{ask.Options{Policy: ask.Page}, `{}`, `{"elicitation":{"form":{},"url":{}}}`},
		{ask.Options{Policy: ask.Page}, `{"elicitation":{}}`, `{"elicitation":{"form":{},"url":{}}}`},
		{ask.Options{Policy: ask.Page}, `{"elicitation":{"url":{}}}`, `{"elicitation":{"url":{},"form":{}}}`},
		{ask.Options{Policy: ask.Decline}, `{"roots":{}}`, `{"roots":{},"elicitation":{"form":{},"url":{}}}`},
		{ask.Options{Policy: ask.Default}, `{}`, `{"elicitation":{"form":{}}}`},
		{ask.Options{Policy: ask.Nobody, Model: someModel}, `{}`, `{"sampling":{"tools":{}}}`},
		{ask.Options{Policy: ask.Nobody, Model: someModel}, `{"sampling":{}}`, `{"sampling":{"tools":{}}}`},
		{ask.Options{Policy: ask.Nobody, Roots: fixed("file:///x")}, `{}`, `{"roots":{}}`},
	} {
		room := ask.New(test.opt)
		if got := room.Capabilities([]byte(test.own), ask.Reach{Person: true, Roots: room.Roots(nil) != nil}); !rawjson.Equal(got, []byte(test.want)) {
			t.Errorf("%v on %s: %s, want %s", test.opt.Policy, test.own, got, test.want)
		}
	}
}

func fixed(uris ...string) func(http.Header) []string {
	return func(http.Header) []string { return uris }
}

// answer is what an inquiry was told.
type answer struct {
	response string
	why      error
}

func inquire(r *ask.Room, method, params string) (ask.Ticket, <-chan answer) {
	told := make(chan answer, 2)
	ticket := r.Ask(ask.Inquiry{
		Method: method, Params: []byte(params), Tool: "book", Owner: "ada", Roots: r.Roots(nil), Deadline: time.Now().Add(time.Hour),
		Answer: func(response []byte, why error) { told <- answer{string(response), why} },
	})
	return ticket, told
}

const question = `{"message":"Who flies?","requestedSchema":{"type":"object","properties":{"n":{"type":"integer","default":2}},"required":["n"]}}`

func TestAnsweredAtOnce(t *testing.T) {
	for _, test := range []struct {
		opt                  ask.Options
		method, params, want string // want empty: an error
	}{
		{ask.Options{Policy: ask.Decline}, "elicitation/create", question, `{"action":"decline"}`},
		{ask.Options{Policy: ask.Decline}, "elicitation/create", `{"mode":"url","url":"https://x"}`, `{"action":"decline"}`},
		{ask.Options{Policy: ask.Default}, "elicitation/create", question, `{"action":"accept","content":{"n":2}}`},
		{ask.Options{Policy: ask.Default}, "elicitation/create", strings.Replace(question, `,"default":2`, "", 1), ""},
		{ask.Options{Policy: ask.Default}, "elicitation/create", `{"requestedSchema":{"properties":{"n":{"type":"object"}}}}`, ""},
		{ask.Options{Policy: ask.Nobody, Roots: fixed("file:///a", "file:///b")}, "roots/list", ``, `{"roots":[{"uri":"file:///a"},{"uri":"file:///b"}]}`},
	} {
		ticket, told := inquire(ask.New(test.opt), test.method, test.params)
		got := <-told
		if got.response != test.want || (got.why == nil) != (test.want != "") || ticket.Link != "" {
			t.Errorf("%s %s: %+v", test.opt.Policy, test.params, got)
		}
	}
}

// newDesk is a desk that a browser can reach.
func newDesk(t *testing.T, limit int) *page.Desk {
	var desk *page.Desk
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { desk.ServeHTTP(w, r) }))
	t.Cleanup(server.Close)
	base, err := url.Parse(server.URL + "/questions")
	if err != nil {
		t.Fatal(err)
	}
	desk = page.New(base, limit, "")
	return desk
}

var guard = regexp.MustCompile(`name="guard" value="([^"]*)"`)

// submit opens a link and sends its form.
func submit(t *testing.T, link, fields string) (shown string) {
	t.Helper()
	resp, err := http.Get(link)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	found := guard.FindSubmatch(text)
	if found == nil {
		t.Fatalf("no form: %s", text)
	}
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, link, strings.NewReader("guard="+string(found[1])+"&"+fields))
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	for _, cookie := range resp.Cookies() {
		req.AddCookie(cookie)
	}
	done, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = done.Body.Close()
	return string(text)
}

func TestPersonAnswersOnThePage(t *testing.T) {
	r := ask.New(ask.Options{Server: "flights", Policy: ask.Page, Desk: newDesk(t, 4)})
	ticket, told := inquire(r, "elicitation/create", question)
	if shown := submit(t, ticket.Link, "f0=3&action=accept"); !strings.Contains(shown, "Who flies?") || !strings.Contains(shown, "flights") {
		t.Error(shown)
	}
	if got := <-told; got.response != `{"action":"accept","content":{"n":3}}` {
		t.Errorf("%+v", got)
	}
	ticket.Withdraw()
}

func TestWhatThePageCannotShow(t *testing.T) {
	r := ask.New(ask.Options{Policy: ask.Page, Desk: newDesk(t, 1)})
	for _, params := range []string{
		`{"mode":"url","url":"javascript:alert(1)"}`, `{"mode":"url","url":"x"}`, `{}`,
		`{"mode":"url","url":"https://bank.example@evil.example/"}`, `{"mode":"url","url":"https://a\u202eb.example/"}`, `{"mode":"url","url":"https:///x"}`,
		`{"requestedSchema":{"properties":{"n":{"type":"object"}}}}`,
	} {
		_, told := inquire(r, "elicitation/create", params)
		if got := <-told; got.why == nil {
			t.Errorf("%s: %+v", params, got)
		}
	}
	waiting, _ := inquire(r, "elicitation/create", question)
	_, told := inquire(r, "elicitation/create", question)
	if got := <-told; got.why == nil {
		t.Error("the second of one place waits")
	}
	waiting.Withdraw()
	if again, _ := inquire(r, "elicitation/create", question); again.Link == "" {
		t.Error("a withdrawn question keeps its place")
	}
}

func TestModelAnswersAfterApproval(t *testing.T) {
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"model":"m","choices":[{"message":{"content":"Hi"},"finish_reason":"stop"}]}`)
	}))
	defer api.Close()
	m, err := model.New(model.Settings{Provider: model.OpenAI, URL: api.URL, MaxTokens: 10, Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	const sampling = `{"maxTokens":5,"messages":[{"role":"user","content":{"type":"text","text":"Say hi"}}]}`
	const want = `{"role":"assistant","content":{"text":"Hi","type":"text"},"model":"m","stopReason":"endTurn"}`

	r := ask.New(ask.Options{Policy: ask.Nobody, Model: m})
	_, told := inquire(r, "sampling/createMessage", sampling)
	if got := <-told; got.response != want {
		t.Errorf("%+v", got)
	}
	r.Close()

	r = ask.New(ask.Options{Policy: ask.Nobody, Model: m, Approve: true, Desk: newDesk(t, 4)})
	ticket, told := inquire(r, "sampling/createMessage", sampling)
	if shown := submit(t, ticket.Link, "action=accept"); !strings.Contains(shown, "user: Say hi") {
		t.Error(shown)
	}
	if got := <-told; got.response != want {
		t.Errorf("%+v", got)
	}
	ticket, told = inquire(r, "sampling/createMessage", sampling)
	submit(t, ticket.Link, "action=decline")
	if got := <-told; got.why == nil {
		t.Errorf("%+v", got)
	}
	r.Close()
}

// What a person sees of an address is what the browser goes to, without letters that look
// like others.
func TestAddressesAreShownInASCII(t *testing.T) {
	for raw, want := range map[string]string{
		"https://example.com/a?b=c%20d#e":           "https://example.com/a?b=c%20d#e",
		"https://\u0430pple.com/":                   "https://xn--pple-43d.com/", // a Cyrillic letter first
		"https://EXAMPLE.com:8443/\u202etxt?\u202e": "https://example.com:8443/%E2%80%AEtxt?%E2%80%AE",
		"http://[::1]:9/x":                          "http://[::1]:9/x",
		"http://127.0.0.1/x":                        "http://127.0.0.1/x",
		"https://my_host.example/":                  "https://my_host.example/",
	} {
		desk := page.New(&url.URL{Scheme: "http", Host: "127.0.0.1", Path: "/questions"}, 1, "")
		room := ask.New(ask.Options{Policy: ask.Page, Desk: desk})
		ticket := room.Ask(ask.Inquiry{Method: "elicitation/create", Params: []byte(`{"mode":"url","message":"m","url":` + strconv.Quote(raw) + `}`), Answer: func(_ []byte, why error) { t.Errorf("%s: %v", raw, why) }})
		r := httptest.NewRequest(http.MethodGet, ticket.Link, nil)
		w := httptest.NewRecorder()
		desk.ServeHTTP(w, r)
		if !strings.Contains(html.UnescapeString(w.Body.String()), `<p class="address">`+want+`</p>`) {
			t.Errorf("%s: %s", raw, w.Body)
		}
	}
}

func TestLongMessagesAreCut(t *testing.T) {
	desk := page.New(&url.URL{Scheme: "http", Host: "127.0.0.1", Path: "/questions"}, 1, "")
	room := ask.New(ask.Options{Policy: ask.Page, Desk: desk})
	ticket := room.Ask(ask.Inquiry{Method: "elicitation/create", Params: []byte(`{"message":"` + strings.Repeat("é", 3<<20) + `","requestedSchema":{"properties":{}}}`), Answer: func([]byte, error) {}})
	for _, at := range []string{ticket.Link, "http://127.0.0.1/questions/"} {
		r := httptest.NewRequest(http.MethodGet, at, nil)
		w := httptest.NewRecorder()
		desk.ServeHTTP(w, r)
		if n := w.Body.Len(); n > 64<<10 {
			t.Errorf("%s has %d bytes", at, n)
		}
	}
}

func TestAQuestionOfNoKindIsAnsweredByNobody(t *testing.T) {
	r := ask.New(ask.Options{Policy: ask.Decline})
	defer r.Close()
	if r.Answers("elicitation/createMany", ask.Reach{Person: true, Roots: true}) {
		t.Error("somebody would answer")
	}
	var response []byte
	var why error
	r.Ask(ask.Inquiry{Method: "elicitation/createMany", Answer: func(b []byte, err error) { response, why = b, err }})
	if response != nil || why == nil || !strings.Contains(why.Error(), "elicitation/createMany") {
		t.Errorf("%s, %v", response, why)
	}
}

// A sampling request that there is no memory to read is not put before a person.
func TestWhatAPersonApprovesIsCharged(t *testing.T) {
	m, err := model.New(model.Settings{Provider: model.OpenAI, URL: "http://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	memory := budget.New(32 << 20)
	room := ask.New(ask.Options{Policy: ask.Nobody, Model: m, Approve: true, Desk: newDesk(t, 4)})
	defer room.Close()
	for blocks, want := range map[int]bool{10: true, 100_000: false} {
		var why error
		ticket := room.Ask(ask.Inquiry{
			Method: "sampling/createMessage", Params: []byte(`{"messages":[{"role":"user","content":[{}` + strings.Repeat(",{}", blocks) + `]}]}`),
			Account: memory.Guest("somebody"), Deadline: time.Now().Add(time.Hour), Answer: func(_ []byte, err error) { why = err },
		})
		if asked := ticket.Link != ""; asked != want || budget.Short(why) == want {
			t.Errorf("%d blocks: asked %v, %v", blocks, asked, why)
		}
		ticket.Withdraw()
	}
	if memory.Used() != 0 {
		t.Errorf("%d bytes are still charged", memory.Used())
	}
}
