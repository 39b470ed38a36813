package view

import (
	"fmt"
	"strings"

	"github.com/mcpbridge/bridge/observe"
)

// ofMount sums a mount up.
func ofMount(m *Mount, sessions []*session) diagnosis {
	if !m.Ready {
		return diagnosis{Who: "server", Text: "Clients cannot be served: " + m.Said, Grave: true, Do: "Look at the server, and at its address (upstream)"}
	}
	waits := map[string]int{}
	total, grave := 0, 0
	var worst *flow
	var unfetched []*session
	for _, s := range sessions {
		for i := range s.Flows {
			f := &s.Flows[i]
			total++
			waits[f.Diagnosis.Who]++
			if worst == nil || f.before(worst) {
				worst = f
			}
			if f.Diagnosis.Grave {
				grave++
			}
		}
		if len(s.Flows) == 0 && s.Diagnosis.Grave {
			unfetched = append(unfetched, s)
		}
	}
	d := diagnosis{Who: "none", Grave: grave+len(unfetched) > 0}
	var said []string
	if total > 0 {
		said = append(said, fmt.Sprintf("%s under way, %s", observe.Plural(total, "call"), split(waits)))
	}
	switch {
	case grave > 0:
		said = append(said, fmt.Sprintf("%s a look, first %s of %s: %s", observe.Plural(grave, "call needs", "calls need"), line(worst.Title()), worst.Session.Client, worst.Diagnosis.Brief))
		d.Places = append(d.Places, placeOf(worst.Session))
	case total > 0:
		said = append(said, fmt.Sprintf("the longest wait is %s, of %s of %s", Span(worst.Waited()), line(worst.Title()), worst.Session.Client))
	}
	if n := len(unfetched); n > 0 {
		said = append(said, observe.Plural(n, "session")+" with something that the client never got or never answered: "+clients(unfetched))
		for _, s := range unfetched[:min(n, mostPlaces)] {
			d.Places = append(d.Places, placeOf(s))
		}
	}
	switch {
	case len(said) > 0:
	case len(m.Omissions) > 0:
		said = append(said, observe.Plural(len(sessions), "session")+", nothing waits")
	default:
		said = append(said, fmt.Sprintf("All is well: %s, nothing waits", observe.Plural(len(sessions), "session")))
	}
	d.Text = strings.Join(said, "; ") + "."
	d.Text = strings.ToUpper(d.Text[:1]) + d.Text[1:]
	return d
}

// before reports whether a call is named before another: the worst verdict, then the
// longest wait.
func (f *flow) before(g *flow) bool {
	switch {
	case f.Diagnosis.worse(&g.Diagnosis):
		return true
	case g.Diagnosis.worse(&f.Diagnosis):
		return false
	}
	return f.Waited() > g.Waited()
}

// place is a session that a sentence leads to.
type place struct{ Client, Mount, ID string }

func placeOf(s *session) place { return place{s.Client, s.Mount, s.ID} }

// mostPlaces bounds the sessions that one sentence names.
const mostPlaces = 3

// clients names the clients of some sessions.
func clients(of []*session) string {
	var names []string
	for _, s := range of[:min(len(of), mostPlaces)] {
		names = append(names, s.Client)
	}
	if len(of) > mostPlaces {
		names = append(names, "…")
	}
	return strings.Join(names, ", ")
}

// left says what clients do not get to see of a server's lists; "": they see all.
func left(of []observe.Omission) string {
	if len(of) == 0 {
		return ""
	}
	return " " + observe.Plural(len(of), "entry", "entries") + " of the server's lists not shown to clients, by the server's fault: " + named(of) + "."
}

// named has the names of some entries.
func named(left []observe.Omission) string {
	var names []string
	for _, o := range left[:min(len(left), mostHidden)] {
		names = append(names, line(o.Name))
	}
	if len(left) > mostHidden {
		names = append(names, "…")
	}
	return strings.Join(names, ", ")
}

func split(waits map[string]int) string {
	var parts []string
	for _, who := range []string{"person", "client", "model", "server", "time"} {
		if n := waits[who]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d with %s", n, map[string]string{
				"person": "a person", "client": "the client", "model": "a model", "server": "the server", "time": "the clock",
			}[who]))
		}
	}
	return strings.Join(parts, ", ")
}
