package terminal

import (
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/mcpbridge/bridge/internal/clip"
	"github.com/mcpbridge/bridge/observe"
	"github.com/mcpbridge/bridge/observe/view"
)

// Screen is where it is written.
type Screen struct {
	Out   io.Writer
	Width int  // columns
	Color bool // it understands ANSI colours
}

// ANSI attributes.
const (
	bold, dim   = "1", "2"
	red, yellow = "1;31", "33"
)

func (s *Screen) paint(attr, text string) string {
	if !s.Color || attr == "" || text == "" {
		return text
	}
	return "\x1b[" + attr + "m" + text + "\x1b[0m"
}

// width is what can be used, 40 to 200 columns.
func (s *Screen) width() int { return min(max(s.Width, 40), 200) }

// wide is where a table has room for a column with reasons.
const wide = 120

// State says what goes on in one program.
func (s *Screen) State(program string, state *view.State) {
	for i := range state.Mounts {
		s.mount(program, &state.Mounts[i])
	}
	if len(state.Calls) > 0 {
		s.calls(state.Calls)
	}
	s.more(state.MoreCalls, "calls")
	if len(state.Sessions) > 0 {
		s.sessions(state.Sessions)
	}
	s.more(state.MoreSessions, "sessions")
	fmt.Fprintln(s.Out)
}

func (s *Screen) more(n int, what string) {
	if n > 0 {
		fmt.Fprintf(s.Out, "  and %d more %s\n", n, what)
	}
}

func (s *Screen) mount(program string, m *view.MountState) {
	ready := "ready"
	switch {
	case m.Removed:
		ready = "removed by a reload"
	case !m.Ready:
		ready = "not ready"
	}
	head := fmt.Sprintf("%s → %s  %s", strings.TrimSpace(program+"  "+m.Path), m.Target, ready)
	fmt.Fprintln(s.Out, s.paint(bold, cut(clip.Printable(head), s.width())))
	s.reason(m.Why, m.Grave, "  ", s.width())
	if m.Earlier > 0 && !m.Removed {
		s.reason(fmt.Sprintf("%d of %s under the settings of before a reload.", m.Earlier, observe.Plural(m.Sessions, "session is", "sessions are")), false, "  ", s.width())
	}
}

// reason writes a sentence, wrapped, behind an indent. What somebody should look at says
// so without its colour, too.
func (s *Screen) reason(why string, grave bool, indent string, width int) {
	attr := dim
	if grave {
		why, attr = "! "+why, yellow
	}
	for _, l := range wrap(clip.Printable(why), width-len(indent)) {
		fmt.Fprintln(s.Out, indent+s.paint(attr, l))
	}
}

func (s *Screen) calls(calls []view.CallState) {
	rows := [][]string{{"WAITS FOR", "SINCE", "LEFT", "CALL", "ROUND", "CLIENT", "SESSION"}}
	for i := range calls {
		c := &calls[i]
		name := c.Name
		if name == "" {
			name = c.Method
		}
		rows = append(rows, []string{c.Who, Span(c.Waited), Span(c.Left), name, fmt.Sprint(c.Round), c.Client, c.Session})
	}
	s.table(rows, func(i int) (string, bool) { return calls[i].Why, calls[i].Grave })
}

func (s *Screen) sessions(sessions []view.SessionState) {
	rows := [][]string{{"SESSION", "CLIENT", "REVISION", "TRANSPORT", "AGE", "CALLS"}}
	for i := range sessions {
		c := &sessions[i]
		rows = append(rows, []string{c.ID, c.Client, c.Version, c.Transport, Span(c.Age), fmt.Sprint(c.Calls)})
	}
	s.table(rows, func(i int) (string, bool) {
		if sessions[i].Calls > 0 || !sessions[i].Grave { // said above, or nothing to say
			return "", false
		}
		return sessions[i].Why, true
	})
}

// maxColumn bounds a column, in characters.
const maxColumn = 28

// table writes rows, of which the first is the head, each with its reason: beside it
// where there is room, else below.
func (s *Screen) table(rows [][]string, why func(int) (string, bool)) {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i := range row {
			row[i] = cut(clip.Printable(row[i]), maxColumn)
			widths[i] = max(widths[i], utf8.RuneCountInString(row[i]))
		}
	}
	used := 2
	for _, w := range widths {
		used += w + 2
	}
	beside := s.width() >= wide && s.width()-used >= 40
	fmt.Fprintln(s.Out)
	for i, row := range rows {
		line := " "
		for j, cell := range row {
			line += " " + cell + strings.Repeat(" ", widths[j]-utf8.RuneCountInString(cell)+1)
		}
		if i == 0 {
			fmt.Fprintln(s.Out, s.paint(dim, strings.TrimRight(cut(line, s.width()), " ")))
			continue
		}
		text, grave := why(i - 1)
		switch {
		case text == "":
			fmt.Fprintln(s.Out, strings.TrimRight(cut(line, s.width()), " "))
		case beside:
			s.beside(line, text, grave, used)
		default:
			fmt.Fprintln(s.Out, strings.TrimRight(cut(line, s.width()), " "))
			s.reason(text, grave, "    ", s.width())
		}
	}
}

// beside writes a row and its reason in a column of their own.
func (s *Screen) beside(row, why string, grave bool, used int) {
	attr := dim
	if grave {
		why, attr = "! "+why, yellow
	}
	for _, l := range wrap(clip.Printable(why), s.width()-used-1) {
		fmt.Fprintln(s.Out, row+strings.Repeat(" ", used-utf8.RuneCountInString(row))+s.paint(attr, l))
		row = ""
	}
}

// Span words a time in seconds for people.
func Span(seconds float64) string { return view.Span(time.Duration(seconds * float64(time.Second))) }

// cut shortens a text to so many characters.
func cut(text string, width int) string {
	if utf8.RuneCountInString(text) <= width {
		return text
	}
	return string([]rune(text)[:width-1]) + "…"
}

// wrap breaks a text into lines of at most so many characters, at spaces.
func wrap(text string, width int) []string {
	var lines []string
	line := ""
	for word := range strings.FieldsSeq(text) {
		word = cut(word, width)
		if line != "" && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > width {
			lines = append(lines, line)
			line = ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return append(lines, line)
}
