package view

import (
	"fmt"
	"net/http"
	"time"

	"github.com/mcpbridge/bridge/observe"
)

// ended is a call that has ended, with what is said of it.
type ended struct {
	observe.Ended
	Diagnosis diagnosis
	Ago       time.Duration
	Live      bool   // its session is still there
	Client    string // of a session that is still there
}

// fresh is for how long a failure calls for a look.
const fresh = 5 * time.Minute

// Fresh reports whether a call ended not long ago.
func (e *ended) Fresh() bool { return e.Ago < fresh }

// mostFailed bounds the failures on the overview.
const mostFailed = 3

// Title names what was called.
func (e *ended) Title() string {
	if e.Name == "" {
		return e.Method
	}
	return e.Name
}

// unanswered is how a call ended that was answered although somebody did not answer.
const unanswered = "unanswered"

// State is how it ended, in a word.
func (e *ended) State() string {
	if e.End == observe.Complete && e.Silences > 0 {
		return unanswered
	}
	return e.End.String()
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
	open, left := map[[2]string]string{}, map[string][]observe.Omission{}
	for _, m := range v.opt.Look() {
		left[m.Path] = m.Omissions
		for _, s := range m.Sessions {
			open[[2]string{m.Path, s.ID}] = clientName(s.ClientInfo)
		}
	}
	for _, e := range v.opt.Ends(most, wanted) {
		client, live := open[[2]string{e.Mount, e.Session}]
		d := ofEnd(&e, left[e.Mount])
		if said := v.said.get(callKey(e.Mount, e.Session, e.ID)); e.End == observe.Complete && e.Silences > 0 && said.proven {
			d.Who = said.who
		}
		found = append(found, &ended{Ended: e, Diagnosis: d, Ago: now.Sub(e.At), Live: live, Client: client})
	}
	return found
}

// ofEnd says why a call ended as it did. left has what is not shown of the server's lists.
func ofEnd(e *observe.Ended, left []observe.Omission) diagnosis {
	if !e.Unusual() {
		return diagnosis{Who: "none", Text: "Answered with a result."}
	}
	if e.End == observe.Complete && e.Silences > 0 {
		return ofSilence(e)
	}
	if e.End == observe.Complete {
		return diagnosis{Who: "server", Text: "The tool answered that it failed (isError). To the bridge that is a result.", Do: "Look at the tool in the server; the client has its words"}
	}
	for _, o := range left {
		if e.Name != "" && e.Name == o.Name && (e.Cause == "refused" || e.Cause == "server_error") {
			return ofOmission(e.Mount, &o)
		}
	}
	if d, known := endings[e.Cause]; known {
		return d
	}
	switch e.End {
	case observe.Cancelled:
		return diagnosis{Who: "client", Text: "The client cancelled it.", Do: "Nothing, unless clients do so often: then they wait less long than the server needs"}
	case observe.Expired:
		return diagnosis{Who: "time", Text: "A time limit passed.", Grave: true, Do: "See what it waited for, and raise " + e.Cause + " if that may take longer"}
	case observe.Evicted:
		return diagnosis{Who: "client", Text: "It made way for another call of its session.", Grave: true, Do: "See why so many calls wait, and raise " + e.Cause + " if they may"}
	}
	return diagnosis{Who: "server", Text: "The server gave no usable answer: " + e.Cause + ".", Grave: true, Do: "Look at the server, and the way there; the log says more", Link: "/server"}
}

// ofSilence says of a call that it was answered although somebody did not answer.
func ofSilence(e *observe.Ended) diagnosis {
	what, then := "a question of the server for "+Span(e.Silence), "answered the call with a result"
	if e.Silences > 1 {
		what = fmt.Sprintf("%d questions of the server, each for %s", e.Silences, Span(e.Silence))
	}
	if e.ToolError {
		then = "said that the tool failed (isError)"
	}
	return diagnosis{Who: "client", Text: "Nobody answered " + what + " (timeouts.server-request). The server got a cancel in its place, and then " + then + ".",
		Do: "See whether the client shows questions, and keeps the stream on which they come; if people need longer, raise timeouts.server-request"}
}

// endings are the causes that have a sentence of their own.
var endings = map[string]diagnosis{
	"client":   {Who: "client", Text: "The client cancelled it.", Do: "Nothing, unless clients do so often: then they wait less long than the server needs"},
	"operator": {Who: "operator", Text: "Who runs the bridge ended it, or its session.", Do: "Nothing: the client has an error that says so"},
	"session":  {Who: "client", Text: "Its session was ended at another replica, or by who runs the bridges (bridge sessions end).", Do: "Nothing: the client has an error that says so"},
	"shutdown": {Who: "bridge", Text: "The bridge stopped.", Do: "With a store (store) calls that wait outlive a restart"},
	"refused": {Who: "client", Text: "The bridge refused it: it is not offered, or its parameters are wrong.",
		Do: "Look at the client, which has the reason in its error, and at what clients of its revision get", Link: "/server"},
	"task":         {Who: "server", Text: "It waited for a task of its client, which ended in an error. The call of the task has an end of its own, with the reason.", Do: "See how the tools/call of the task ended"},
	"server_error": {Who: "server", Text: "The server answered with an error, which the client got.", Grave: true, Do: "Look at the server, or at what the client asked for", Link: "/server"},
	"not_declared": {Who: "client", Text: "The server wanted to ask something that the client did not declare that it can be asked, so it was not asked.", Grave: true,
		Do: "Others can answer in the client's place: " + instead},
	"no_answer": {Who: "client", Text: "The client gave no usable answer to a question without which the call cannot go on.", Grave: true,
		Do: "See whether the client shows questions; others can answer in its place: " + instead},
	"violation":      {Who: "server", Text: "The server broke a rule of the protocol; the log names it. The fault is the server's.", Grave: true, Do: "Mend the server; bridge check says what else it does", Link: "/server"},
	"timeouts.round": {Who: "server", Text: "The server was silent for too long: no answer, no progress.", Grave: true, Do: "Look at the server; if the tool needs longer, have it tell of progress, or raise timeouts.round", Link: "/server"},
	"timeouts.flow":  {Who: "time", Text: "The whole call took longer than a call may.", Grave: true, Do: "See what it waited for, and raise timeouts.flow if that may take longer"},
	"timeouts.grace": {Who: "client", Text: "The client had gone and had no way back to the answer.", Grave: true, Do: "See why the client, or a proxy before it, closed the connection; timeouts.grace is how long it is waited for"},
	"limits.flows":   {Who: "client", Text: "Too many calls of its session waited; the oldest gave way.", Grave: true, Do: "See why so many calls wait, and raise limits.flows if they may"},
	"limits.rounds": {Who: "server", Text: "The server wanted more rounds than a call may have.", Grave: true,
		Do: "Look at the server: it asks again and again; raise limits.rounds if the tool needs more rounds", Link: "/server"},
	"limits.state-only-rounds": {Who: "server", Text: "The server went in circles: it asked nothing, and wanted to be called again too often. The fault is the server's.", Grave: true,
		Do: "Look at the server: it answers input_required without inputRequests; raise limits.state-only-rounds if the tool needs to be called again more often", Link: "/server"},
	"store.size": {Who: "client", Text: "Too much of its client, or of all, was kept in the store, so its question was not asked.", Grave: true,
		Do: "See what waits there (bridge sessions), and raise store.size if there is room"},
	"limit":        {Who: "server", Text: "A task of the server asked for more than one may.", Grave: true, Do: "Look at the server: it asks again and again", Link: "/server"},
	"internal":     {Who: "bridge", Text: "The bridge itself failed; the log has more.", Grave: true, Do: "Report it, with the lines of the log"},
	"lost":         {Who: "server", Text: "The connection to the server broke before its answer came.", Grave: true, Do: "Look at the server, and at what is before it", Link: "/server"},
	"unauthorized": {Who: "client", Text: "The server wants other credentials; the client was told.", Grave: true, Do: "Sign in again in the client, or look at the credentials that the bridge is configured with"},
}
