package stdio

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcpbridge/bridge/observe"
)

// Tail remembers the last lines that the processes of one command printed on their
// standard error, for people to see why a server does not do as it should. It has what
// the log has of them, and no more of a line. It is safe for concurrent use.
type Tail struct {
	mu    sync.Mutex
	lines []observe.Printed // as a ring, once it is full
	next  int
}

// Bounds of a Tail: 40 lines, in bytes each.
const (
	tailLines = 40
	tailLine  = 512
)

// add remembers a line; a nil Tail remembers nothing.
func (t *Tail) add(pid int, text string) {
	if t == nil {
		return
	}
	if len(text) > tailLine {
		text = strings.ToValidUTF8(text[:tailLine], "") + "…"
	}
	line := observe.Printed{At: time.Now(), PID: pid, Text: strings.Clone(text)}
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.lines) < tailLines {
		t.lines = append(t.lines, line)
		return
	}
	t.lines[t.next] = line
	t.next = (t.next + 1) % tailLines
}

// Lines returns what is remembered, the oldest first.
func (t *Tail) Lines() []observe.Printed {
	if t == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Concat(t.lines[t.next:], t.lines[:t.next])
}
