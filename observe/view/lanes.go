package view

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/observe"
	"github.com/mcpbridge/bridge/observe/diff"
	"github.com/mcpbridge/bridge/rawjson"
)

// arrow is one message between the lanes.
type arrow struct {
	observe.Event
	After time.Duration // since the band began
	Text  string
	Right bool   // it points to the server
	Up    bool   // it is of the hop to the server
	Gap   string // who was waited for before it; "" after no time worth telling
	Gone  time.Duration
	translation
}

// translation is what became of a message on its way through the bridge.
type translation struct {
	From    string // the message that it was; "" where there is nothing to compare
	Changes []diff.Change
	More    int         // changes that are not listed
	Why     string      // in place of changes: what else the bridge did
	Rules   []diff.Rule // by which
	// Before is the message that it was, as it may be seen; "" where payloads are hidden.
	Before string
	// Payload is the message as it may be seen; "" where payloads are hidden.
	Payload string
}

// Same reports that the message passed as it was.
func (t *translation) Same() bool { return t.From != "" && len(t.Changes) == 0 }

// band ties a call's request to its rounds.
type band struct {
	Call   uint64
	Method string
	Name   string // of the tool or prompt
	Late   bool   // nobody looked when it began
	Began  time.Time
	State  string // how it ended; "" while it goes on
	Took   time.Duration
	Failed bool
	Arrows []arrow
	Spent  []spent
}

// lanes orders the events of a session into calls, newest first, as they stand now.
func lanes(events []observe.Event, now time.Time, payloads bool) []*band {
	var bands []*band
	calls := map[uint64]*band{}
	asked := map[string]*observe.Event{} // by the question's id
	for i := range events {
		e := events[i]
		if e.Kind == "question" {
			asked[e.ID] = &events[i]
		}
		if q := asked[e.ID]; e.Kind == "answer" && q != nil {
			e.Call, e.Method = q.Call, q.Method
		}
		b := calls[e.Call]
		if b == nil || e.Call == 0 {
			b = &band{Call: e.Call, Method: e.Method, Name: e.Name, Began: e.At}
			bands = append(bands, b)
			calls[e.Call] = b
		}
		b.add(e)
	}
	for _, b := range bands {
		b.translate(payloads)
		b.spend(now)
	}
	for i, j := 0, len(bands)-1; i < j; i, j = i+1, j-1 {
		bands[i], bands[j] = bands[j], bands[i]
	}
	return bands
}

// noticeable is how long a wait must be to be shown.
const noticeable = 100 * time.Millisecond

func (b *band) add(e observe.Event) {
	a := arrow{Event: e, After: e.At.Sub(b.Began), Up: e.Hop == observe.Upstream}
	a.Right = a.Up == e.Out // from the client, or to the server
	a.Text = describe(&e)
	if n := len(b.Arrows); n > 0 {
		if gone := e.At.Sub(b.Arrows[n-1].At); gone >= noticeable {
			a.Gap, a.Gone = waitedFor(&b.Arrows[n-1].Event, &e), gone
		}
	}
	b.Late = b.Late || e.Kind == begun
	if last(&e) {
		b.State, b.Took, b.Failed = e.Status, e.Took, e.Kind == "error"
	}
	b.Arrows = append(b.Arrows, a)
}

// last reports whether a message is the last word to a client.
func last(e *observe.Event) bool {
	return e.Hop == observe.Downstream && e.Out && (e.Kind == "response" || e.Kind == "error" || e.Kind == "end")
}

// begun is the kind of an event that is no message: of a call that somebody began to look
// at after it had begun.
const begun = "begun"

// Begun reports whether it is no message.
func (a *arrow) Begun() bool { return a.Kind == begun }

// Title names what was called.
func (b *band) Title() string {
	switch {
	case b.Name != "":
		return b.Name
	case b.Method != "":
		return b.Method
	}
	return "answer"
}

// whoAnswers says who has a question of this method.
func whoAnswers(method string) string {
	if kind, _ := mcp.InputKindOf(method); kind.AsksPerson() {
		return "person"
	}
	return "client"
}

// waitedFor says who took the time before a message, by the one before it.
func waitedFor(before, e *observe.Event) string {
	switch {
	case before.Kind == begun:
		return "unseen"
	case e.Hop == observe.Upstream && e.Out && before.Hop == observe.Upstream && !before.Out,
		before.Hop == observe.Upstream && before.Status == observe.InputRequired.String() && last(e):
		return pausedBy(before)
	case e.Kind == "answer":
		return whoAnswers(e.Method)
	case e.Hop == observe.Upstream && !e.Out:
		return "server"
	case e.Hop == observe.Downstream && !e.Out:
		return "client"
	}
	return "time"
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
		note(waitedFor(&b.Arrows[i].Event, &b.Arrows[i+1].Event), b.Arrows[i+1].At.Sub(b.Arrows[i].At), false)
	}
	if b.State == "" && now.After(end) {
		note(b.waitsFor(), now.Sub(end), true)
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

// waitsFor says for whom a call waits that goes on, by its last message that wants
// something.
func (b *band) waitsFor() string {
	for i := len(b.Arrows) - 1; i >= 0; i-- {
		switch e := &b.Arrows[i]; {
		case e.Kind == "question":
			return whoAnswers(e.Method)
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

// describe words a message.
func describe(e *observe.Event) string {
	name := e.Method
	switch e.Kind {
	case "question":
		name = "question: " + e.Method
	case "answer":
		name = "answer (" + e.Status + ")"
	case "response":
		name = e.Status
	case "error":
		name = "error " + e.Status
	case "end":
		name = e.Status
	case begun:
		name = "began before anybody looked"
	case "request":
		if e.Round > 0 {
			name = fmt.Sprintf("round %d: %s", e.Round, e.Method)
		}
	}
	return name
}

// maxBody bounds a message on a page, in bytes.
const maxBody = 16 << 10

// pretty writes a message for people.
func pretty(body []byte) string {
	var text bytes.Buffer
	if len(body) == 0 || json.Indent(&text, body, "", "  ") != nil {
		return ""
	}
	if text.Len() > maxBody {
		return string(bytes.ToValidUTF8(text.Bytes()[:maxBody], nil)) + "\n… (" + fmt.Sprint(text.Len()) + " bytes)"
	}
	return text.String()
}
