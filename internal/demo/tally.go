package demo

import (
	"encoding/json"
	"time"

	"github.com/mcpbridge/bridge/internal/wirelog"
)

// tally counts what the summary tells.
type tally struct {
	calls     int           // tools/call of the client
	questions int           // server requests that reached the client
	rounds    int           // tools/call that reached the server
	states    int           // request states that the bridge carried
	asking    time.Duration // from a question to its answer
	inside    time.Duration // between a message's arrival at the bridge and what it caused
}

// count reads a tally from the entries of one call. Nothing runs concurrently
// in it, so a message that leaves the bridge was caused by the last that came.
func count(entries []wirelog.Entry) (t tally) {
	var arrived, asked time.Time
	for _, e := range entries {
		var m message
		if len(e.Data) == 0 || json.Unmarshal(e.Data, &m) != nil {
			continue
		}
		if leaves := (e.Hop == wirelog.Upstream) == (e.Kind == wirelog.Request); !leaves {
			arrived = e.At
		} else if !arrived.IsZero() {
			t.inside += e.At.Sub(arrived)
			arrived = time.Time{}
		}
		switch {
		case m.Method == "tools/call" && e.Hop == wirelog.Downstream:
			t.calls++
		case m.Method == "tools/call":
			t.rounds++
			if m.Params.RequestState != nil {
				t.states++
			}
		case m.Method == "elicitation/create":
			t.questions++
			asked = e.At
		case m.Result != nil && e.Hop == wirelog.Downstream && e.Kind == wirelog.Request && !asked.IsZero():
			t.asking += e.At.Sub(asked)
			asked = time.Time{}
		}
	}
	return t
}
