package view

import (
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/observe"
)

// client is a session of a named client with some calls.
func client(name string, flows ...observe.Flow) *session {
	return newSession("/mcp", observe.Sight{ID: "id-" + name, Began: now, Conversation: observe.Conversation{Version: mcp.V20250618,
		ClientInfo: []byte(`{"name":"` + name + `"}`), Flows: flows}}, now)
}

// TestTheWorstVerdictIsNamedFirst: of calls that have waited equally long.
func TestTheWorstVerdictIsNamedFirst(t *testing.T) {
	person := client("thinks", ago(time.Minute, observe.ForClient, asked(observe.Form, true)))
	longer := client("thinks-longer", ago(time.Hour, observe.ForClient, asked(observe.Form, true)))
	mute := client("mute", ago(time.Minute, observe.ForClient, asked(observe.Form, false)))
	silentOne := client("waits", ago(time.Minute, observe.ForServer))
	circle := ago(time.Minute, observe.ForTime)
	circle.StateOnly = 4
	round := client("circles", circle)
	gone := ago(time.Minute, observe.ForServer)
	gone.Reachable = false
	busy := client("busy", ago(time.Second, observe.ForServer))
	for _, tc := range []struct {
		all   []*session
		first string
		grave bool
	}{
		{[]*session{person, round, client("gone", gone), mute, silentOne}, "first book of waits: the server is silent", true},
		{[]*session{person, round, client("gone", gone), mute}, "first book of mute: the client answers no question", true},
		{[]*session{person, round, client("gone", gone)}, "first book of gone: the client has gone", true},
		{[]*session{longer, round}, "first book of circles: the server goes in circles", true},
		{[]*session{longer, busy}, "the longest wait is 1 s, of book of busy", false},
		{[]*session{person, longer}, "the longest wait is 60 min, of book of thinks-longer", false},
	} {
		got := ofMount(&Mount{Ready: true}, tc.all)
		if !strings.Contains(got.Text, tc.first) || got.Grave != tc.grave {
			t.Errorf("%q is not in %+v", tc.first, got)
		}
		all := flows([]mountSaid{{All: tc.all}})
		if who := all[0].Session.Client; !strings.Contains(got.Text, "of "+who) {
			t.Errorf("the list begins with %s, the sentence is %q", who, got.Text)
		}
	}
}

// TestASessionToLookAtHasANameAndALink: also one without a call under way.
func TestASessionToLookAtHasANameAndALink(t *testing.T) {
	lost := observe.Sight{ID: "S9", Began: now, Streams: []observe.Stream{{ID: 3, Ended: true, Missing: 2}}, Conversation: observe.Conversation{ClientInfo: []byte(`{"name":"went-away"}`)}}
	v := New(Options{Look: func() []Mount { return []Mount{{Path: "/mcp", Ready: true, Sessions: []observe.Sight{lost}}} }, Recording: &tape{}})
	_, body := get(v, "/")
	for _, want := range []string{"never got or never answered: went-away.", `<a href="/session?mount=%2fmcp&amp;id=S9">went-away, session S9</a>`} {
		if !strings.Contains(body, want) {
			t.Errorf("%q is not in %s", want, body)
		}
	}
}

// TestProgramsReadWhatIsNotOffered: in the sentence on the mount, once.
func TestProgramsReadWhatIsNotOffered(t *testing.T) {
	hidden := New(Options{Look: func() []Mount { return []Mount{{Ready: true, Omissions: make([]observe.Omission, 2)}} }, Recording: &tape{}})
	if why := hidden.State().Mounts[0].Why; !strings.Contains(why, "2 entries of the server's lists not shown") {
		t.Error(why)
	}
}
