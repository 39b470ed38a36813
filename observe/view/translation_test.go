package view

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/bridge/observe"
	"github.com/mcpbridge/bridge/observe/record"
	"github.com/mcpbridge/bridge/rawjson"
)

// played returns the events of a recording whose calls come one after another. Those
// of the tap have what lines of transcripts lack.
func played(t *testing.T, file string) (events []observe.Event) {
	t.Helper()
	in, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	_, lines, err := record.Read(in)
	if err != nil {
		t.Fatal(err)
	}
	call, method, rounds := uint64(0), "", 0
	up := map[string]string{} // methods by id
	for i, l := range lines {
		e := observe.Event{Seq: uint64(i + 1), At: now.Add(time.Duration(i) * time.Second), Kind: l.Kind, Out: l.Dir == record.Out, Body: l.Message}
		e.Method, _ = rawjson.Text(rawjson.Get(l.Message, "method"))
		e.ID = string(rawjson.Get(l.Message, "id"))
		switch {
		case l.Kind == "priming" || l.Kind == "closed":
			continue
		case l.Hop == record.Up:
			e.Hop = observe.Upstream
			if e.Kind == "request" {
				rounds++
				up[e.ID] = e.Method
			} else if e.Method == "" {
				e.Method = up[e.ID]
			}
			e.Round = rounds
		case e.Kind == "request" && !e.Out:
			call, method, rounds = call+1, e.Method, 0
		case e.Out && e.Kind != "question" && e.Kind != "notification":
			e.Method = method
		}
		if result := rawjson.Get(l.Message, "result"); result != nil {
			e.Status = "complete"
			if e.Kind == "answer" {
				e.Status = "result"
			} else if text, _ := rawjson.Text(rawjson.Get(result, "resultType")); text != "" {
				e.Status = text
			}
		}
		if rawjson.Get(l.Message, "error") != nil {
			e.Status = "error"
			if e.Kind == "response" {
				e.Kind = "error"
			}
		}
		if e.Kind != "notification" || e.Out || e.Hop == observe.Upstream {
			e.Call = call
		}
		events = append(events, e)
	}
	return events
}

// TestEveryChangeHasItsRule: in the golden transcripts nothing changes on its way that
// no rule of docs/translation.md explains, and no message is without a word.
func TestEveryChangeHasItsRule(t *testing.T) {
	var files []string
	_ = filepath.WalkDir("../../internal/wiretest/testdata", func(path string, _ os.DirEntry, _ error) error {
		if strings.HasSuffix(path, ".jsonl") {
			files = append(files, path)
		}
		return nil
	})
	ids := map[string]bool{}
	compared := 0
	for _, file := range files {
		for _, b := range lanes(played(t, file), now.Add(time.Hour), true, nil) {
			for _, a := range b.Arrows {
				if a.From != "" {
					compared++
				}
				for _, c := range a.Changes {
					if len(c.Rules) == 0 {
						t.Errorf("%s: %s %s: %s %s: %s → %s has no rule", filepath.Base(file), a.Kind, a.Text, c.Op, c.Path, c.Before, c.After)
					}
					for _, r := range c.Rules {
						ids[r.ID] = true
					}
				}
				if a.Why != "" && len(a.Rules) == 0 {
					t.Errorf("%s: %s %s: %q has no rule", filepath.Base(file), a.Kind, a.Text, a.Why)
				}
				needs := a.Up && a.Out || a.Kind == "question" || last(&a.Event)
				if needs && a.From == "" && a.Why == "" {
					t.Errorf("%s: %s %s has nothing to say\n%s", filepath.Base(file), a.Kind, a.Text, a.Body)
				}
			}
		}
	}
	if len(files) < 10 || compared < 40 {
		t.Errorf("%d files, %d messages were compared", len(files), compared)
	}
	for _, id := range []string{"A-20", "A-21", "B-28", "B-5", "C.5", "D-I3", "D-I6", "C-1", "F.2"} {
		if !ids[id] {
			t.Errorf("%s applied nowhere", id)
		}
	}
}

// TestACallsTimeIsDivided by who was waited for.
func TestACallsTimeIsDivided(t *testing.T) {
	b := lanes(played(t, "../../internal/wiretest/testdata/TestTwoRounds.jsonl"), now.Add(time.Hour), false, nil)[0]
	var who []string
	for i, s := range b.Spent {
		who = append(who, s.Who)
		if s.For <= 0 || s.W <= 0 || i > 0 && s.X < b.Spent[i-1].X {
			t.Errorf("%+v", s)
		}
	}
	if !slices.Equal(who, []string{"time", "server", "time", "person", "time", "server", "time", "person", "time", "server", "time"}) {
		t.Errorf("%q", who)
	}
	going := lanes(played(t, "../../internal/wiretest/testdata/TestTwoRounds.jsonl")[:4], now.Add(time.Hour), false, nil)[0]
	if last := going.Spent[len(going.Spent)-1]; last.Who != "person" || !last.Going || last.For < 50*time.Minute {
		t.Errorf("%+v of %+v", last, going.Arrows[len(going.Arrows)-1].Event)
	}
}

// TestWithoutPayloadsNoMessageIsOnThePage, only what changed.
func TestWithoutPayloadsNoMessageIsOnThePage(t *testing.T) {
	for _, payloads := range []bool{false, true} {
		for _, b := range lanes(played(t, "../../internal/wiretest/testdata/TestTwoRounds.jsonl"), now, payloads, nil) {
			for _, a := range b.Arrows {
				if (a.Payload != "") != payloads || a.Before != "" && !payloads {
					t.Errorf("payloads %v: %q, %q", payloads, a.Before, a.Payload)
				}
			}
		}
	}
}

func TestEveryEndHasASentence(t *testing.T) {
	for end := range observe.Ends {
		for _, cause := range append(slices.Collect(func(yield func(string) bool) {
			for cause := range endings {
				if !yield(cause) {
					return
				}
			}
		}), "something new", "") {
			if d := ofEnd(&observe.Ended{CallEnd: observe.CallEnd{End: end, Cause: cause}}, nil); d.Text == "" || d.Who == "" || d.Do == "" && end != observe.Complete {
				t.Errorf("%s, %s: %+v", end, cause, d)
			}
		}
	}
}

// TestWhatEachRevisionGets of the tools that the server listed.
func TestWhatEachRevisionGets(t *testing.T) {
	m := Mount{Tools: [][]byte{[]byte(`{"tools":[{"name":"plain","inputSchema":{"type":"object"}},
		{"name":"shaped","inputSchema":{"type":"object"},"outputSchema":{"type":"array"},"icons":[]},{"name":"odd","inputSchema":{"type":"string"}}]}`)}}
	offers, more := m.offers()
	if len(offers) != 3 || more != 0 {
		t.Fatalf("%+v", offers)
	}
	for i, want := range []string{"nothing nothing nothing nothing", "whole whole whole whole", "changed changed changed changed"} {
		var kinds []string
		for _, s := range offers[i].Of {
			kinds = append(kinds, s.Kind)
			if s.Kind == "changed" && (len(s.Rules) == 0 || s.Text == "") {
				t.Errorf("%s: %+v", offers[i].Name, s)
			}
		}
		if got := strings.Join(kinds, " "); got != want {
			t.Errorf("%s: %s, want %s", offers[i].Name, got, want)
		}
	}
}
