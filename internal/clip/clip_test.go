package clip

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestTextIsCutBetweenCharacters(t *testing.T) {
	for most := range 9 {
		got := Text("äöü€", most)
		if kept := strings.TrimSuffix(got, "…"); !utf8.ValidString(got) || len(kept) > most || !strings.HasPrefix("äöü€", kept) {
			t.Errorf("%d bytes: %q", most, got)
		}
	}
	if got := Text("äöü€", 9); got != "äöü€" {
		t.Errorf("nothing was to be cut: %q", got)
	}
}

func TestALineHasNothingThatATerminalObeys(t *testing.T) {
	text := "a\x1b[2J\u009b\u202eb\u2066\r\nc" + strings.Repeat("x", 300)
	if got := Line(text); got != "a[2Jbc"+strings.Repeat("x", 194)+"…" {
		t.Errorf("%q", got)
	}
}
