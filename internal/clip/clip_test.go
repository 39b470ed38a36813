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
	if got := Line(text); got != "a[2Jb  c"+strings.Repeat("x", 192)+"…" {
		t.Errorf("%q", got)
	}
}

func TestPrintableLeavesOutWhatCannotBeSeen(t *testing.T) {
	for text, want := range map[string]string{
		"Zürich 東京 ✓ e\u0301":                                              "Zürich 東京 ✓ e\u0301",
		"a\u00a0b\u2028c\u2029d\u0085e\tf":                                 "a b c d e f",
		"\u200b\u200e\u200f\u061c\u202e\u2066\u2060\ufeff\u00ad\U000e0041": "",
		"\x1b]0;pwn\x07\x7f\u009d":                                         "]0;pwn",
		"\x9b":                                                             "\ufffd",
	} {
		if got := Printable(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	if got := Lines("a\x1b\nb\rc\n"); got != "a\nb c\n" {
		t.Errorf("%q", got)
	}
}
