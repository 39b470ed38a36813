package page

import (
	"crypto/rand"
	"net/http"
	"slices"
	"strings"
)

// The cookies of a desk: a random name for the browser, which its forms are bound
// to, and the owners whose links it has opened, signed one by one.
const (
	cookieBrowser = "mcp-bridge-browser"
	cookieOwners  = "mcp-bridge-owners"
)

// browser returns the browser's name, and gives it one when it has none.
func (d *Desk) browser(w http.ResponseWriter, r *http.Request) string {
	if c, err := r.Cookie(cookieBrowser); err == nil && len(c.Value) <= 64 && c.Value != "" {
		return c.Value
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
	c, err := r.Cookie(cookieOwners)
	if err != nil || c.Value == "" {
		return nil
	}
	return strings.Split(c.Value, ".")
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
		Name: name, Value: value, Path: strings.TrimSuffix(d.base.Path, "/") + "/",
		HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: d.base.Scheme == "https",
	})
}
