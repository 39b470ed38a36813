package view

import (
	"net/http"
	"net/url"
)

// Actions is what the pages let people do. Each reports whether there was something
// to do it to.
type Actions interface {
	EndCall(mount, session, flow string) bool
	EndSession(mount, id string) bool
	// SetLevel changes what is logged until the next reload or restart.
	SetLevel(name string) bool
	Level() string
}

// deedsDone says what was done, for the page that a deed leads to.
var deedsDone = map[string]string{
	"end-call":    "The call was ended. Its client has an error that says so.",
	"end-session": "The session was ended. Its client will find out with its next request.",
	"level":       "The log has the level that is shown now.",
}

// confirm asks before something is done that cannot be undone.
func (v *View) confirm(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	deed := map[string]any{"Do": q.Get("do"), "Mount": q.Get("mount"), "ID": q.Get("id"), "Session": q.Get("session")}
	switch q.Get("do") {
	case "end-call":
		for _, f := range flows(v.look()) {
			if f.Session.Mount == q.Get("mount") && f.Session.ID == q.Get("session") && f.ID == q.Get("id") {
				deed["Flow"] = f
				v.show(w, r, "confirm", "End this call?", deed)
				return
			}
		}
	case "end-session":
		if s := v.find(r); s != nil {
			deed["Session"], deed["Of"] = s.ID, s
			v.show(w, r, "confirm", "End this session?", deed)
			return
		}
	}
	v.nothing(w, r)
}

// nothing says that what somebody wanted to do has nothing to do it to any more.
func (v *View) nothing(w http.ResponseWriter, r *http.Request) {
	w.WriteHeader(http.StatusNotFound)
	v.show(w, r, "nothing", "There is nothing like that any more", nil)
}

// act does what a form wants, and leads back to where it stood.
func (v *View) act(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if err := r.ParseForm(); err != nil {
		http.Error(w, "this is no form of the view", http.StatusBadRequest)
		return
	}
	deed, mount, id := r.PostForm.Get("do"), r.PostForm.Get("mount"), r.PostForm.Get("id")
	done, back := false, ""
	to := url.Values{"done": {deed}}
	switch deed {
	case "end-call":
		session := r.PostForm.Get("session")
		done, back = v.opt.Actions.EndCall(mount, session, id), "/session"
		to.Set("mount", mount)
		to.Set("id", session)
	case "end-session":
		done, back = v.opt.Actions.EndSession(mount, id), "/sessions"
		to.Set("mount", mount)
	case "level":
		done, back = v.opt.Actions.SetLevel(r.PostForm.Get("level")), "/server"
	default:
		http.Error(w, "there is no such action", http.StatusBadRequest)
		return
	}
	if !done {
		v.nothing(w, r)
		return
	}
	http.Redirect(w, r, back+"?"+to.Encode(), http.StatusSeeOther)
}

// maxForm bounds a form, in bytes.
const maxForm = 4 << 10

// levels are those of the log.
var levels = []string{"trace", "debug", "info", "warn", "error"}
