package page

import "time"

// tab is what a desk knows of the tabs that are opened for questions by themselves.
type tab struct {
	token   string    // of the question that the last one shows
	opened  time.Time // when that was
	ignored int       // tabs in a row that nobody answered
}

// tabPause is how long no tab follows one that nobody answered; it doubles with each.
const tabPause = time.Minute

// maxIgnored bounds how often that doubles.
const maxIgnored = 6

// TakesTab reports whether a tab should be opened for the question under link, and
// counts on it that one is then. A person who answers gets a tab for the next question.
// While the question of the last tab waits, there is none: its page leads to the others of its owner. So
// there is at most one for each question, and nobody comes back to a screen full of them.
func (d *Desk) TakesTab(link string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	token := tokenIn(link)
	if d.waiting[token] == nil || d.waiting[d.tab.token] != nil {
		return false
	}
	ignored := 0
	if end, _ := d.ended.Peek(d.tab.token); d.tab.token != "" && end != accepted && end != declined && end != cancelled {
		ignored = min(d.tab.ignored+1, maxIgnored)
		if time.Since(d.tab.opened) < tabPause<<(ignored-1) {
			return false
		}
	}
	d.tab = tab{token: token, opened: time.Now(), ignored: ignored}
	return true
}
