package view

import (
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/observe"
)

// stretches are the stretches of a call's time.
func stretches(b *band) string {
	var parts []string
	for _, s := range b.Spent {
		parts = append(parts, s.Who+" "+exact(s.For))
	}
	return strings.Join(parts, ", ")
}

// TestWhoATimelineBlames: a pause that the server wanted is not the bridge's, a task is
// the server's, and what passed before anybody looked is nobody's.
func TestWhoATimelineBlames(t *testing.T) {
	at := func(s float64) time.Time { return now.Add(time.Duration(s * float64(time.Second))) }
	up := func(s float64, round int) observe.Event {
		return observe.Event{Call: 1, Hop: observe.Upstream, Out: true, Kind: "request", Method: mcp.MethodToolsCall, Round: round, At: at(s)}
	}
	back := func(s float64, status string) observe.Event {
		return observe.Event{Call: 1, Hop: observe.Upstream, Kind: "response", Method: mcp.MethodToolsCall, Status: status, At: at(s)}
	}
	came := observe.Event{Call: 1, Kind: "request", Method: mcp.MethodToolsCall, Name: "book", At: at(0)}
	late := observe.Event{Call: 1, Kind: begun, Method: mcp.MethodToolsCall, Name: "book", Status: "time", Round: 3, At: at(0)}
	for name, tc := range map[string]struct {
		events []observe.Event
		want   string
	}{
		"a circle":                 {[]observe.Event{came, up(0, 1), back(1, "input_required"), up(4, 2), back(4.0002, "input_required")}, "server 1.0 s, pause 9.0 s"},
		"a task":                   {[]observe.Event{came, up(0, 1), back(1, "task"), up(4, 2), back(5, "task")}, "server 10 s"},
		"a call of before":         {[]observe.Event{late, up(6, 4)}, "unseen 6.0 s, server 4.0 s"},
		"one that pauses, silent":  {[]observe.Event{late}, "pause 10 s"},
		"a person, and the bridge": {[]observe.Event{came, up(0, 1), back(1, "input_required"), {Call: 1, Out: true, Kind: "question", Method: mcp.MethodElicitationCreate, ID: "b", At: at(2)}}, "server 1.0 s, time 1.0 s, person 8.0 s"},
	} {
		bands := lanes(tc.events, at(10), false, nil)
		if got := stretches(bands[0]); len(bands) != 1 || got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
		if bands[0].Title() != "book" {
			t.Errorf("%s: titled %q", name, bands[0].Title())
		}
	}
}

// TestThePersonOnAPageHasTheTime: until the client is told to call again, or the server is answered, whatever tells the
// client of the page meanwhile.
func TestThePersonOnAPageHasTheTime(t *testing.T) {
	at := func(s int) time.Time { return now.Add(time.Duration(s) * time.Second) }
	asks := []byte(`{"jsonrpc":"2.0","id":1,"result":{"resultType":"input_required","inputRequests":{"k":{"method":"elicitation/create","params":{}}}}}`)
	up := observe.Event{Call: 1, Hop: observe.Upstream, Out: true, Kind: "request", Method: mcp.MethodToolsCall, Round: 1, At: at(0)}
	back := observe.Event{Call: 1, Hop: observe.Upstream, Kind: "response", Method: mcp.MethodToolsCall, Status: "input_required", Body: asks, At: at(1)}
	told := observe.Event{Call: 1, Out: true, Kind: "notification", Method: mcp.NotificationMessage, At: at(1)}
	done := observe.Event{Call: 1, Out: true, Kind: "response", Method: mcp.MethodToolsCall, Status: "complete", At: at(21)}
	again, answered := up, back
	again.Round, again.At, answered.Status, answered.Body, answered.At = 2, at(20), "complete", nil, at(21)
	for name, tc := range map[string]struct {
		events      []observe.Event
		want, state string
	}{
		"it was told of the page": {[]observe.Event{up, back, told, done}, "server 1.0 s, person 20 s", calledAgain},
		"it was told nothing":     {[]observe.Event{up, back, done}, "server 1.0 s, person 20 s", calledAgain},
		"the person answered":     {[]observe.Event{up, back, told, again, answered, done}, "server 1.0 s, person 19 s, server 1.0 s", "complete"},
		"its own question is open": {[]observe.Event{up, back, {Call: 1, Out: true, Kind: "question", Method: mcp.MethodElicitationCreate, ID: "b", At: at(1)}, done},
			"server 1.0 s, client 20 s", calledAgain},
	} {
		events := append([]observe.Event{{Call: 1, Kind: "request", Method: mcp.MethodToolsCall, Name: "book", At: at(0)}}, tc.events...)
		b := lanes(events, at(30), false, nil)[0]
		if got := stretches(b); got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
		if end := b.Arrows[len(b.Arrows)-1]; b.State != tc.state || end.Text != tc.state {
			t.Errorf("%s: it is %q, and its answer %q", name, b.State, end.Text)
		}
	}
}

// TestSomebodyElseIsAsked: then the client is not to blame, be it that it has lost its
// stream or never answered.
func TestSomebodyElseIsAsked(t *testing.T) {
	for _, tc := range []struct {
		by        observe.By
		detached  bool
		who, says string
	}{
		{observe.ByPage, false, "person", "on a page of the bridge"},
		{observe.ByPage, true, "person", "when it makes the same call again"},
		{observe.ByModel, false, "model", "the bridge's own model"},
	} {
		f := ago(time.Hour, observe.ForClient, observe.Open{Kind: observe.Form, Asked: true, By: tc.by})
		f.Detached = tc.detached
		d := ofFlow(&f, &observe.Sight{Transport: observe.StreamableHTTP, Streams: []observe.Stream{{ID: 1}}}, now)
		if d.Who != tc.who || d.Grave || !strings.Contains(d.Text, tc.says) || d.Do == "" {
			t.Errorf("%+v", d)
		}
	}
	for late, says := range map[bool]string{true: "Nobody answered its question in time (timeouts.server-request)", false: "Its question was answered"} {
		f := ago(time.Hour, observe.ForClient, observe.Open{Kind: observe.Form, Asked: true, Answered: !late, By: observe.ByPage})
		f.Detached, f.Late, f.Deadline = true, late, now.Add(time.Minute)
		d := ofFlow(&f, &observe.Sight{}, now)
		if end, setting := bound(&f); d.Who != "client" || d.Grave || !strings.Contains(d.Text, says) || end != f.Deadline || setting != "timeouts.flow" {
			t.Errorf("%+v, until %v (%s)", d, end, setting)
		}
	}
	paged := []observe.Event{{Call: 1, Kind: "request", Method: mcp.MethodToolsCall, At: now},
		{Call: 1, Hop: observe.Upstream, Out: true, Kind: "request", Method: mcp.MethodToolsCall, Round: 1, At: now},
		{Call: 1, Hop: observe.Upstream, Kind: "response", Method: mcp.MethodToolsCall, Status: "input_required", At: now.Add(time.Second),
			Body: []byte(`{"result":{"inputRequests":{"q":{"method":"elicitation/create"}}}}`)}}
	if got := stretches(lanes(paged, now.Add(5*time.Second), false, nil)[0]); got != "server 1.0 s, person 4.0 s" {
		t.Error(got)
	}
}

// TestEveryDiagnosisSaysWhatToDo: of each reason why a call hangs.
func TestEveryDiagnosisSaysWhatToDo(t *testing.T) {
	for _, waits := range []observe.Wait{observe.ForServer, observe.ForClient, observe.ForTime, observe.ForTask} {
		for _, age := range []time.Duration{time.Second, 10 * time.Second, time.Minute} {
			for kind := range observe.Kinds {
				for only := range 3 {
					for _, proven := range []bool{false, true} {
						f := ago(age, waits, asked(kind, proven))
						f.StateOnly = only
						d := ofFlow(&f, &observe.Sight{}, now)
						if d.Do == "" || strings.HasSuffix(d.Do, ".") || !strings.HasSuffix(d.Text, ".") {
							t.Errorf("%v after %v: %+v", waits, age, d)
						}
						f.Reachable = false
						if d = ofFlow(&f, &observe.Sight{}, now); d.Do == "" {
							t.Errorf("%+v", d)
						}
					}
				}
			}
		}
	}
}

// TestALimitIsNamed: the wait that ends first says by which setting, and how much is left.
func TestALimitIsNamed(t *testing.T) {
	soon := ago(time.Minute, observe.ForServer)
	soon.Deadline = now.Add(10 * time.Second)
	for name, tc := range map[string]struct {
		of      observe.Flow
		setting string
		left    time.Duration
	}{
		"a round":    {ago(time.Minute, observe.ForServer), "timeouts.round", time.Minute},
		"a question": {ago(time.Minute, observe.ForClient), "timeouts.server-request", time.Minute},
		"a pause":    {ago(time.Minute, observe.ForTime), "timeouts.flow", time.Hour},
		"the whole":  {soon, "timeouts.flow", 10 * time.Second},
	} {
		f := flow{Flow: tc.of, Now: now}
		if w := f.Wait(); w == nil || w.Setting != tc.setting || w.Left != tc.left || w.Percent < 1 || w.Percent > 100 {
			t.Errorf("%s: %+v", name, w)
		}
	}
}

// TestAToolThatIsNotOfferedIsTheServersFault: a call of one that failed says so, with the
// way to what is known of the server.
func TestAToolThatIsNotOfferedIsTheServersFault(t *testing.T) {
	e := &observe.Ended{CallEnd: observe.CallEnd{End: observe.Failed, Cause: "server_error", Name: "draw_chart"}}
	d := ofEnd(e, []observe.Omission{{Method: mcp.MethodToolsList, Name: "draw_chart", Reason: "x-mcp-header of a list"}})
	if d.Who != "server" || !d.Grave || !strings.HasPrefix(d.Link, "/server#left-") || !strings.Contains(d.Text, "x-mcp-header of a list. The fault is the server's") {
		t.Errorf("%+v", d)
	}
}
