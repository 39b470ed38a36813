package page

import (
	"crypto/rand"
	"net/http"
	"slices"
	"strings"
)

// The cookies of a desk: a random name for the browser, which its forms and inboxes are
// bound to, and the owners whose links it has opened, signed one by one. Browsers send
// them to every port of the host, so they alone open nothing, and what is shown to who
// has them depends on the address that was opened besides.
const (
	cookieBrowser = "mcp-bridge-browser"
	cookieOwners  = "mcp-bridge-owners"
)

// cookie returns the value of a request's cookie; "" when it has none.
func (d *Desk) cookie(r *http.Request, name string) string {
	c, err := r.Cookie(d.cookieName(name))
	if err != nil {
		return ""
	}
	return c.Value
}

// cookieName marks the cookies of a desk that has TLS, so that browsers take them from
// nothing that has none.
func (d *Desk) cookieName(name string) string {
	if d.base.Scheme == "https" {
		return "__Secure-" + name
	}
	return name
}

// browser returns the browser's name, and gives it one when it has none.
func (d *Desk) browser(w http.ResponseWriter, r *http.Request) string {
	if name := d.cookie(r, cookieBrowser); name != "" && len(name) <= 64 {
		return name
	}
	name := rand.Text()
	d.set(w, cookieBrowser, name)
	return name
}

// guard binds a form to the browser that it was shown to, so that no other site can
// have it sent.
func (d *Desk) guard(browser, token string) string { return d.sign("guard", browser+"\x00"+token) }

// owners returns the signed names of the owners that this browser knows.
func (d *Desk) owners(r *http.Request) []string {
	names := d.cookie(r, cookieOwners)
	if names == "" {
		return nil
	}
	return strings.Split(names, ".")
}

// looks reports whether a person looks at a page. Programs that fetch links to show
// previews of them have no cookies, and do not say that they navigate.
func (d *Desk) looks(r *http.Request) bool {
	return d.cookie(r, cookieBrowser) != "" || r.Header.Get("Sec-Fetch-Dest") == "document"
}

// opens reports whether a browser may see a question, and notes that it did. A link is
// as good as a name for a browser that has opened none yet. One that has opened others'
// is somebody: it may not open what another browser has opened, nor a user's question
// while another user's is open in it. A browser that knows the owner always may. What
// does not say that a person looks opens nothing.
func (d *Desk) opens(q *waiting, browser string, owners []string, looked bool) bool {
	known := slices.Contains(owners, d.sign("owner", q.Owner))
	d.mu.Lock()
	defer d.mu.Unlock()
	if !known && len(owners) > 0 {
		if q.browser != "" && q.browser != browser || q.Named && d.servesOtherLocked(browser, q.Owner) {
			return false
		}
	}
	if q.browser == "" && looked {
		q.browser = strings.Clone(browser) // without the header that it came in
	}
	return true
}

// servesOtherLocked reports whether a question of another user is open in a browser.
func (d *Desk) servesOtherLocked(browser, owner string) bool {
	for _, w := range d.waiting {
		if w.Named && w.browser == browser && w.Owner != owner {
			return true
		}
	}
	return false
}

// remember adds an owner to those that the browser knows.
func (d *Desk) remember(w http.ResponseWriter, r *http.Request, owner string) {
	name := d.sign("owner", owner)
	known := d.owners(r)
	if slices.Contains(known, name) {
		return
	}
	known = append([]string{name}, known...)
	d.set(w, cookieOwners, strings.Join(known[:min(len(known), maxOwners)], "."))
}

func (d *Desk) set(w http.ResponseWriter, name, value string) {
	http.SetCookie(w, &http.Cookie{
		Name: d.cookieName(name), Value: value, Path: strings.TrimSuffix(d.base.Path, "/") + "/",
		HttpOnly: true, SameSite: http.SameSiteLaxMode, // strict ones are not sent when a link is followed from another site
		Secure: d.base.Scheme == "https",
	})
}
