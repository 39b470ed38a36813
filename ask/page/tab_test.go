package page_test

import (
	"net/url"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/bridge/ask/page"
)

// At most one tab for a question, none while another waits, and ever fewer for
// somebody who does not answer.
func TestTabsDoNotPileUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		base, _ := url.Parse("http://127.0.0.1/questions")
		d := page.New(base, 100, "")
		ask := func() string {
			link, err := d.Ask(page.Question{Owner: "a", Answer: func([]byte) {}})
			if err != nil {
				t.Fatal(err)
			}
			return link
		}
		first, second := ask(), ask()
		if !d.TakesTab(first) || d.TakesTab(first) || d.TakesTab(second) {
			t.Fatal("one tab for the first question, none for the second")
		}
		d.Refuse(first, false) // as a person does
		if !d.TakesTab(second) {
			t.Fatal("who answers is shown the next question")
		}
		d.Withdraw(second)
		tabs := 0
		for range 24 * 60 { // a day with a question each minute, and nobody there
			link := ask()
			if d.TakesTab(link) {
				tabs++
			}
			time.Sleep(time.Minute)
			d.Withdraw(link)
		}
		if tabs == 0 || tabs > 50 {
			t.Errorf("%d tabs in a day", tabs)
		}
		if d.TakesTab("http://127.0.0.1/questions/q/none") {
			t.Error("a tab for a question that does not wait")
		}
	})
}
