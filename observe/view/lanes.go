package view

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"github.com/mcpbridge/bridge/observe"
	"github.com/mcpbridge/bridge/observe/diff"
)

// arrow is one message between the lanes.
type arrow struct {
	observe.Event
	After time.Duration // since the band began
	Text  string
	Right bool   // it points to the server
	Up    bool   // it is of the hop to the server
	Who   string // was waited for since the one before; "" of the first
	Gap   string // the same where the time is worth telling; else ""
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
	Waits  string // for whom it waits; "" after its end
	Spent  []spent
}

// lanes orders the events of a session into calls, newest first, as they stand now. said
// tells what was said of a question while it was open; nil: nothing.
func lanes(events []observe.Event, now time.Time, payloads bool, said func(question string) verdict) []*band {
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
	past := newPast(events, said)
	for _, b := range bands {
		b.translate(payloads)
		b.blame(past)
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
