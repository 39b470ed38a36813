package view

import (
	"slices"
	"time"

	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/observe"
	"github.com/mcpbridge/bridge/rawjson"
)

// blaming is a walk through a call's messages: it knows at each who has been waited for
// since the one before.
type blaming struct {
	band   *band
	past   *past
	before *observe.Event
	open   []*observe.Event // questions that wait for an answer
	asked  *observe.Event   // the server's answer that wants something of whom the bridge asks in place of the client; nil: none
}

// past is what a session's messages say of its questions.
type past struct {
	said     func(question string) verdict // what was said of one while it was open; nil: nothing
	answered map[string]bool               // questions by id
	served   map[string]bool               // methods of those
}

func newPast(events []observe.Event, said func(string) verdict) *past {
	p := &past{said: said, answered: map[string]bool{}, served: map[string]bool{}}
	methods := map[string]string{}
	for i := range events {
		switch e := &events[i]; {
		case e.Kind == "question":
			methods[e.ID] = e.Method
		case e.Kind == "answer" && methods[e.ID] != "":
			p.answered[e.ID], p.served[methods[e.ID]] = true, true
		}
	}
	return p
}

// blame says before each message who was waited for.
func (b *band) blame(p *past) {
	w := &blaming{band: b, past: p}
	for i := range b.Arrows {
		a := &b.Arrows[i]
		if w.before != nil {
			a.Who = w.waitedFor(&a.Event)
			if gone := a.At.Sub(w.before.At); gone >= noticeable {
				a.Gap, a.Gone = a.Who, gone
			}
		}
		if last(&a.Event) && a.Kind == "response" && w.waitsOn() {
			b.State, a.Text = calledAgain, calledAgain
		}
		w.pass(a)
	}
	if len(b.Arrows) > 0 && b.State == "" {
		b.Waits = w.waitsFor()
	}
}

// calledAgain is how a call ended that was answered while its question was open, with the link to it or without: the
// client is to make the same call again.
const calledAgain = "told to call again"

// waitsOn reports whether somebody has yet to answer what the server asked.
func (w *blaming) waitsOn() bool {
	if len(w.open) > 0 {
		return true
	}
	if w.asked == nil {
		return false
	}
	who := pausedBy(w.asked)
	return who == "person" || who == "model"
}

// pass notes which questions are open after a message.
func (w *blaming) pass(a *arrow) {
	w.before = &a.Event
	switch {
	case a.Kind == "question":
		w.open, w.asked = append(w.open, &a.Event), nil
	case a.Kind == "answer":
		w.open = slices.DeleteFunc(w.open, func(q *observe.Event) bool { return q.ID == a.ID })
	case last(&a.Event), !a.Up && a.Out && a.Method == mcp.NotificationCancelled, a.Up && a.Kind == "request" && a.Method == w.band.Method:
		w.open, w.asked = nil, nil // they were taken back, all at once
	case a.Up && !a.Out && a.Status == observe.InputRequired.String():
		w.asked = &a.Event
	}
}

// waitedFor says who took the time before a message.
func (w *blaming) waitedFor(e *observe.Event) string {
	switch before := w.before; {
	case before.Kind == begun:
		return "unseen"
	case len(w.open) > 0:
		return w.whoHas(w.open[0])
	case e.Hop == observe.Upstream && e.Out && before.Hop == observe.Upstream && !before.Out:
		return pausedBy(before)
	case w.asked != nil && e.Kind != "question": // what tells the client of a page passes in between
		return pausedBy(w.asked)
	case e.Kind == "answer":
		return whoAnswers(e.Method)
	case e.Hop == observe.Upstream && !e.Out:
		return "server"
	case e.Hop == observe.Downstream && !e.Out:
		return "client"
	}
	return "time"
}

// whoHas says who has a question, as a diagnosis does: a person only if the client showed
// it, of which a question that nobody answered in time is no sign.
func (w *blaming) whoHas(q *observe.Event) string {
	who := whoAnswers(q.Method)
	if w.past.answered[q.ID] {
		return who
	}
	said := verdict{}
	if w.past.said != nil {
		said = w.past.said(q.ID)
	}
	switch {
	case said.who != "" && (w.band.State == "" || said.proven):
		return said.who
	case w.band.State != "" && w.band.State != cancelled && !w.past.served[q.Method]:
		return "client"
	}
	return who
}

// cancelled is how a call ended that its client gave up: nobody had to answer any more.
const cancelled = "cancelled"

// whoAnswers says who has a question of this method.
func whoAnswers(method string) string {
	if kind, _ := mcp.InputKindOf(method); kind.AsksPerson() {
		return "person"
	}
	return "client"
}

// pausedBy says for whom the bridge waits between two requests to the server: the one that
// has just answered, most often because it wanted so, or whoever is asked in place of the
// client.
func pausedBy(answer *observe.Event) string {
	for _, asked := range rawjson.Members(rawjson.Get(rawjson.Get(answer.Body, "result"), "inputRequests")) {
		if method, _ := rawjson.Text(rawjson.Get(asked, "method")); method == mcp.MethodSamplingCreateMessage {
			return "model"
		}
		return "person"
	}
	if answer.Status == observe.Task.String() || answer.Method == mcp.MethodTasksGet {
		return "server" // it works on the task
	}
	return "pause"
}

// waitsFor says for whom a call waits that goes on: by an open question, else by its last
// message that wants something.
func (w *blaming) waitsFor() string {
	if len(w.open) > 0 {
		return w.whoHas(w.open[0])
	}
	for i := len(w.band.Arrows) - 1; i >= 0; i-- {
		switch e := &w.band.Arrows[i]; {
		case e.Up && e.Out:
			return "server"
		case e.Up && (e.Kind == "response" || e.Kind == "error"):
			return pausedBy(&e.Event)
		case e.Kind == "answer":
			return "time"
		case e.Kind == begun && e.Status == observe.ForTime.String():
			return "pause"
		case e.Kind == begun && e.Status == observe.ForClient.String():
			return "person" // on a page: of other questions there would be one
		}
	}
	return "server"
}

// spent is a stretch of a call's time.
type spent struct {
	Who   string // as of a diagnosis
	For   time.Duration
	X, W  int // in thousandths of the whole
	Going bool
}

// spend divides the time of a call by who was waited for.
func (b *band) spend(now time.Time) {
	if b.Call == 0 || len(b.Arrows) < 2 && b.State != "" {
		return
	}
	end := b.Arrows[len(b.Arrows)-1].At
	note := func(who string, d time.Duration, going bool) {
		if d < time.Millisecond { // not worth a word
			return
		}
		if n := len(b.Spent); n > 0 && b.Spent[n-1].Who == who {
			b.Spent[n-1].For += d
			b.Spent[n-1].Going = going
			return
		}
		b.Spent = append(b.Spent, spent{Who: who, For: d, Going: going})
	}
	for i := range b.Arrows[1:] {
		note(b.Arrows[i+1].Who, b.Arrows[i+1].At.Sub(b.Arrows[i].At), false)
	}
	if b.State == "" && now.After(end) {
		note(b.Waits, now.Sub(end), true)
		end = now
	}
	whole, at := max(1, end.Sub(b.Began)), time.Duration(0)
	for i := range b.Spent {
		s := &b.Spent[i]
		s.X = int(1000 * at / whole)
		at += s.For
		s.W = max(3, int(1000*at/whole)-s.X)
	}
}
