package main

import (
	"bytes"
	"os"
	"testing"
)

func TestColoursAreForTerminalsThatShowThemAndUsersWhoWantThem(t *testing.T) {
	terminal, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil || !isTerminal(terminal) {
		t.Skip("this system has no pseudo terminals")
	}
	t.Cleanup(func() { _ = terminal.Close() })
	for _, c := range []struct {
		name    string
		stream  any
		environ []string
		want    bool
	}{
		{"a terminal", terminal, []string{"TERM=xterm"}, true},
		{"a terminal that says nothing of itself", terminal, nil, true},
		{"a dumb terminal", terminal, []string{"TERM=dumb"}, false},
		{"no colours wanted", terminal, []string{"TERM=xterm", "NO_COLOR=1"}, false},
		{"an empty NO_COLOR says nothing", terminal, []string{"NO_COLOR="}, true},
		{"a pipe", new(bytes.Buffer), []string{"TERM=xterm"}, false},
	} {
		if got := colourful(c.stream, c.environ); got != c.want {
			t.Errorf("%s: colours %v, want %v", c.name, got, c.want)
		}
	}
}
