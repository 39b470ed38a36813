package view

import (
	"bytes"
	"embed"
	"html/template"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/mcpbridge/bridge/observe"
)

// Options says what is shown.
type Options struct {
	// Look returns every mount as it stands.
	Look func() []Mount
	// Messages returns the latest messages of a session, and has them kept while
	// somebody looks.
	Messages func(session uint64) []observe.Event
	// After returns the latest messages of all sessions after a number, and has them
	// kept too.
	After func(seq uint64) []observe.Event
	// Ends returns the calls that ended last and are wanted, the latest first; nil: none
	// are kept.
	Ends func(most int, wanted func(*observe.Ended) bool) []observe.Ended
	// Payloads shows what the server asks people.
	Payloads bool
	// Actions is what people may do; nil: only look.
	Actions Actions
	// Recording is what records messages.
	Recording Recording
	// Version of the program.
	Version string
}

// View serves the pages.
type View struct {
	opt  Options
	mux  *http.ServeMux
	said verdicts
}

//go:embed templates
var files embed.FS

//go:embed static
var static embed.FS

// Static serves what the pages are made of, below /static/. It says nothing of anybody.
func Static() http.Handler { return http.FileServerFS(static) }

var pages = template.Must(template.New("").Funcs(template.FuncMap{
	"span": Span, "exact": exact, "long": long, "whom": whom, "hour": hour, "anchor": anchor, "line": line, "unquoted": func(id string) string { return strings.Trim(id, "\"") }, "capabilities": capabilities, "plural": observe.Plural, "clock": clock,
	"offers": offers, "questions": questions, "itself": itself, "revisions": func() []string { return revisions }, "levels": func() []string { return levels },
}).ParseFS(files, "templates/*.html"))

func clock(t time.Time) string { return t.Format("15:04:05.000 MST") }

// New returns the pages.
func New(opt Options) *View {
	v := &View{opt: opt, mux: http.NewServeMux()}
	v.mux.HandleFunc("GET /{$}", v.overview)
	v.mux.HandleFunc("GET /waiting", v.waiting)
	v.mux.HandleFunc("GET /ended", v.ended)
	v.mux.HandleFunc("GET /sessions", v.sessions)
	v.mux.HandleFunc("GET /session", v.session)
	v.mux.HandleFunc("GET /session.jsonl", v.export)
	v.mux.HandleFunc("GET /server", v.server)
	v.mux.HandleFunc("GET /api/v1/state", v.state)
	v.mux.HandleFunc("GET /api/v1/events", v.events)
	v.mux.HandleFunc("GET /recording", v.recording)
	v.mux.HandleFunc("POST /recording", v.turnRecording)
	v.mux.HandleFunc("GET /recording.jsonl", v.download)
	if opt.Actions != nil {
		v.mux.HandleFunc("POST /action", v.act)
		v.mux.HandleFunc("GET /confirm", v.confirm)
	}
	v.mux.Handle("GET /static/", Static())
	return v
}

// ServeHTTP implements http.Handler.
func (v *View) ServeHTTP(w http.ResponseWriter, r *http.Request) { v.mux.ServeHTTP(w, r) }

// page is what every page has.
type page struct {
	Title, Here, Version string
	Payloads             bool
	Recording            bool
	Actions              Actions // nil: people may only look
	Now                  time.Time
	Still                bool   // it stays as it is
	Done                 string // what was done just now, in words; "" for nothing
	Data                 any
}

// Zone names the time zone of what the page shows.
func (p page) Zone() string {
	if name, offset := p.Now.Zone(); name == "UTC" && offset == 0 {
		return name
	}
	return p.Now.Format("MST (UTC-07:00)")
}

// show renders a page, or for the module that refreshes it only its live part.
func (v *View) show(w http.ResponseWriter, r *http.Request, name, title string, data any) {
	part := "frame"
	if r.Header.Get("X-Part") == "live" {
		part = name
	}
	var body bytes.Buffer
	p := page{Title: title, Here: r.URL.Path, Version: v.opt.Version, Payloads: v.opt.Payloads, Recording: v.opt.Recording.RecordingState().On,
		Actions: v.opt.Actions, Now: time.Now(), Still: r.Method == http.MethodPost, Done: deedsDone[r.URL.Query().Get("done")], Data: data}
	t, err := pages.Clone()
	if err == nil {
		_, err = t.AddParseTree("live", t.Lookup(name).Tree)
	}
	if err == nil {
		err = t.ExecuteTemplate(&body, part, p)
	}
	if err != nil {
		http.Error(w, "the page cannot be made: "+err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write(body.Bytes())
}

// mountSaid is a mount with what is said of it.
type mountSaid struct {
	Mount
	All       []*session
	Diagnosis diagnosis
	Versions  []count
	Waiting   int
	Hidden    []diagnosis // some of what clients do not get to see
	// Of the page about servers only:
	Offers     []offer
	MoreOffers int
	Way        *observe.Behind // nil: nobody knows
}

// mostHidden bounds how many entries that clients do not get the overview names.
const mostHidden = 3

// look reads everything anew.
func (v *View) look() []mountSaid {
	now := time.Now()
	var said []mountSaid
	for _, m := range v.opt.Look() {
		s := mountSaid{Mount: m}
		for i := range m.Sessions {
			one := m.session(i, now)
			v.said.noteAll(one)
			s.Waiting += len(one.Flows)
			s.All = append(s.All, one)
		}
		s.Hidden = hidden(&m)
		s.Diagnosis, s.Versions = ofMount(&m, s.All), versions(s.All)
		said = append(said, s)
	}
	return said
}

// flows returns every call under way, the worst verdicts first, those that wait for
// a person last, and of equal ones the oldest first.
func flows(mounts []mountSaid) []*flow {
	var all []*flow
	for _, m := range mounts {
		for _, s := range m.All {
			for i := range s.Flows {
				all = append(all, &s.Flows[i])
			}
		}
	}
	slices.SortStableFunc(all, func(a, b *flow) int {
		switch {
		case a.Diagnosis.worse(&b.Diagnosis):
			return -1
		case b.Diagnosis.worse(&a.Diagnosis):
			return 1
		}
		return a.Since.Compare(b.Since)
	})
	return all
}

// mostRows bounds the rows of one page.
const mostRows = 200

func (v *View) overview(w http.ResponseWriter, r *http.Request) {
	mounts := v.look()
	all := flows(mounts)
	v.show(w, r, "overview", "Overview", map[string]any{"Mounts": mounts, "Flows": all[:min(len(all), 10)], "More": max(0, len(all)-10),
		"Failed": v.endsOf(mostFailed, func(e *observe.Ended) bool { return e.Amiss() })})
}

func (v *View) waiting(w http.ResponseWriter, r *http.Request) {
	all := flows(v.look())
	v.show(w, r, "waiting", "What waits", map[string]any{"Flows": all[:min(len(all), mostRows)], "More": max(0, len(all)-mostRows)})
}

func (v *View) server(w http.ResponseWriter, r *http.Request) {
	mounts := v.look()
	for i := range mounts {
		mounts[i].Offers, mounts[i].MoreOffers = mounts[i].offers()
		if mounts[i].Behind != nil {
			way := mounts[i].Behind()
			slices.Reverse(way.Printed) // the latest line says most
			mounts[i].Way = &way
		}
	}
	v.show(w, r, "server", "Servers", map[string]any{"Mounts": mounts})
}

func (v *View) session(w http.ResponseWriter, r *http.Request) {
	s := v.find(r)
	if s == nil {
		w.WriteHeader(http.StatusNotFound)
		v.show(w, r, "gone", "No such session", nil)
		return
	}
	v.show(w, r, "session", "Session "+s.ID, map[string]any{"Session": s, "Ends": v.endsOf(20, s.ended), "Hidden": v.hiddenFrom(s.Mount), "Bands": v.lanes(s.Number)})
}

// lanes orders the messages of a session as they stand now.
func (v *View) lanes(session uint64) []*band {
	said := func(question string) verdict { return v.said.get(questionKey(session, question)) }
	return lanes(v.opt.Messages(session), time.Now(), v.opt.Payloads, said)
}

// ended reports whether a call that ended is of the session, and worth a word.
func (s *session) ended(e *observe.Ended) bool {
	return e.Unusual() && e.Mount == s.Mount && e.Session == s.ID
}

// find returns the session that a request names; nil: it has ended, or never was.
func (v *View) find(r *http.Request) *session {
	id, mount := r.URL.Query().Get("id"), r.URL.Query().Get("mount")
	now := time.Now()
	for _, m := range v.opt.Look() {
		for i := range m.Sessions {
			if m.Path == mount && m.Sessions[i].ID == id {
				s := m.session(i, now)
				v.said.noteAll(s)
				return s
			}
		}
	}
	return nil
}
