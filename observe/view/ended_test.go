package view

import (
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/bridge/observe"
)

// TestAQuestionThatNobodyAnsweredIsOnTheListOfEnded: for how long, what the server got, and
// who was waited for as far as somebody saw it.
func TestAQuestionThatNobodyAnsweredIsOnTheListOfEnded(t *testing.T) {
	calls := []observe.Ended{
		{Mount: "/mcp", CallEnd: observe.CallEnd{Method: "tools/call", Name: "book_flight", ID: "f1", Session: "S1", Silences: 1, Silence: 10 * time.Minute}},
		{Mount: "/mcp", CallEnd: observe.CallEnd{Method: "tools/call", Name: "ask_twice", ID: "f2", Session: "S1", Silences: 2, Silence: time.Minute, ToolError: true}},
		{Mount: "/mcp", CallEnd: observe.CallEnd{Method: "tools/call", Name: "plain", ID: "f3", Session: "S1"}},
	}
	v := New(Options{Look: func() []Mount { return nil }, Recording: &tape{}, Ends: func(_ int, wanted func(*observe.Ended) bool) (found []observe.Ended) {
		for _, e := range calls {
			if wanted(&e) {
				found = append(found, e)
			}
		}
		return found
	}})
	v.said.note(callKey("/mcp", "S1", "f1"), verdict{"person", true})
	_, page := get(v, "/ended")
	for _, want := range []string{"book_flight", `who person`, "Nobody answered a question of the server for 10 min (timeouts.server-request). The server got a cancel in its place, and then answered the call with a result.",
		"2 questions of the server, each for 60 s", "said that the tool failed", `who client`, "unanswered"} {
		if !strings.Contains(page, want) {
			t.Errorf("%q is not on the page", want)
		}
	}
	if strings.Contains(page, "plain") || strings.Contains(page, "grave") {
		t.Error(page)
	}
	if _, page = get(v, "/ended?of=all"); !strings.Contains(page, "plain") || strings.Contains(page, ">idle<") {
		t.Error(page)
	}
}
