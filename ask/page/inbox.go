package page

import (
	"cmp"
	"crypto/hmac"
	"net/http"
	"slices"
	"strings"
	"time"
)

// inboxOf is the address of what waits for an owner, for one browser. Only pages of the
// owner's questions name it: it cannot be told from the browser's cookies, which other
// programs may have, and without them it shows nothing.
func (d *Desk) inboxOf(owner, browser string) string {
	return d.base.JoinPath("mine", d.inboxName(owner, browser)).String()
}

func (d *Desk) inboxName(owner, browser string) string {
	return d.sign("inbox", browser+"\x00"+owner) + d.mark
}

// inbox lists what waits for the owner that its address is of.
func (d *Desk) inbox(w http.ResponseWriter, r *http.Request, of string) {
	browser := d.cookie(r, cookieBrowser)
	found := d.of(func(owner string) bool {
		return browser != "" && hmac.Equal([]byte(of), []byte(d.inboxName(owner, browser)))
	})
	found = slices.DeleteFunc(found, (*waiting).lost)
	slices.SortFunc(found, func(a, b *waiting) int {
		return cmp.Or(a.asked.Compare(b.asked), strings.Compare(a.token, b.token))
	})
	entries := make([]entry, len(found))
	for i, q := range found {
		entries[i] = entry{Link: d.link(q.token), Server: q.Server, Tool: q.Tool, Message: beginning(q.Message), Asked: ago(time.Since(q.asked))}
	}
	v := view{Title: "Questions that wait for you", Entries: entries}
	if len(found) > 0 {
		v.account = found[0].Account // all are of one owner
	}
	d.render(w, http.StatusOK, "inbox", v)
}
