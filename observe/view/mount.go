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
	total, grave, unfetched := 0, 0, 0
	var oldest *flow
	for _, s := range sessions {
		for i := range s.Flows {
			f := &s.Flows[i]
			total++
			waits[f.Diagnosis.Who]++
			if oldest == nil || f.Waited() > oldest.Waited() {
				oldest = f
			}
			if f.Diagnosis.Grave {
				grave++
			}
		}
		if len(s.Flows) == 0 && s.Diagnosis.Grave {
			unfetched++
		}
	}
	var said []string
	if total > 0 {
		said = append(said, fmt.Sprintf("%s under way, %s; the longest wait is %s, of %s for %s", plural(total, "call"), split(waits), span(oldest.Waited()),
			line(oldest.Title()), oldest.Session.Client))
	}
	if grave > 0 {
		said = append(said, plural(grave, "call needs", "calls need")+" a look")
	}
	if unfetched > 0 {
		said = append(said, plural(unfetched, "session")+" with something that the client never got or never answered")
	}
	if n := len(m.Omissions); n > 0 {
		said = append(said, plural(n, "entry", "entries")+" of the server's lists not shown to clients, by the server's fault: "+named(m.Omissions))
	}
	if len(said) == 0 {
		return diagnosis{Who: "none", Text: fmt.Sprintf("All is well: %s, nothing waits.", plural(len(sessions), "session"))}
	}
	text := strings.Join(said, "; ") + "."
	return diagnosis{Who: "none", Text: strings.ToUpper(text[:1]) + text[1:], Grave: grave+unfetched > 0}
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

func plural(n int, word string, many ...string) string {
	switch {
	case n == 1:
		return "1 " + word
	case len(many) > 0:
		return fmt.Sprint(n, " ", many[0])
	}
	return fmt.Sprint(n, " ", word, "s")
}
