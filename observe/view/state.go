package view

import (
	"slices"
	"strings"
	"time"

	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/observe"
	"github.com/mcpbridge/bridge/rawjson"
	"github.com/mcpbridge/bridge/translate"
)

// Mount is one mount as it stands at a moment.
type Mount struct {
	Path      string
	Target    string // the server, without anything secret
	Ready     bool
	Said      string // what the server is, or why it cannot be used
	Server    []byte // its answer to server/discover; nil: none yet
	Limit     int    // of sessions
	Sessions  []observe.Sight
	Earlier   int  // the first so many of these are under settings of before a reload
	Removed   bool // a reload took it out: newcomers are not served
	Omissions []observe.Omission
	Tools     [][]byte        // lists of tools as the server gave them
	Rules     translate.Rules // by which clients are shown them
	Pace      observe.Pace
	// Behind tells what there is at the server; nil: nobody knows.
	Behind func() observe.Behind
}

// session is one session with what is said of it.
type session struct {
	observe.Sight
	Mount     string
	Client    string
	Earlier   bool // it is under settings of before a reload
	Diagnosis diagnosis
	Flows     []flow
}

// flow is one call with what is said of it.
type flow struct {
	observe.Flow
	Session   *session
	Diagnosis diagnosis
	Now       time.Time
}

// Age is for how long the call has been under way.
func (f *flow) Age() time.Duration { return f.Now.Sub(f.Began) }

// Waited is for how long it has waited as it does now; in a circle, from its beginning.
func (f *flow) Waited() time.Duration {
	if f.StateOnly > 1 {
		return f.Age()
	}
	return f.Now.Sub(f.Since)
}

// wait is how much of a wait is left before it ends the call.
type wait struct {
	Left, Whole time.Duration
	Percent     int
	Setting     string // that says so
}

// Wait is how much is left of the present wait; nil: nothing.
func (f *flow) Wait() *wait {
	end, setting := bound(&f.Flow)
	from := f.Since
	if setting == "timeouts.flow" {
		from = f.Began
	}
	w := &wait{Left: end.Sub(f.Now), Whole: end.Sub(from), Setting: setting}
	if w.Left <= 0 || w.Whole <= 0 {
		return nil
	}
	w.Percent = int(min(100, 100*w.Left/w.Whole))
	return w
}

// left is how long the present wait may go on.
func (f *flow) left() time.Duration {
	if w := f.Wait(); w != nil {
		return w.Left
	}
	return 0
}

// Clock says for how long the call has waited, in words that say what is counted.
func (f *flow) Clock() string {
	if f.Waits == observe.ForTime || f.Waits == observe.ForTask || f.StateOnly > 1 {
		return "under way for " + Span(f.Age())
	}
	return "waits for " + Span(f.Waited())
}

// Rounds is how many requests to the server the call has taken.
func (f *flow) Rounds() int { return f.Round + 1 }

// Title names what was called.
func (f *flow) Title() string {
	if f.Name == "" {
		return f.Method
	}
	return f.Name
}

// newSession says what can be said of a session.
func newSession(mount string, sight observe.Sight, now time.Time) *session {
	s := &session{Sight: sight, Mount: mount, Client: clientName(sight.ClientInfo)}
	for _, f := range sight.Flows {
		s.Flows = append(s.Flows, flow{Flow: f, Session: s, Diagnosis: weigh(ofFlow(&f, &sight, now)), Now: now})
	}
	slices.SortFunc(s.Flows, func(a, b flow) int { return a.Began.Compare(b.Began) })
	s.Diagnosis = ofSession(s)
	return s
}

// session says what can be said of one of a mount's sessions.
func (m *Mount) session(i int, now time.Time) *session {
	s := newSession(m.Path, m.Sessions[i], now)
	s.Earlier = i < m.Earlier
	return s
}

// clientName is what a client calls itself, on one line.
func clientName(info []byte) string {
	name, _ := rawjson.Text(rawjson.Get(info, "name"))
	version, _ := rawjson.Text(rawjson.Get(info, "version"))
	name = line(name + " " + version)
	if name == "" {
		return "(no name)"
	}
	return name
}

// maxText bounds a peer's text on a page, in characters.
const maxText = 80

// line makes a peer's text short and one line.
func line(text string) string { return cut(text, maxText) }

// long is line for what the bridge says itself with a peer's words in it.
func long(text string) string { return cut(text, 4*maxText) }

func cut(text string, most int) string {
	text = strings.Join(strings.Fields(text), " ")
	if runes := []rune(text); len(runes) > most {
		text = string(runes[:most]) + "…"
	}
	return text
}

// capabilities lists the names of a capability set.
func capabilities(set []byte) string {
	var names []string
	for name := range rawjson.Members(set) {
		names = append(names, line(string(name)))
	}
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// versions counts sessions by revision, in the order of the revisions.
func versions(sessions []*session) []count {
	var counts []count
	for _, v := range mcp.Legacy {
		n := 0
		for _, s := range sessions {
			if s.Version == v {
				n++
			}
		}
		if n > 0 {
			counts = append(counts, count{string(v), n})
		}
	}
	return counts
}

type count struct {
	Name string
	N    int
}

// revisions are those that clients of the bridge speak.
var revisions = func() (list []string) {
	for _, v := range mcp.Legacy {
		list = append(list, string(v))
	}
	return list
}()

// offers lists what a server's answer to server/discover promises.
func offers(discover []byte) string { return capabilities(rawjson.Get(discover, "capabilities")) }

// itself is what a server calls itself, on one line.
func itself(discover []byte) string {
	info := rawjson.Get(rawjson.Get(discover, "_meta"), mcp.MetaServerInfo)
	if info == nil {
		info = rawjson.Get(discover, "serverInfo")
	}
	return clientName(info)
}

// questions says what a server can ask clients of a revision, if they declare it.
func questions(revision string) string {
	switch v := mcp.Version(revision); {
	case v.AtLeast(mcp.V20251125):
		return "forms, pages, samples with tools, roots"
	case v.AtLeast(mcp.V20250618):
		return "forms, samples, roots"
	}
	return "samples, roots"
}
