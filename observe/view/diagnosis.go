package view

import (
	"fmt"
	"strings"
	"time"

	"github.com/mcpbridge/bridge/observe"
)

// diagnosis is one sentence on what something waits for.
type diagnosis struct {
	Who   string // person, client, server, time, none
	Text  string
	Grave bool // somebody should look
}

// When a wait is long enough to be told apart from everyday slowness.
const (
	slowServer   = 5 * time.Second
	silentServer = 20 * time.Second
	muteClient   = 30 * time.Second
)

// ofFlow says why a call has not ended.
func ofFlow(f *observe.Flow, s *observe.Sight, now time.Time) diagnosis {
	waited := span(now.Sub(f.Since))
	switch {
	case !f.Reachable:
		return diagnosis{"client", "The client has gone and has no way back to the answer; the call is given up soon (timeouts.grace).", true}
	case f.Waits == observe.ForClient && unread(s):
		return diagnosis{"client", fmt.Sprintf("The client lost the stream of this call, on which it was asked %s ago. "+
			"What it missed is kept until it comes back with Last-Event-ID.", waited), true}
	case f.Waits == observe.ForClient:
		return ofQuestion(f, now)
	case f.Waits == observe.ForTime && f.StateOnly > 0:
		return diagnosis{"server", fmt.Sprintf("Going in circles: the server asked nothing and wanted to be called again %d of %d times "+
			"(%s). The fault is the server's.", f.StateOnly, f.StateMost, f.StateCap), f.StateOnly > 1}
	case f.Waits == observe.ForTime:
		return diagnosis{"time", "Waits for a moment before the server is called again: the person may not have finished on a page of the server.", false}
	case f.Waits == observe.ForTask:
		return diagnosis{"server", "The server made a task of the call and works on it; the bridge asks from time to time.", false}
	}
	return ofServer(f, now)
}

func ofServer(f *observe.Flow, now time.Time) diagnosis {
	silent := now.Sub(f.Since)
	round := ""
	if f.Round > 0 {
		round = fmt.Sprintf(", in round %d", f.Round+1)
	}
	switch {
	case f.StateOnly > 1:
		return diagnosis{"server", fmt.Sprintf("Going in circles: the server asked nothing and wanted to be called again %d of %d times "+
			"(%s). The fault is the server's.", f.StateOnly, f.StateMost, f.StateCap), true}
	case silent < slowServer:
		return diagnosis{"server", "With the server" + round + ".", false}
	}
	return diagnosis{"server", fmt.Sprintf("The server has been silent for %s%s: no answer, no progress. It is given up in %s (timeouts.round).",
		span(silent), round, span(f.Until.Sub(now))), silent >= silentServer}
}

// ofQuestion says who has a question, and whether to expect an answer.
func ofQuestion(f *observe.Flow, now time.Time) diagnosis {
	waited := now.Sub(f.Since)
	for _, q := range f.Questions {
		if !q.Asked || q.Answered {
			continue
		}
		until := fmt.Sprintf("until %s, in %s (timeouts.server-request)", f.Until.Format("15:04:05"), span(f.Until.Sub(now)))
		switch {
		case !q.Proven && waited >= muteClient:
			return diagnosis{"client", fmt.Sprintf("The client was asked for %s %s ago and has never answered such a question, although it declared that it can: "+
				"it probably shows nothing. It may answer %s.", article(q.Kind), span(waited), until), true}
		case q.Kind == observe.Sampling:
			return diagnosis{"client", fmt.Sprintf("Waits for the client's model, asked %s ago; it may answer %s.", span(waited), until), false}
		case q.Kind == observe.Roots:
			return diagnosis{"client", fmt.Sprintf("Waits for the client's list of roots, asked %s ago.", span(waited)), false}
		}
		proof := "This client has not answered a question yet."
		if q.Proven {
			proof = "This client has answered questions before."
		}
		return diagnosis{"person", fmt.Sprintf("Waits for a person, who was asked for %s %s ago and may answer %s. %s", article(q.Kind), span(waited), until, proof), false}
	}
	return diagnosis{"client", "Waits for the client.", false}
}

func article(k observe.Kind) string {
	switch k {
	case observe.URL:
		return "a visit to a page"
	case observe.Sampling:
		return "a sample of its model"
	case observe.Roots:
		return "its roots"
	}
	return "a form"
}

// unread reports whether nobody reads any stream of a session that has some.
func unread(s *observe.Sight) bool {
	if s.Transport != observe.StreamableHTTP {
		return false
	}
	open := 0
	for _, st := range s.Streams {
		if st.ID == 0 || st.Ended {
			continue
		}
		if st.Attached {
			return false
		}
		open++
	}
	return open > 0
}

// ofSession says the gravest thing about a session.
func ofSession(s *session) diagnosis {
	best := diagnosis{"none", "Nothing is under way.", false}
	for _, f := range s.Flows {
		if best.Who == "none" || f.Diagnosis.Grave && !best.Grave {
			best = f.Diagnosis
		}
	}
	if best.Who != "none" {
		return best
	}
	for _, st := range s.Streams {
		if st.Ended && st.Missing > 0 && !st.Attached {
			return diagnosis{"client", fmt.Sprintf("A call was answered, and nobody fetched the answer: stream %d holds %s that reached no connection. "+
				"It is kept for a while (timeouts.retention).", st.ID, plural(st.Missing, "event")), true}
		}
	}
	if len(s.Distrusted) > 0 {
		return diagnosis{"client", "Not asked for " + strings.Join(s.Distrusted, ", ") + " any more: the client declared it and did not serve it.", true}
	}
	return best
}

// ofMount sums a mount up.
func ofMount(m *Mount, sessions []*session) diagnosis {
	if !m.Ready {
		return diagnosis{"server", "Clients cannot be served: " + m.Said, true}
	}
	waits := map[string]int{}
	total, grave, unfetched := 0, 0, 0
	var oldest time.Duration
	for _, s := range sessions {
		for i := range s.Flows {
			f := &s.Flows[i]
			total++
			waits[f.Diagnosis.Who]++
			oldest = max(oldest, f.Waited())
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
		said = append(said, fmt.Sprintf("%s under way, %s; the longest wait is %s", plural(total, "call"), split(waits), span(oldest)))
	}
	if grave > 0 {
		said = append(said, plural(grave, "call needs", "calls need")+" a look")
	}
	if unfetched > 0 {
		said = append(said, plural(unfetched, "session")+" with something that the client never got or never answered")
	}
	if n := len(m.Omissions); n > 0 {
		said = append(said, plural(n, "entry", "entries")+" of the server's lists not shown to clients")
	}
	if len(said) == 0 {
		return diagnosis{"none", fmt.Sprintf("All is well: %s, nothing waits.", plural(len(sessions), "session")), false}
	}
	text := strings.Join(said, "; ") + "."
	return diagnosis{"none", strings.ToUpper(text[:1]) + text[1:], grave+unfetched > 0}
}

func split(waits map[string]int) string {
	var parts []string
	for _, who := range []string{"person", "client", "server", "time"} {
		if n := waits[who]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d with %s", n, map[string]string{
				"person": "a person", "client": "the client", "server": "the server", "time": "the clock",
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

// span words a time for people.
func span(d time.Duration) string {
	switch {
	case d < 0:
		return "0 s"
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < 2*time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < 2*time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	}
	return fmt.Sprintf("%d h", int(d.Hours()))
}
