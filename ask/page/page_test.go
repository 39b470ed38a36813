package page_test

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/bridge/ask/page"
)

const schema = `{"properties":{
	"name":{"type":"string","title":"Name","minLength":2},
	"action":{"type":"string","title":"What to do"},
	"guard":{"type":"boolean"}},"required":["name"]}`

func TestPersonAnswers(t *testing.T) {
	for action, want := range map[string]string{
		"accept":  `{"action":"accept","content":{"name":"Ada","action":"go","guard":true}}`,
		"decline": `{"action":"decline"}`,
		"cancel":  `{"action":"cancel"}`,
	} {
		d, c := newDesk(t, 10), browser(t)
		link := d.ask(page.Question{Server: "Flights", Tool: "book", Message: "Who flies?"})
		guard := guardOf(t, c, link)
		status, body := post(t, c, link, guard, "f0=Ada&f1=go&f2=true", action)
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
	status, body := post(t, c, link, guardOf(t, c, link), "f0=A&f1=%22%3E%3Cb%3E", "accept")
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
	post(t, c, link, guard, "f0=Ada", "accept")
	if status, _ := post(t, c, link, guard, "f0=Eve", "accept"); status != http.StatusGone {
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
			if status, _ := post(t, c, link, guard, "f0=Ada", "accept"); status == http.StatusOK {
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
	if status, _ := post(t, c, other, guardOf(t, c, other), "f0=Ada", "accept"); status != http.StatusOK || d.answered() == "" {
		t.Fatal(status)
	}
	status, body := post(t, c, link, stale, "f0=Bob", "accept")
	fresh := hidden.FindStringSubmatch(body)
	if status != http.StatusForbidden || fresh == nil || !strings.Contains(body, `value="Bob"`) || !strings.Contains(body, "once more") || d.answered() != "" {
		t.Fatalf("%d %s", status, body)
	}
	if status, body := post(t, c, link, fresh[1], "f0=Bob", "accept"); status != http.StatusOK || d.answered() == "" {
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
	post(t, c, link, guardOf(t, c, link), "f0=Ada", "accept")
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

// What nobody would get the answer of is asked no more, wherever it is seen first.
func TestAQuestionWhoseAnswerWouldBeLostIsNotOpen(t *testing.T) {
	d, c := newDesk(t, 10), browser(t)
	var lost atomic.Bool
	opened := d.ask(page.Question{Server: "Flights", Owner: "ada"})
	link := d.ask(page.Question{Server: "Hotels", Owner: "ada", Lost: lost.Load})
	inbox := inboxOf(t, c, opened)
	for range 2 {
		_, body := get(t, c, inbox)
		if strings.Contains(body, link) == lost.Load() || !strings.Contains(body, opened) {
			t.Errorf("lost: %t, those that wait: %s", lost.Load(), body)
		}
		lost.Store(true)
	}
	if status, body := get(t, c, link); status != http.StatusGone || !strings.Contains(body, "no longer open") {
		t.Errorf("%d %s", status, body)
	}
	if d.Len() != 1 {
		t.Errorf("%d questions have a place", d.Len())
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
	if status, body := get(t, c, link); status != http.StatusGone || !strings.Contains(body, "no longer open") || !strings.Contains(body, "the bridge is being stopped") {
		t.Errorf("%d %s", status, body)
	}
	if status, body := get(t, c, link+"x"); status != http.StatusNotFound || !strings.Contains(body, "the bridge was restarted") {
		t.Errorf("%d %s", status, body)
	}
}

// Nobody has to guess how long there is to answer, which fields must be filled in, and how the two ways not to answer differ.
func TestThePageOfAQuestionSaysWhatToDo(t *testing.T) {
	d, c := newDesk(t, 1), browser(t)
	_, body := get(t, c, d.ask(page.Question{Server: "Flights", Deadline: time.Now().Add(10 * time.Minute)}))
	for _, want := range []string{"You have 10 minutes left to answer.", "(required)", "Decline tells the server that you say no.", "Cancel tells it that you made no choice"} {
		if !strings.Contains(body, want) {
			t.Errorf("the page lacks %q:\n%s", want, body)
		}
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
		d := page.New(base, 1, "")
		if _, err := d.Ask(page.Question{Deadline: time.Now().Add(time.Minute)}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Minute)
		if _, err := d.Ask(page.Question{Deadline: time.Now().Add(time.Minute)}); err != nil {
			t.Error("an expired question takes the place of a new one")
		}
	})
}
