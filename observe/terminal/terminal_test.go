package terminal

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/mcpbridge/bridge/observe/record"
	"github.com/mcpbridge/bridge/observe/view"
)

const hostile = "evil\x1b[2J\r\n\u202ename"

func busy() *view.State {
	return &view.State{
		Mounts: []view.MountState{{Path: "/mcp", Target: "http://" + strings.Repeat("long", 60), Why: strings.Repeat("so it is ", 30), Grave: true}},
		Calls: []view.CallState{
			{Session: "A", Client: hostile, Name: strings.Repeat("x", 100), Who: "person", Waited: 41, Left: 500, Why: "Waits for a person. " + strings.Repeat("y", 300)},
			{Session: "B", Client: "c", Method: "prompts/get", Who: "server", Waited: .02, Why: "With the server.", Grave: true},
		},
		MoreCalls: 3,
		Sessions:  []view.SessionState{{ID: "A", Client: hostile, Age: 7300, Calls: 1}, {ID: "C", Grave: true, Why: "Nobody fetched it."}},
	}
}

func TestItFitsAnyWidthAndMovesNoCursor(t *testing.T) {
	for _, width := range []int{40, 80, 119, 120, 160, 500} {
		var out strings.Builder
		s := Screen{Out: &out, Width: width}
		s.State("stdio 1", busy())
		lanes := Lanes{Screen: s}
		lanes.Head()
		for _, hop := range []string{record.Down, record.Up} {
			lanes.Message(&view.Seen{Line: record.Line{Hop: hop, Dir: record.In, Kind: "request", Method: hostile + strings.Repeat("z", 300), Call: 1, Round: 2}})
		}
		lanes.Note(hostile, true)
		for line := range strings.Lines(out.String()) {
			line = strings.TrimSuffix(line, "\n")
			if n := utf8.RuneCountInString(line); n > min(max(width, 40), 200) {
				t.Errorf("%d columns at %d: %s", n, width, line)
			}
			if strings.ContainsAny(line, "\x1b\r\u202e") {
				t.Errorf("a peer moves the cursor: %q", line)
			}
		}
		for _, says := range []string{"WAITS FOR", "person", "41 s", "8 min", "20 ms", "! With the server.", "and 3 more calls", "2 h", "! Nobody fetched"} {
			if width >= 80 && !strings.Contains(strings.Join(strings.Fields(out.String()), " "), says) {
				t.Errorf("%d: no %q in\n%s", width, says, &out)
			}
		}
	}
}

func TestWhatIsUnderEarlierSettingsIsSaid(t *testing.T) {
	var out strings.Builder
	s := Screen{Out: &out, Width: 100}
	s.State("serve", &view.State{Mounts: []view.MountState{
		{Path: "/a", Target: "t", Ready: true, Sessions: 3, Earlier: 2}, {Path: "/b", Target: "t", Ready: true, Sessions: 1, Earlier: 1, Removed: true},
	}})
	for _, says := range []string{"/a → t  ready\n", "2 of 3 sessions are under the settings of before a reload.", "/b → t  removed by a reload\n"} {
		if !strings.Contains(out.String(), says) {
			t.Errorf("no %q in\n%s", says, &out)
		}
	}
	if strings.Contains(out.String(), "1 of 1") {
		t.Errorf("of a mount that is gone it says\n%s", &out)
	}
}

func TestLanesTellHopsApart(t *testing.T) {
	at := time.Date(2026, 11, 22, 12, 0, 0, 0, time.Local)
	for width, want := range map[int]string{
		80: "12:00:00.000  client → tools/call  #1\n12:00:00.000    server ← input_required  #1  12 ms\n" +
			"              … 41 s\n12:00:41.000  client → answer (result)\n",
		100: "12:00:00.000  → tools/call  #1                           │\n" +
			"12:00:00.000                                             │ ← input_required  #1  12 ms\n" +
			"              … 41 s\n12:00:41.000  → answer (result)                          │\n",
	} {
		var out strings.Builder
		lanes := Lanes{Screen: Screen{Out: &out, Width: width}}
		lanes.Message(&view.Seen{Line: record.Line{At: at, Hop: record.Down, Dir: record.In, Kind: "request", Method: "tools/call", Call: 1}})
		lanes.Message(&view.Seen{Line: record.Line{At: at, Hop: record.Up, Dir: record.In, Kind: "response", Status: "input_required", Call: 1, Round: 1, MS: 12}})
		lanes.Message(&view.Seen{Line: record.Line{At: at.Add(41 * time.Second), Hop: record.Down, Dir: record.In, Kind: "answer", Status: "result"}})
		late := view.Seen{Line: record.Line{Hop: record.Down, Dir: record.In, Kind: "begun", Method: "tools/call", Call: 1}}
		if got := words(&late); got != "→ under way: tools/call  #1" {
			t.Errorf("a call that began before is told as %q", got)
		}
		if out.String() != want {
			t.Errorf("%d:\n%s\nwant\n%s", width, &out, want)
		}
	}
}
