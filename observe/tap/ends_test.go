package tap

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/mcpbridge/bridge/observe"
	"github.com/mcpbridge/bridge/observe/record"
)

// TestACallThatEndedHasItsNames: of the tool and in the log, however it ended, and what its
// request said of them is not kept.
func TestACallThatEndedHasItsNames(t *testing.T) {
	hub := NewHub(record.NewRedactor(false))
	defer hub.Close()
	hub.Look(time.Minute)
	watch := hub.Mount("/mcp", observe.Server{}).Remember(observe.Nobody{})
	watch.CallEnded(observe.CallEnd{Method: "tools/call", Tool: []byte(`"book_flight"`), Serial: 7})
	watch.CallEnded(observe.CallEnd{Method: "ping"})
	all := hub.Ends(2, func(*observe.Ended) bool { return true })
	if len(all) != 2 || all[1].Name != "book_flight" || all[1].ID != "f7" || all[1].Tool != nil || all[0].Name != "" || all[0].ID != "" {
		t.Errorf("%+v", all)
	}
}

// Metrics and traces take UTF-8 alone.
func TestTextsOfPeersAreCutBetweenCharacters(t *testing.T) {
	for i := range 4 {
		if got := clip(strings.Repeat("x", i) + strings.Repeat("é", maxText)); !utf8.ValidString(got) || len(got) > maxText+len("…") {
			t.Errorf("%q", got)
		}
	}
	if got := clip("a\xed\xa0\x80b"); got != "a\uFFFDb" {
		t.Errorf("half a character is %q", got)
	}
}
