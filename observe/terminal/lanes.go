package terminal

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/mcpbridge/bridge/internal/clip"
	"github.com/mcpbridge/bridge/observe/record"
	"github.com/mcpbridge/bridge/observe/view"
)

// Lanes writes messages as they pass: those of the client on the left, those of the
// server on the right, or below each other where there is no room.
type Lanes struct {
	Screen
	last time.Time
}

// gutter is the width of the time before each message, and sideBySide the narrowest
// terminal on which two columns are readable.
const (
	gutter     = 14
	sideBySide = 100
)

// Head writes what the columns are.
func (l *Lanes) Head() {
	if l.width() < sideBySide {
		return
	}
	half := (l.width() - gutter) / 2
	left := "client ⇄ bridge"
	fmt.Fprintln(l.Out, l.paint(bold, strings.Repeat(" ", gutter)+left+strings.Repeat(" ", half-utf8.RuneCountInString(left))+"│ bridge ⇄ server"))
}

// noticeable is how long a silence must be to be told.
const noticeable = time.Second

// Message writes one message.
func (l *Lanes) Message(m *view.Seen) {
	if gone := m.At.Sub(l.last); !l.last.IsZero() && gone >= noticeable {
		fmt.Fprintln(l.Out, l.paint(dim, strings.Repeat(" ", gutter)+"… "+Span(gone.Seconds())))
	}
	l.last = m.At
	text := clip.Printable(words(m))
	attr := ""
	switch m.Kind {
	case "question", "answer":
		attr = yellow
	case "error":
		attr = red
	}
	at := m.At.Local().Format("15:04:05.000") + "  "
	if l.width() < sideBySide {
		hop := "client "
		if m.Hop == record.Up {
			hop = "  server "
		}
		fmt.Fprintln(l.Out, l.paint(dim, at)+hop+l.paint(attr, cut(text, l.width()-gutter-len(hop))))
		return
	}
	half := (l.width() - gutter) / 2
	if m.Hop == record.Up {
		fmt.Fprintln(l.Out, l.paint(dim, at)+strings.Repeat(" ", half)+"│ "+l.paint(attr, cut(text, half-2)))
		return
	}
	text = cut(text, half-1)
	fmt.Fprintln(l.Out, l.paint(dim, at)+l.paint(attr, text)+strings.Repeat(" ", half-utf8.RuneCountInString(text))+"│")
}

// words says a message, with an arrow to where it goes.
func words(m *view.Seen) string {
	arrow := "←"
	if (m.Dir == record.In) == (m.Hop == record.Down) {
		arrow = "→"
	}
	text := m.Method
	switch m.Kind {
	case "response", "end":
		text = m.Status
	case "error":
		text = "error " + m.Status
	case "question":
		text = "question: " + m.Method
	case "begun":
		text = "under way: " + m.Method
	case "answer":
		text = "answer (" + m.Status + ")"
	}
	if m.Kind == "request" && m.Round > 0 {
		text = fmt.Sprintf("round %d: %s", m.Round, text)
	}
	if m.Call > 0 {
		text += fmt.Sprintf("  #%d", m.Call)
	}
	if m.MS > 0 {
		text += "  " + Span(m.MS/1000)
	}
	return arrow + " " + text
}

// Note writes what is to be said of a call that waits.
func (l *Lanes) Note(why string, grave bool) {
	l.reason(why, grave, strings.Repeat(" ", gutter), l.width())
}
