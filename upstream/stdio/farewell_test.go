package stdio

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/bridge/observe"
)

// TestTheEndOfAProcessIsExplained: to everybody with its status, and with what it printed to its own user.
func TestTheEndOfAProcessIsExplained(t *testing.T) {
	const crash = `read -r asked; printf 'Error: no such table: hush\n    at frame (file.js:1)\n}\n' >&2; exit 3`
	for tell, want := range map[bool]string{
		false: "the upstream process ended before it answered (exit status 3); its messages are in the log",
		true:  "the upstream process ended before it answered (exit status 3); its last words: Error: no such table: hush",
	} {
		s, err := New(Options{Command: "sh", Args: []string{"-c", crash}, Tell: tell, Tail: new(Tail)})
		if err != nil {
			t.Fatal(err)
		}
		if _, err = s.Do(t.Context(), tool("any"), nil); err == nil || err.Error() != want {
			t.Errorf("told %v: %v", tell, err)
		}
		_ = s.Close()
	}
}

// TestACommandThatKeepsEndingSaysHow: whoever comes late sees no other end.
func TestACommandThatKeepsEndingSaysHow(t *testing.T) {
	s, err := New(Options{Command: "sh", Args: []string{"-c", `echo 'no key' >&2; exit 3`}, Tell: true, MinBackoff: time.Hour, MaxBackoff: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for range 3 {
		if _, err = s.Do(ctx, tool("any"), nil); err != nil && strings.Contains(err.Error(), "keeps ending") {
			break
		}
	}
	if err == nil || !strings.Contains(err.Error(), "keeps ending") || !strings.HasSuffix(err.Error(), "(exit status 3); its last words: no key") {
		t.Errorf("%v", err)
	}
}

// TestLastWordsAreBounded, and are those of one process.
func TestLastWordsAreBounded(t *testing.T) {
	var lines []observe.Printed
	for i := range 20 {
		lines = append(lines, observe.Printed{PID: 7, Text: fmt.Sprint("line ", i, strings.Repeat("x\x1b[31m", 200))}, observe.Printed{PID: 8, Text: "another's"})
	}
	words := lastWords(lines, 7)
	if n := strings.Count(words, "line "); n != 1 || len(words) > maxLastBytes || strings.ContainsAny(words, "\x1b\n") || strings.Contains(words, "another's") ||
		!strings.HasPrefix(words, "line 19x") {
		t.Errorf("%d lines, %q", n, words)
	}
	lines = nil
	for i := range 20 {
		lines = append(lines, observe.Printed{PID: 7, Text: fmt.Sprint("line ", i)})
	}
	if words := lastWords(lines, 7); words != "line 15 | line 16 | line 17 | line 18 | line 19" {
		t.Errorf("%q", words)
	}
}
