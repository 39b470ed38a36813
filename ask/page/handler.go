package page

import (
	"crypto/hmac"
	"net/http"
	"net/url"
	"strings"

	"github.com/mcpbridge/bridge/internal/budget"
	"github.com/mcpbridge/bridge/rawjson"
)

// Names of what the forms carry beside the schema's fields, whose inputs have numbers.
const (
	guardName  = "guard"
	actionName = "action"
)

// maxOwners bounds how many owners one browser's inbox knows; the oldest go first.
const maxOwners = 16

// ServeHTTP serves the questions, the inbox and the style sheet below the desk's
// base URL.
func (d *Desk) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	secure(w.Header())
	path, under := strings.CutPrefix(r.URL.Path, strings.TrimSuffix(d.base.Path, "/"))
	token, question := strings.CutPrefix(path, "/q/")
	of, inbox := strings.CutPrefix(path, "/mine/")
	switch {
	case !under || !d.isOwnHost(r.Host):
		http.NotFound(w, r)
	case path == "/style.css":
		w.Header().Set("Content-Type", "text/css; charset=utf-8")
		w.Header().Set("Cache-Control", "max-age=3600")
		_, _ = w.Write(style)
	case question && r.Method == http.MethodPost:
		d.submit(w, r, token)
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		w.Header().Set("Allow", "GET, HEAD, POST")
		d.say(w, http.StatusMethodNotAllowed, "This page cannot do that", "")
	case question:
		d.show(w, r, token)
	case inbox:
		d.inbox(w, r, of)
	case path == "/" || path == "":
		d.say(w, http.StatusOK, "Questions for people", "Open the link to a question. At its foot it leads to the others that wait for you.")
	default:
		d.say(w, http.StatusNotFound, "There is no such page", "")
	}
}

// secure sets what keeps a page from being framed, scripted, cached or told to others.
func secure(h http.Header) {
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'")
	h.Set("X-Frame-Options", "DENY")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "same-origin") // without one, forms are sent with Origin: null
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
}

// isOwnHost keeps pages of other sites from reaching the desk under a name of their own
// that they point at this machine.
func (d *Desk) isOwnHost(host string) bool {
	return strings.EqualFold(withoutDefaultPort(d.base.Scheme, host), d.base.Host)
}

// withoutDefaultPort writes a host as browsers do, which leave the port out that a scheme has by default.
func withoutDefaultPort(scheme, host string) string {
	port := ":80"
	if scheme == "https" {
		port = ":443"
	}
	return strings.TrimSuffix(host, port)
}

// show draws a question's form, or says what became of it.
func (d *Desk) show(w http.ResponseWriter, r *http.Request, token string) {
	q, end := d.find(token)
	if q == nil {
		d.over(w, end)
		return
	}
	if r.Method == http.MethodHead { // looks whether the link is there, and opens nothing
		d.say(w, http.StatusOK, q.Server+" asks", "")
		return
	}
	browser := d.browser(w, r)
	if !d.opens(q, browser, d.owners(r), d.looks(r)) {
		d.say(w, http.StatusForbidden, "This question is for somebody else", "It was opened in another browser, or this browser has a question of another user open. Answer it where it was opened first.")
		return
	}
	d.remember(w, r, q.Owner)
	d.draw(w, http.StatusOK, q, browser, defaults(q), nil)
}

func defaults(q *waiting) url.Values {
	values := url.Values{}
	for i := range q.Form.Fields {
		values[q.Form.Fields[i].Name] = q.Form.Fields[i].Default
	}
	return values
}

// submit takes a person's answer.
func (d *Desk) submit(w http.ResponseWriter, r *http.Request, token string) {
	if !d.sameSite(r) {
		d.say(w, http.StatusForbidden, "This answer came from another site", "Open the link again and answer there.")
		return
	}
	q, end := d.find(token)
	if q == nil {
		d.over(w, end)
		return
	}
	held := budget.On(q.Account) // whoever knows the link may submit as often as it likes
	defer held.Release()
	if !d.bounds(w, r, &held) {
		return
	}
	if err := r.ParseForm(); err != nil {
		d.unread(w)
		return
	}
	guard, action := r.PostForm.Get(guardName), outcomeOf(r.PostForm.Get(actionName))
	values, ok := read(&q.Form, r.PostForm)
	if !ok {
		d.unread(w)
		return
	}
	browser := d.cookie(r, cookieBrowser)
	if browser == "" {
		d.say(w, http.StatusForbidden, "This answer was not sent from the question's own page", "Open the link again and answer there. The page needs cookies.")
		return
	}
	if !d.opens(q, browser, d.owners(r), true) {
		d.say(w, http.StatusForbidden, "This question is for somebody else", "Answer it where it was opened first.")
		return
	}
	if !hmac.Equal([]byte(guard), []byte(d.guard(browser, token))) {
		// A browser that opens its first two links at once takes the name that came last: the form of the other has an older one.
		d.draw(w, http.StatusForbidden, q, browser, values, nil)
		return
	}
	result, problems := q.result(action, values)
	if problems != nil {
		d.draw(w, http.StatusUnprocessableEntity, q, browser, values, problems)
		return
	}
	if result == nil {
		d.say(w, http.StatusBadRequest, "The answer says neither yes nor no", "Go back and use one of the buttons.")
		return
	}
	if q.lost() || !d.end(token, action) { // while the answer came
		_, end := d.find(token)
		d.over(w, end)
		return
	}
	q.Answer(result)
	d.thank(w, q, browser, action)
}

// outcomeOf returns what a button says; empty: none says so. It is no part of the form, which what is
// remembered of a question would keep in memory.
func outcomeOf(action string) outcome {
	for _, how := range [...]outcome{accepted, declined, cancelled} {
		if string(how) == action {
			return how
		}
	}
	return ""
}

// result is the elicitation's result for an action: nil for an unknown one.
func (q *waiting) result(action outcome, submitted url.Values) (result []byte, problems map[string]string) {
	switch action {
	case declined, cancelled:
		return []byte(`{"action":"` + string(action) + `"}`), nil
	case accepted:
	default:
		return nil, nil
	}
	if q.URL != "" || q.Preview != "" {
		return []byte(`{"action":"accept"}`), nil
	}
	content, wrong := q.Form.Answer(submitted)
	if wrong != nil {
		return nil, wrong
	}
	return rawjson.Apply(nil, []byte(`{"action":"accept"}`), rawjson.Edit{Name: "content", Value: content}), nil
}

// sameSite reports whether a form was sent from a page of this desk, as far as the
// browser says. Browsers always say it; the guard is there for all others.
func (d *Desk) sameSite(r *http.Request) bool {
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" && site != "same-origin" && site != "none" {
		return false
	}
	origin := r.Header.Get("Origin")
	return origin == "" || strings.EqualFold(origin, d.base.Scheme+"://"+d.base.Host)
}

// Has reports whether a request is for this desk.
func (d *Desk) Has(r *http.Request) bool {
	rest, under := strings.CutPrefix(r.URL.Path, strings.TrimSuffix(d.base.Path, "/"))
	return under && (rest == "" || rest[0] == '/') && d.isOwnHost(r.Host)
}
