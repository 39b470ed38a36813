package record

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/mcpbridge/bridge/observe"
)

// play makes the events of a call: with a question, and an error, where wanted.
func play(session, call uint64, client, tool string, asks, fails bool) []observe.Event {
	of := observe.Event{Session: session, Call: call, Client: client, Name: tool, Method: "tools/call"}
	with := func(change func(*observe.Event)) observe.Event {
		e := of
		change(&e)
		return e
	}
	list := []observe.Event{
		with(func(e *observe.Event) { e.Kind = "request" }),
		with(func(e *observe.Event) { e.Kind, e.Hop, e.Out = "request", observe.Upstream, true }),
		with(func(e *observe.Event) { e.Kind, e.Hop = "response", observe.Upstream }),
	}
	if asks {
		id := fmt.Sprint("b-", call)
		list = append(list, with(func(e *observe.Event) { e.Kind, e.Out, e.ID = "question", true, id }),
			observe.Event{Session: session, Client: client, Kind: "answer", ID: id})
	}
	last := "response"
	if fails {
		last = "error"
	}
	return append(list, with(func(e *observe.Event) { e.Kind, e.Out = last, true }))
}

// recorded returns what a recording with a filter has, as "session/call kind".
func recorded(t testing.TB, f Filter, events []observe.Event) (head Head, got []string) {
	t.Helper()
	r := New(Options{})
	if err := r.Start(f); err != nil {
		t.Fatal(err)
	}
	for i := range events {
		r.Take(&events[i])
	}
	r.Stop()
	in, err := r.Open()
	if err != nil {
		t.Fatal(err)
	}
	text, _ := io.ReadAll(in)
	head, lines, err := Read(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range lines {
		got = append(got, fmt.Sprintf("%d/%d %s", l.Session, l.Call, l.Kind))
	}
	return head, got
}

func TestAFilterLeavesOutTheOthers(t *testing.T) {
	all := slices.Concat(
		[]observe.Event{{Kind: "request", Hop: observe.Upstream, Method: "server/discover"}, {Session: 1, Call: 1, Client: "a", Method: "initialize", Kind: "request"}},
		play(1, 2, "a", "search", false, false), play(1, 3, "a", "book", true, false), play(2, 4, "b", "book", true, true),
		[]observe.Event{{Call: 5, Kind: "request", Method: "tools/call", Name: "search"}, {Session: 2, Client: "b", Kind: "notification"}})
	asked := func(call string) []string {
		return []string{call + " request", call + " request", call + " response", call + " question", strings.Split(call, "/")[0] + "/0 answer"}
	}
	nobody, begun := "0/0 request", "1/1 request"
	first := []string{"1/2 request", "1/2 request", "1/2 response", "1/2 response"}
	for _, tc := range []struct {
		filter Filter
		want   []string
	}{
		{Filter{Session: 2}, slices.Concat([]string{nobody}, asked("2/4"), []string{"2/4 error", "2/0 notification"})},
		{Filter{Client: "a"}, slices.Concat([]string{nobody, begun}, first, asked("1/3"), []string{"1/3 response"})},
		{Filter{Tool: "search"}, slices.Concat([]string{nobody, begun}, first, []string{"0/5 request"})},
		{Filter{Questions: true}, slices.Concat([]string{nobody, begun}, asked("1/3"), []string{"1/3 response"}, asked("2/4"), []string{"2/4 error"})},
		{Filter{Failed: true}, slices.Concat([]string{nobody, begun}, asked("2/4"), []string{"2/4 error"})},
		{Filter{Client: "a", Failed: true}, []string{nobody, begun}},
	} {
		head, got := recorded(t, tc.filter, slices.Clone(all))
		if !slices.Equal(got, tc.want) {
			t.Errorf("%s:\n%q, want\n%q", tc.filter, got, tc.want)
		}
		if head.Filter != tc.filter.String() || head.Filter == "" {
			t.Errorf("the head says %q", head.Filter)
		}
	}
}

// TestWhatIsHeldForAFilterIsBounded: calls that never end, and long ones.
func TestWhatIsHeldForAFilterIsBounded(t *testing.T) {
	s := newSieve(Filter{Failed: true})
	first := observe.Event{Session: 1, Call: 1 << 40, Kind: "request", Method: "tools/call"}
	s.take(&first, nil) // which lasts
	for call := range uint64(5 * maxCalls) {
		for _, e := range play(1, call+1, "a", "t", true, false) {
			s.take(&e, nil)
		}
	}
	if len(s.order) > 2*maxCalls+1 || len(s.questions) != 0 || len(s.calls) != 1 {
		t.Fatalf("%d in order, %d questions, %d calls", len(s.order), len(s.questions), len(s.calls))
	}
	long := bytes.Repeat([]byte("x"), maxHeld/100)
	for call := range uint64(3 * maxCalls) {
		e := observe.Event{Session: 1, Call: call + 1, Kind: "request", Method: "tools/call"}
		s.take(&e, long)
		question := observe.Event{Session: 1, Call: call + 1, Kind: "question", ID: fmt.Sprint(call), Out: true}
		s.take(&question, long)
		if s.held > maxHeld || len(s.calls) > maxCalls || len(s.order) > 2*maxCalls || len(s.questions) > maxCalls {
			t.Fatalf("%d bytes, %d calls, %d in order, %d questions", s.held, len(s.calls), len(s.order), len(s.questions))
		}
	}
	if s.dropped == 0 {
		t.Error("nothing was counted as given up")
	}
}

// TestAFilterKeepsTheOrder: whatever comes, what is recorded of a call is all of it, in
// order, and what is held for calls that have ended is nothing.
func TestAFilterKeepsTheOrder(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var calls [][]observe.Event
		for call := range uint64(rapid.IntRange(1, 6).Draw(rt, "calls")) {
			calls = append(calls, play(1, call+1, "a", "t", rapid.Bool().Draw(rt, "asks"), rapid.Bool().Draw(rt, "fails")))
		}
		f := Filter{Questions: rapid.Bool().Draw(rt, "questions"), Failed: rapid.Bool().Draw(rt, "failed"), Tool: "t"}
		s := newSieve(f)
		got := map[uint64]int{}
		whole := slices.Clone(calls)
		for len(calls) > 0 {
			i := rapid.IntRange(0, len(calls)-1).Draw(rt, "next")
			e := calls[i][0]
			for _, line := range s.take(&e, []byte{byte(e.Call)}) {
				got[uint64(line[0])]++ // answers have no call of their own
			}
			if calls[i] = calls[i][1:]; len(calls[i]) == 0 {
				calls = slices.Delete(calls, i, i+1)
			}
		}
		if s.held != 0 || len(s.calls) != 0 {
			rt.Fatalf("%d bytes of %d calls are held", s.held, len(s.calls))
		}
		for i, events := range whole {
			asks := slices.ContainsFunc(events, func(e observe.Event) bool { return e.Kind == "question" })
			fails := events[len(events)-1].Kind == "error"
			want := 0
			if (!f.Questions || asks) && (!f.Failed || fails) {
				if want = len(events); asks {
					want-- // the answer
				}
			}
			if n := got[uint64(i+1)]; n != want {
				rt.Fatalf("call %d: %d lines of %d", i+1, n, want)
			}
		}
	})
}
