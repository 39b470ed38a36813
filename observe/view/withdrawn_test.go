package view

import (
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/observe"
)

// silentCall is a call whose question nobody answered in eight seconds, until the server
// got a cancel.
func silentCall() []observe.Event {
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
	for _, a := range lanes(silentCall(), now.Add(time.Hour), false, nil)[0].Arrows {
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

// TestATimelineBlamesWhoWasWaitedFor: while a question is open and after nobody answered
// it, as the card of the call has it.
func TestATimelineBlamesWhoWasWaitedFor(t *testing.T) {
	before := []observe.Event{{Call: 1, Kind: "question", Out: true, Method: mcp.MethodElicitationCreate, ID: `"b-0`, At: now}, {Kind: "answer", ID: `"b-0`, Status: "result", At: now}}
	for name, tc := range map[string]struct {
		before []observe.Event
		said   verdict
		open   string
		over   string
	}{
		"a person thinks":           {said: verdict{"person", true}, open: "person", over: "person"},
		"one who answered before":   {before: before, open: "person", over: "person"},
		"a client that is mute":     {said: verdict{"client", false}, open: "client", over: "client"},
		"one that turns out to be":  {said: verdict{"person", false}, open: "person", over: "client"},
		"a stream that is lost":     {before: before, said: verdict{"client", true}, open: "client", over: "client"},
		"one that nobody looked at": {open: "person", over: "client"},
	} {
		said := func(string) verdict { return tc.said }
		going := lanes(append(tc.before, silentCall()[:5]...), now.Add(9*time.Second), false, said)[0]
		if got, want := stretches(going), "server 1.0 s, "+tc.open+" 8.0 s"; got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
		ended := lanes(append(tc.before, silentCall()...), now.Add(time.Hour), false, said)[0]
		if got, want := stretches(ended), "server 1.0 s, "+tc.over+" 8.0 s, server 1.0 s"; got != want {
			t.Errorf("%s: after the end %s, want %s", name, got, want)
		}
		if gap := ended.Arrows[4].Gap; gap != tc.over {
			t.Errorf("%s: the messages say %q", name, gap)
		}
	}
}

// TestThePageOfASessionSaysOneThing: its timeline blames whom its card blames, and after the
// end still does.
func TestThePageOfASessionSaysOneThing(t *testing.T) {
	asked := observe.Open{ID: `"b-12345678`, Method: mcp.MethodElicitationCreate, Kind: observe.Form, Asked: true, Proven: true}
	lost := observe.Flow{ID: "f1", Waits: observe.ForClient, Reachable: true, Since: time.Now(), Questions: []observe.Open{asked}}
	sights := []observe.Sight{{ID: "S1", Transport: observe.StreamableHTTP, Streams: []observe.Stream{{ID: 1}}, Conversation: observe.Conversation{Number: 1, Flows: []observe.Flow{lost}}}}
	events := silentCall()[:5]
	v := New(Options{Look: func() []Mount { return []Mount{{Path: "/mcp", Sessions: sights}} },
		Messages: func(uint64) []observe.Event { return events }, Recording: &tape{}})
	_, page := get(v, "/session?mount=/mcp&id=S1")
	if !strings.Contains(page, "The client lost the stream") || strings.Contains(page, `rect class="t-person"`) || !strings.Contains(page, `rect class="t-client"`) {
		t.Error(page)
	}
	sights[0].Flows, events = nil, silentCall()
	if _, page = get(v, "/session?mount=/mcp&id=S1"); !strings.Contains(page, "with the client") || strings.Contains(page, "with the bridge") {
		t.Error(page)
	}
}
