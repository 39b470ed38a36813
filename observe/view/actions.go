package view

import (
	"net/http"
	"net/url"
)

// Actions is what the pages let people do. Each reports whether there was something
// to do it to.
type Actions interface {
	EndCall(mount, flow string) bool
	EndSession(mount, id string) bool
	// SetLevel changes what is logged until the next reload or restart.
	SetLevel(name string) bool
	Level() string
}

// act does what a form wants, and leads back to where it stood.
func (v *View) act(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if err := r.ParseForm(); err != nil {
		http.Error(w, "this is no form of the view", http.StatusBadRequest)
		return
	}
	mount, id, done, back := r.PostForm.Get("mount"), r.PostForm.Get("id"), false, "/waiting"
	switch r.PostForm.Get("do") {
	case "end-call":
		done = v.opt.Actions.EndCall(mount, id)
	case "end-session":
		done, back = v.opt.Actions.EndSession(mount, id), "/sessions?"+url.Values{"mount": {mount}}.Encode()
	case "level":
		done, back = v.opt.Actions.SetLevel(r.PostForm.Get("level")), "/server"
	default:
		http.Error(w, "there is no such action", http.StatusBadRequest)
		return
	}
	if !done {
		http.Error(w, "there is nothing like that any more", http.StatusNotFound)
		return
	}
	http.Redirect(w, r, back, http.StatusSeeOther)
}

// maxForm bounds a form, in bytes.
const maxForm = 4 << 10

// levels are those of the log.
var levels = []string{"trace", "debug", "info", "warn", "error"}
