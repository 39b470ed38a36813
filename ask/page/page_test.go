package page_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/bridge/ask/form"
	"github.com/mcpbridge/bridge/ask/page"
)

const schema = `{"properties":{
	"name":{"type":"string","title":"Name","minLength":2},
	"action":{"type":"string","title":"What to do"},
	"_guard":{"type":"boolean"}},"required":["name"]}`

// desk is a desk behind a server, and what was answered.
type desk struct {
	*page.Desk
	t       *testing.T
	url     string
	answers chan string
}

func newDesk(t *testing.T, limit int) *desk {
	d := &desk{t: t, answers: make(chan string, 16)}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { d.ServeHTTP(w, r) }))
	t.Cleanup(server.Close)
	d.url = server.URL + "/questions"
	base, err := url.Parse(d.url)
	if err != nil {
		t.Fatal(err)
	}
	d.Desk = page.New(base, limit)
	return d
}

func (d *desk) ask(q page.Question) string {
	d.t.Helper()
	if q.Form.Fields == nil && q.URL == "" && q.Preview == "" {
		f, err := form.Parse([]byte(schema))
		if err != nil {
			d.t.Fatal(err)
		}
		q.Form = f
	}
	q.Answer = func(result []byte) { d.answers <- string(result) }
	link, err := d.Ask(q)
	if err != nil {
		d.t.Fatal(err)
	}
	return link
}

// answered returns the one answer, or "" when there is none.
func (d *desk) answered() string {
	select {
	case a := <-d.answers:
		return a
	default:
		return ""
	}
}

// browser is a client with cookies, as a person has it.
func browser(t *testing.T) *http.Client {
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &http.Client{Jar: jar}
}

func fetch(t *testing.T, c *http.Client, req *http.Request) (int, string, http.Header) {
	t.Helper()
	resp, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body), resp.Header
}

func get(t *testing.T, c *http.Client, link string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, link, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Sec-Fetch-Dest", "document") // as browsers say it of a page
	status, body, _ := fetch(t, c, req)
	return status, body
}

var hidden = regexp.MustCompile(`name="_guard" value="([^"]*)"`)

// post submits a question's form as its page would: the guard first, the button last.
func post(t *testing.T, c *http.Client, link, guard, fields, action string, header ...string) (int, string) {
	t.Helper()
	body := "_guard=" + guard + "&" + fields + "&action=" + action
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, link, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	status, page, _ := fetch(t, c, req)
	return status, page
}

func guardOf(t *testing.T, c *http.Client, link string) string {
	t.Helper()
	status, body := get(t, c, link)
	found := hidden.FindStringSubmatch(body)
	if status != http.StatusOK || found == nil {
		t.Fatalf("%d %s", status, body)
	}
	return found[1]
}

func TestPersonAnswers(t *testing.T) {
	for action, want := range map[string]string{
		"accept":  `{"action":"accept","content":{"name":"Ada","action":"go","_guard":true}}`,
		"decline": `{"action":"decline"}`,
		"cancel":  `{"action":"cancel"}`,
	} {
		d, c := newDesk(t, 10), browser(t)
		link := d.ask(page.Question{Server: "Flights", Tool: "book", Message: "Who flies?"})
		guard := guardOf(t, c, link)
		status, body := post(t, c, link, guard, "name=Ada&action=go&_guard=true", action)
		if got := d.answered(); status != http.StatusOK || got != want {
			t.Errorf("%s: %d %s\n%s", action, status, got, body)
		}
		if d.Len() != 0 {
			t.Error("the question still waits")
		}
	}
}

func TestWrongAnswerComesBackWithWhatWasTyped(t *testing.T) {
	d, c := newDesk(t, 10), browser(t)
	link := d.ask(page.Question{Server: "Flights", Message: "Who flies?"})
	status, body := post(t, c, link, guardOf(t, c, link), "name=A&action=%22%3E%3Cb%3E", "accept")
	if status != http.StatusUnprocessableEntity || d.answered() != "" {
		t.Fatalf("%d %s", status, body)
	}
	for _, want := range []string{`role="alert"`, "at least 2 characters", `value="A"`, `value="&#34;&gt;&lt;b&gt;"`, `aria-invalid="true"`} {
		if !strings.Contains(body, want) {
			t.Errorf("the page lacks %s:\n%s", want, body)
		}
	}
}

func TestLinkServesOneAnswer(t *testing.T) {
	d, c := newDesk(t, 10), browser(t)
	link := d.ask(page.Question{Server: "Flights"})
	guard := guardOf(t, c, link)
	post(t, c, link, guard, "name=Ada", "accept")
	if status, _ := post(t, c, link, guard, "name=Eve", "accept"); status != http.StatusGone {
		t.Errorf("the second answer got %d", status)
	}
	if status, body := get(t, c, link); status != http.StatusGone || !strings.Contains(body, "was answered") {
		t.Errorf("the used link got %d %s", status, body)
	}
	if first, second := d.answered(), d.answered(); !strings.Contains(first, "Ada") || second != "" {
		t.Errorf("answers: %q %q", first, second)
	}
}

func TestOfAnswersAtTheSameTimeOneCounts(t *testing.T) {
	d, c := newDesk(t, 10), browser(t)
	link := d.ask(page.Question{Server: "Flights"})
	guard := guardOf(t, c, link)
	var ok atomic.Int32
	done := make(chan struct{})
	for range 8 {
		go func() {
			defer func() { done <- struct{}{} }()
			if status, _ := post(t, c, link, guard, "name=Ada", "accept"); status == http.StatusOK {
				ok.Add(1)
			}
		}()
	}
	for range 8 {
		<-done
	}
	if ok.Load() != 1 || d.answered() == "" || d.answered() != "" {
		t.Errorf("%d were thanked", ok.Load())
	}
}

// Two links that a new browser opens at once each name it, and the name that comes last
// stays: the other's form is shown again, with what was written.
func TestTwoFirstLinksOpenedAtOnceCanBothBeAnswered(t *testing.T) {
	d, early, c := newDesk(t, 10), browser(t), browser(t)
	link, other := d.ask(page.Question{Server: "Flights"}), d.ask(page.Question{Server: "Flights"})
	stale := guardOf(t, early, link)
	if status, _ := post(t, c, other, guardOf(t, c, other), "name=Ada", "accept"); status != http.StatusOK || d.answered() == "" {
		t.Fatal(status)
	}
	status, body := post(t, c, link, stale, "name=Bob", "accept")
	fresh := hidden.FindStringSubmatch(body)
	if status != http.StatusForbidden || fresh == nil || !strings.Contains(body, `value="Bob"`) || !strings.Contains(body, "once more") || d.answered() != "" {
		t.Fatalf("%d %s", status, body)
	}
	if status, body := post(t, c, link, fresh[1], "name=Bob", "accept"); status != http.StatusOK || d.answered() == "" {
		t.Errorf("%d %s", status, body)
	}
}

// What only looks whether a link is there, as previews do, opens nothing.
func TestALookAtALinkDoesNotTakeIt(t *testing.T) {
	d, c := newDesk(t, 10), browser(t)
	link := d.ask(page.Question{Server: "Flights"})
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodHead, link, nil)
	if status, _, header := fetch(t, browser(t), req); status != http.StatusOK || header.Get("Set-Cookie") != "" {
		t.Errorf("%d %v", status, header)
	}
	get(t, c, d.ask(page.Question{Server: "Flights", Owner: "an earlier session"})) // it is somebody's browser
	req.Method = http.MethodGet
	if status, _, _ := fetch(t, browser(t), req); status != http.StatusOK {
		t.Errorf("a preview: %d", status)
	}
	post(t, c, link, guardOf(t, c, link), "name=Ada", "accept")
	if d.answered() == "" {
		t.Error("the person cannot answer")
	}
}

func TestVisit(t *testing.T) {
	d, c := newDesk(t, 10), browser(t)
	link := d.ask(page.Question{Server: "Bank", Message: "Please confirm", URL: "https://pay.example/x?y=1"})
	_, body := get(t, c, link)
	if !strings.Contains(body, "<strong>pay.example</strong>") || strings.Contains(body, `href="https://pay.example`) {
		t.Errorf("the site is named, and not linked before the person agreed:\n%s", body)
	}
	_, body = post(t, c, link, guardOf(t, c, link), "", "accept")
	if !strings.Contains(body, `href="https://pay.example/x?y=1"`) || d.answered() != `{"action":"accept"}` {
		t.Error(body)
	}
}

func TestInboxShowsOneOwnersQuestions(t *testing.T) {
	d, ada, eve := newDesk(t, 10), browser(t), browser(t)
	opened := d.ask(page.Question{Server: "Flights", Owner: "ada"})
	second := d.ask(page.Question{Server: "Hotels", Owner: "ada"})
	foreign := d.ask(page.Question{Server: "Trains", Owner: "eve"})
	if _, body := get(t, ada, inboxOf(t, ada, opened)); !strings.Contains(body, opened) || !strings.Contains(body, second) || strings.Contains(body, foreign) {
		t.Error(body)
	}
	if _, body := get(t, eve, inboxOf(t, ada, opened)); strings.Contains(body, "/q/") {
		t.Error(body)
	}
}

func TestEnds(t *testing.T) {
	d, c := newDesk(t, 2), browser(t)
	link := d.ask(page.Question{Server: "Flights"})
	d.ask(page.Question{Server: "Flights"})
	if _, err := d.Ask(page.Question{}); !errors.Is(err, page.ErrFull) {
		t.Errorf("the third of two: %v", err)
	}
	d.Withdraw(link)
	d.Withdraw(link)
	if status, body := get(t, c, link); status != http.StatusGone || !strings.Contains(body, "no longer open") {
		t.Errorf("%d %s", status, body)
	}
}

// A tenant that has many places gives none of the last ones to itself; what ends is free again.
func TestTheLastPlacesAreForOthers(t *testing.T) {
	d := newDesk(t, 16)
	var links []string
	for range 14 {
		links = append(links, d.ask(page.Question{Tenant: "greedy"}))
	}
	if _, err := d.Ask(page.Question{Tenant: "greedy"}); !errors.Is(err, page.ErrOthers) {
		t.Errorf("the last places: %v", err)
	}
	d.ask(page.Question{Tenant: "modest"})
	d.Withdraw(links[0])
	d.Withdraw(links[0])
	d.Withdraw(links[1])
	d.ask(page.Question{Tenant: "greedy"})
	if _, err := d.Ask(page.Question{Tenant: "greedy"}); !errors.Is(err, page.ErrOthers) {
		t.Errorf("after one ended: %v", err)
	}
}

func TestQuestionsExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		base, _ := url.Parse("http://127.0.0.1/questions")
		d := page.New(base, 1)
		if _, err := d.Ask(page.Question{Deadline: time.Now().Add(time.Minute)}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Minute)
		if _, err := d.Ask(page.Question{Deadline: time.Now().Add(time.Minute)}); err != nil {
			t.Error("an expired question takes the place of a new one")
		}
	})
}
