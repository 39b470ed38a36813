package view

import (
	"fmt"
	"time"

	"github.com/mcpbridge/bridge/observe"
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
}

// band ties a call's request to its rounds.
type band struct {
	Call   uint64
	Method string
	Began  time.Time
	State  string // how it ended; "" while it goes on
	Took   time.Duration
	Arrows []arrow
}

// lanes orders the events of a session into calls, newest first.
func lanes(events []observe.Event) []*band {
	var bands []*band
	calls := map[uint64]*band{}
	asked := map[string]uint64{} // by the question's id
	for _, e := range events {
		if e.Kind == "question" {
			asked[e.ID] = e.Call
		}
		if e.Kind == "answer" {
			e.Call = asked[e.ID]
		}
		b := calls[e.Call]
		if b == nil || e.Call == 0 {
			b = &band{Call: e.Call, Method: e.Method, Began: e.At}
			bands = append(bands, b)
			calls[e.Call] = b
		}
		b.add(e)
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
			a.Gap, a.Gone = waitedFor(&e), gone
		}
	}
	if !a.Up && e.Out && (e.Kind == "response" || e.Kind == "error" || e.Kind == "end") {
		b.State, b.Took = e.Status, e.Took
	}
	b.Arrows = append(b.Arrows, a)
}

// waitedFor says who took the time before a message.
func waitedFor(e *observe.Event) string {
	switch {
	case e.Kind == "answer":
		return "person"
	case e.Hop == observe.Upstream && !e.Out:
		return "server"
	case e.Hop == observe.Downstream && !e.Out:
		return "client"
	}
	return "time"
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
	case "request":
		if e.Round > 0 {
			name = fmt.Sprintf("round %d: %s", e.Round, e.Method)
		}
	}
	return name
}
