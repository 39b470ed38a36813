package view

import (
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/observe"
)

// unanswered is a call whose question nobody answered in eight seconds, until the server
// got a cancel.
func unanswered() []observe.Event {
	at := func(s int) time.Time { return now.Add(time.Duration(s) * time.Second) }
	up := observe.Event{Call: 2, Hop: observe.Upstream, Method: mcp.MethodToolsCall, Name: "book"}
	down := observe.Event{Call: 2, Method: mcp.MethodToolsCall, Name: "book"}
	with := func(e observe.Event, s int, out bool, kind, status string) observe.Event {
		e.At, e.Out, e.Kind, e.Status = at(s), out, kind, status
		return e
	}
	question := with(down, 1, true, "question", "")
	question.Method, question.ID = mcp.MethodElicitationCreate, `"b-12345678`
	alive, back := with(down, 5, true, "notification", ""), with(down, 9, true, "notification", "")
	alive.Method, back.Method = mcp.NotificationProgress, mcp.NotificationCancelled
	return []observe.Event{
		with(down, 0, false, "request", ""), with(up, 0, true, "request", ""), with(up, 1, false, "response", "input_required"),
		question, alive, back, with(up, 9, true, "request", ""), with(up, 10, false, "response", "complete"), with(down, 10, true, "response", "complete"),
	}
}

// TestACancelCitesWhatExplainsIt: late answers count for nothing, which has nothing to do
// with keeping clients awake.
func TestACancelCitesWhatExplainsIt(t *testing.T) {
	for _, a := range lanes(unanswered(), now.Add(time.Hour), false)[0].Arrows {
		if a.Method != mcp.NotificationCancelled {
			continue
		}
		if len(a.Rules) != 1 || a.Rules[0].ID != "C.9" || a.Why == "" {
			t.Errorf("%q by %+v", a.Why, a.Rules)
		}
	}
}

// TestWhatTheServerIsNoLongerToldHasAReason: on the page of the session.
func TestWhatTheServerIsNoLongerToldHasAReason(t *testing.T) {
	sight := observe.Sight{ID: "S1", Conversation: observe.Conversation{Declared: []byte(`{"elicitation":{}}`), Effective: []byte(`{}`), Distrusted: []string{"elicitation"}}}
	v := New(Options{Look: func() []Mount { return []Mount{{Path: "/mcp", Sessions: []observe.Sight{sight}}} },
		Messages: func(uint64) []observe.Event { return nil }, Recording: &tape{}})
	if _, page := get(v, "/session?mount=/mcp&id=S1"); !strings.Contains(page, "none; no longer of elicitation, which the client declared and did not serve") {
		t.Error(page)
	}
}
