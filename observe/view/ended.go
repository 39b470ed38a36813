package view

import (
	"net/http"
	"time"

	"github.com/mcpbridge/bridge/observe"
)

// ended is a call that has ended, with what is said of it.
type ended struct {
	observe.Ended
	Diagnosis diagnosis
	Ago       time.Duration
	Live      bool // its session is still there
}

// Title names what was called.
func (e *ended) Title() string {
	if e.Name == "" {
		return e.Method
	}
	return e.Name
}

// ended lists calls that have ended.
func (v *View) ended(w http.ResponseWriter, r *http.Request) {
	all := r.URL.Query().Get("of") == "all"
	found := v.endsOf(mostRows, func(e *observe.Ended) bool { return all || e.Unusual() })
	v.show(w, r, "ended", "Ended calls", map[string]any{"Ends": found, "All": all})
}

// endsOf returns the calls that ended last and are wanted.
func (v *View) endsOf(most int, wanted func(*observe.Ended) bool) (found []*ended) {
	if v.opt.Ends == nil {
		return nil
	}
	now := time.Now()
	open := map[[2]string]bool{}
	for _, m := range v.opt.Look() {
		for _, s := range m.Sessions {
			open[[2]string{m.Path, s.ID}] = true
		}
	}
	for _, e := range v.opt.Ends(most, wanted) {
		found = append(found, &ended{Ended: e, Diagnosis: ofEnd(&e), Ago: now.Sub(e.At), Live: open[[2]string{e.Mount, e.Session}]})
	}
	return found
}

// ofEnd says why a call ended as it did.
func ofEnd(e *observe.Ended) diagnosis {
	if !e.Unusual() {
		return diagnosis{"none", "Answered with a result.", false}
	}
	if e.End == observe.Complete {
		return diagnosis{"server", "The tool answered that it failed (isError). To the bridge that is a result.", false}
	}
	if d, known := endings[e.Cause]; known {
		return d
	}
	switch e.End {
	case observe.Cancelled:
		return diagnosis{"client", "The client cancelled it.", false}
	case observe.Expired:
		return diagnosis{"time", "A time limit passed: " + e.Cause + ".", true}
	case observe.Evicted:
		return diagnosis{"client", "It made way for another call of its session: " + e.Cause + ".", true}
	}
	return diagnosis{"server", "The server gave no usable answer: " + e.Cause + ".", true}
}

// endings are the causes that have a sentence of their own.
var endings = map[string]diagnosis{
	"client":         {"client", "The client cancelled it.", false},
	"operator":       {"operator", "Somebody ended it in this view.", false},
	"shutdown":       {"bridge", "The bridge stopped.", false},
	"refused":        {"client", "The bridge refused it: it is not offered, or its parameters are wrong. The client has the reason in its error.", false},
	"server_error":   {"server", "The server answered with an error, which the client got.", true},
	"not_declared":   {"client", "The server wanted to ask something that the client did not declare that it can be asked, so it was not asked.", true},
	"no_answer":      {"client", "The client gave no usable answer to a question without which the call cannot go on.", true},
	"violation":      {"server", "The server broke a rule of the protocol; the log names it.", true},
	"timeouts.round": {"server", "The server was silent for too long (timeouts.round): no answer, no progress.", true},
	"timeouts.flow":  {"time", "The whole call took longer than a call may (timeouts.flow).", true},
	"timeouts.grace": {"client", "The client had gone and had no way back to the answer (timeouts.grace).", true},
	"limits.flows":   {"client", "Too many calls of its session waited (limits.flows); the oldest gave way.", true},
	"limit":          {"server", "It reached a limit of the bridge, such as rounds (limits.rounds, limits.state-only-rounds); the client's error names it.", true},
	"internal":       {"bridge", "The bridge itself failed; the log has more.", true},
	"lost":           {"server", "The connection to the server broke before its answer came.", true},
	"unauthorized":   {"client", "The server wants other credentials; the client was told.", true},
}
