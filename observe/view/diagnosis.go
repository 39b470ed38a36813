package view

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mcpbridge/bridge/observe"
)

// diagnosis is one sentence on what something waits for, and half a one on what to do.
type diagnosis struct {
	Who   string // person, client, server, time, none
	Text  string
	Grave bool   // somebody should look
	Do    string // which setting, which side to look at; "" where nothing is to be done
	Link  string // a page that has more; "" for none
	About string // what that page has; "": what is known of the server
	Brief string // a grave one in a few words
	// Weight ranks verdicts; that of a wait for a person, which harms nobody, is 0.
	Weight weight
	Places []place // sessions to look at first
}

// Whole is both in one text.
func (d *diagnosis) Whole() string {
	if d.Do == "" {
		return d.Text
	}
	return d.Text + " " + d.Do + "."
}

// When a wait is long enough to be told apart from everyday slowness. A client that has
// never answered is suspected sooner than one that has.
const (
	slowServer   = 5 * time.Second
	silentServer = 20 * time.Second
	muteClient   = 15 * time.Second
)

// ofFlow says why a call has not ended.
func ofFlow(f *observe.Flow, s *observe.Sight, now time.Time) diagnosis {
	waited := Span(now.Sub(f.Since))
	switch {
	case !f.Reachable:
		return diagnosis{Who: "client", Grave: true, Weight: lostStream, Brief: "the client has gone", Text: "The client has gone and has no way back to the answer; the call is given up soon (timeouts.grace).",
			Do: "See why the client, or a proxy before it, closed the connection"}
	case f.Waits == observe.ForClient && settled(f):
		return ofSettled(f, now)
	case f.Waits == observe.ForClient && elsewhere(f) != nil:
		return ofAnother(f, elsewhere(f), now)
	case f.Waits == observe.ForClient && unread(s):
		return diagnosis{Who: "client", Grave: true, Weight: lostStream, Brief: "the client lost its stream", Text: fmt.Sprintf("The client lost the stream of this call, on which it was asked %s ago. "+
			"What it missed is kept until it comes back with Last-Event-ID, %s.", waited, until(f, now)),
			Do: "Look between client and bridge, such as at a proxy that cuts idle connections; a client that never resumes needs mending itself"}
	case f.Waits == observe.ForClient:
		return ofQuestion(f, now)
	case f.StateOnly > 1, f.Waits == observe.ForTime && f.StateOnly > 0:
		return circling(f, now)
	case f.Waits == observe.ForTime:
		return diagnosis{Who: "time", Text: "Waits for a moment before the server is called again: the person may not have finished on a page of the server.",
			Do: "Nothing, unless the person says to have finished: then look at the server"}
	case f.Waits == observe.ForTask:
		return diagnosis{Who: "server", Text: fmt.Sprintf("The server made a task of the call %s ago and works on it; the bridge asks from time to time.", Span(now.Sub(f.Began))),
			Do: "Look at the task in the server if it takes too long; timeouts.flow ends it"}
	}
	return ofServer(f, now)
}

// circling is a server that only wants to be called again.
func circling(f *observe.Flow, now time.Time) diagnosis {
	return diagnosis{Who: "server", Grave: f.StateOnly > 1, Weight: circles, Brief: "the server goes in circles", Link: "/server", Text: fmt.Sprintf("Going in circles: the server asked nothing and wanted to be called again, "+
		"%d of %d times in %s. The fault is the server's.", f.StateOnly, f.StateMost, Span(now.Sub(f.Began))),
		Do: "Look at the server: it answers input_required without inputRequests; the last of these times ends the call (" + f.StateCap + ")"}
}

func ofServer(f *observe.Flow, now time.Time) diagnosis {
	waited := now.Sub(f.Since)
	round := ""
	if f.Round > 0 {
		round = fmt.Sprintf(", in round %d", f.Round+1)
	}
	if waited < slowServer {
		return diagnosis{Who: "server", Text: "With the server" + round + ".", Do: "Nothing yet"}
	}
	end, setting := bound(f)
	d := diagnosis{Who: "server", Link: "/server", About: "its connections, and what it printed",
		Text: fmt.Sprintf("The server has been silent for %s%s: no answer, no progress. The call fails at %s, in %s (%s).", Span(waited), round, hour(end), Span(end.Sub(now)), setting),
		Do:   "Look at the server, and whether it tells of progress; if the tool needs longer, raise " + setting}
	if waited >= silentServer {
		d.Grave, d.Weight, d.Brief = true, silent, "the server is silent"
	}
	return d
}

// elsewhere returns the open question that somebody else is asked than the client; nil:
// there is none.
func elsewhere(f *observe.Flow) *observe.Open {
	for i := range f.Questions {
		if q := &f.Questions[i]; q.By != observe.ByClient && !q.Answered {
			return q
		}
	}
	return nil
}

// ofAnother says of a question who is asked in place of the client.
func ofAnother(f *observe.Flow, q *observe.Open, now time.Time) diagnosis {
	waited := Span(now.Sub(f.Since))
	if q.By == observe.ByModel {
		return diagnosis{Who: "model", Text: fmt.Sprintf("Waits for the bridge's own model, asked %s %s ago; it may answer %s.", wordsOf(q.Kind).asked, waited, until(f, now)),
			Do: "Look at the model's provider (sampling.provider) if it takes long"}
	}
	d := diagnosis{Who: "person", Text: fmt.Sprintf("Waits for a person, who was asked %s on a page of the bridge %s ago and may answer %s.", wordsOf(q.Kind).asked, waited, until(f, now)),
		Do: "Nothing is wrong if somebody has opened the page, whose address the client got (the setting questions is page)"}
	if f.Detached {
		d.Text += " No request waits for the call: the client gets the answer when it makes the same call again."
	}
	return d
}

// settled reports whether a call only waits for the same one, since its questions have been answered on a
// page, or their time is over.
func settled(f *observe.Flow) bool {
	if !f.Detached || f.Late {
		return f.Late
	}
	return len(f.Questions) > 0 && !slices.ContainsFunc(f.Questions, func(q observe.Open) bool { return !q.Answered })
}

// ofSettled says what becomes of such a call.
func ofSettled(f *observe.Flow, now time.Time) diagnosis {
	what := "Its question was answered, and the server gets the answer"
	if f.Late {
		what = "Nobody answered its question in time (timeouts.server-request), and the server is told so"
	}
	return diagnosis{Who: "client", Text: fmt.Sprintf("%s when the client makes the same call again, which it may until %s, in %s (timeouts.flow). No request waits for the call now.", what, hour(f.Deadline), Span(f.Deadline.Sub(now))),
		Do: "Nothing is wrong, unless the client was never told to make the call again: until then it takes one of the places of limits.flows"}
}

// ofQuestion says who has a question, and whether to expect an answer.
func ofQuestion(f *observe.Flow, now time.Time) diagnosis {
	waited := now.Sub(f.Since)
	for _, q := range f.Questions {
		if !q.Asked || q.Answered {
			continue
		}
		asked := fmt.Sprintf("asked %s %s ago", wordsOf(q.Kind).asked, Span(waited))
		switch {
		case !q.Proven && waited >= muteClient:
			return diagnosis{Who: "client", Grave: true, Weight: muted, Brief: "the client answers no question", Text: fmt.Sprintf("The client was %s and has never answered such a question, although it declared that it can: "+
				"it probably shows nothing. It may answer %s; then %s, and for a while it is not asked any more.", asked, until(f, now), silence(q.Kind)),
				Do: "See whether the client shows a question; " + wordsOf(q.Kind).instead}
		case !q.Kind.AsksPerson():
			return diagnosis{Who: "client", Text: fmt.Sprintf("Waits for the client's %s, %s; it may answer %s.", wordsOf(q.Kind).answers, asked, until(f, now)), Do: "Look at the client if it takes long; " + wordsOf(q.Kind).instead}
		}
		d := diagnosis{Who: "person", Text: fmt.Sprintf("Waits for a person, who was %s and may answer %s. This client has answered questions before.", asked, until(f, now)),
			Do: "Nothing is wrong: the question is on somebody's screen; timeouts.server-request says how long they have"}
		if !q.Proven {
			d.Text = fmt.Sprintf("Waits for a person, who was %s and may answer %s. This client has not answered a question yet: it may show nothing.", asked, until(f, now))
			d.Do = "See whether the client shows a question"
		}
		return d
	}
	return diagnosis{Who: "client", Text: fmt.Sprintf("Waits for the client, for %s.", Span(waited)), Do: "Look at the client if it takes long"}
}

// silence says what becomes of a call whose client has not answered in time.
func silence(k observe.Kind) string {
	if k.AsksPerson() {
		return "the server gets a cancel in its place"
	}
	return "the call fails"
}

// until says when the wait of a question ends.
func until(f *observe.Flow, now time.Time) string {
	at, setting := bound(f)
	return fmt.Sprintf("until %s, in %s (%s)", hour(at), Span(at.Sub(now)), setting)
}

// bound is when a wait ends the call, and the setting that says so.
func bound(f *observe.Flow) (at time.Time, setting string) {
	switch {
	case f.Waits == observe.ForTime, f.Waits == observe.ForTask, f.Waits == observe.ForClient && settled(f), f.Until.IsZero(), !f.Deadline.IsZero() && f.Deadline.Before(f.Until):
		return f.Deadline, "timeouts.flow"
	case f.Waits == observe.ForClient:
		return f.Until, "timeouts.server-request"
	}
	return f.Until, "timeouts.round"
}

// hour is a time of day, with the zone that it is of.
func hour(t time.Time) string { return t.Format("15:04:05 MST") }

// kindWords says what a client was asked to do or for, what of the client answers where no person
// does, and who could answer in its place.
type kindWords struct{ asked, answers, instead string }

const onAPage = "a person can answer on a page instead (set questions to page in the bridge's configuration; it helps the next calls, not this one)"

// instead is who can answer in a client's place.
const instead = "in the bridge's configuration set questions to page for forms, sampling.provider for samples, roots for roots; it helps the next calls only"

var wordsByKind = [observe.Kinds]kindWords{
	observe.Form:     {"to fill in a form", "", onAPage},
	observe.URL:      {"to visit a page", "", onAPage},
	observe.Sampling: {"for a sample of its model", "model", "a model of yours can answer instead (sampling.provider)"},
	observe.Roots:    {"for its roots", "list of roots", "the configuration can answer instead (roots)"},
}

func wordsOf(k observe.Kind) kindWords {
	if k < observe.Kinds {
		return wordsByKind[k]
	}
	return kindWords{"for something that the bridge has no word for", "answer", "nobody can answer instead"}
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
	best := diagnosis{Who: "none", Text: "Nothing is under way."}
	for _, f := range s.Flows {
		if best.Who == "none" || f.Diagnosis.worse(&best) {
			best = f.Diagnosis
		}
	}
	if best.Who != "none" {
		return best
	}
	for _, st := range s.Streams {
		if st.Ended && st.Missing > 0 && !st.Attached {
			return diagnosis{Who: "client", Grave: true, Text: fmt.Sprintf("A call was answered, and nobody fetched the answer: stream %d holds %s that reached no connection. "+
				"It is kept for a while (timeouts.retention).", st.ID, observe.Plural(st.Missing, "event")),
				Do: "Look between client and bridge, such as at a proxy; the client can fetch it with Last-Event-ID"}
		}
	}
	if len(s.Distrusted) > 0 {
		return diagnosis{Who: "client", Grave: true, Text: "Not asked for " + strings.Join(s.Distrusted, ", ") + " any more: the client declared it and did not serve it.",
			Do: "Mend or update the client; others can answer in its place: " + instead}
	}
	return best
}

// Span words a time for people.
func Span(d time.Duration) string {
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

// exact words a stretch of time that is over: below ten seconds to a tenth.
func exact(d time.Duration) string {
	switch {
	case d >= 0 && d < time.Millisecond:
		return "<1 ms"
	case d < time.Second:
		return Span(d)
	case d < 10*time.Second:
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	return Span(d.Round(time.Second))
}

// whom names who is waited for, as timelines have it.
func whom(who string) string {
	switch who {
	case "time":
		return "bridge"
	case "pause":
		return "a pause that the server wanted"
	case "unseen":
		return "before anybody looked"
	}
	return who
}
