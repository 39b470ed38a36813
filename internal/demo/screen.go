package demo

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/mcpbridge/bridge/internal/wirelog"
)

// sideBySide is the narrowest terminal on which two columns are readable.
const sideBySide = 100

// readable is the widest that prose is set.
const readable = 100

// ANSI attributes; an empty one prints nothing.
const (
	dim, bold            = "2", "1"
	cyan, magenta        = "36", "35"
	green, yellow, plain = "1;32", "33", ""
)

// screen lays out what the demo says. It is safe for concurrent use: messages
// arrive from the wire while a question is on the screen, and wait for it.
type screen struct {
	out   io.Writer
	color bool
	width func() int

	mu     sync.Mutex
	held   bool   // a question is on the screen
	queue  []line // messages that arrived meanwhile
	start  time.Time
	begun  []time.Duration // times of the queue
	silent bool
}

// columns returns the usable width, 60 to 200.
func (s *screen) columns() int {
	n := 0
	if s.width != nil {
		n = s.width()
	}
	if n <= 0 {
		n = sideBySide
	}
	return min(max(n, 60), 200)
}

func (s *screen) paint(attr, text string) string {
	if !s.color || attr == plain || text == "" {
		return text
	}
	return "\x1b[" + attr + "m" + text + "\x1b[0m"
}

// say prints text behind a lead, wrapped to the width with a hanging indent.
func (s *screen) say(attr, lead, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	indent := utf8.RuneCountInString(lead)
	for _, l := range wrap(text, min(s.columns(), readable)-indent-1) {
		fmt.Fprintln(s.out, lead+s.paint(attr, l))
		lead = pad(indent)
	}
}

// print prints text as it is.
func (s *screen) print(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprint(s.out, text)
}

// heading prints the head of the two columns.
func (s *screen) heading(left, right [2]string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.columns()
	if w < sideBySide {
		for i, h := range [][2]string{left, right} {
			fmt.Fprintf(s.out, "%s%s%s\n", pad(gutter), s.hopLead(wirelog.Hop(i)), s.paint(bold, strings.Join(h[:], ", ")))
		}
		fmt.Fprintln(s.out)
		return
	}
	half := (w - gutter) / 2
	for i := range 2 {
		attr := [2]string{bold, dim}[i]
		fmt.Fprintf(s.out, "%*s%s%s│  %s\n", gutter, "", s.paint(attr, left[i]), pad(half-utf8.RuneCountInString(left[i])), s.paint(attr, right[i]))
	}
	fmt.Fprintln(s.out, s.paint(dim, strings.Repeat("─", gutter+half)+"┼"+strings.Repeat("─", w-gutter-half-2)))
}

// gutter is the width of the time before each message.
const gutter = 9

// show prints a message at its place, or keeps it while a question is up.
func (s *screen) show(l line) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.silent {
		return
	}
	at := time.Since(s.start)
	if s.held {
		s.queue, s.begun = append(s.queue, l), append(s.begun, at)
		return
	}
	s.write(l, at)
}

// hold keeps messages off the screen until release.
func (s *screen) hold() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held = true
}

func (s *screen) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held = false
	for i, l := range s.queue {
		if !s.silent {
			s.write(l, s.begun[i])
		}
	}
	s.queue, s.begun = nil, nil
}

// mute keeps messages off the screen for good: the demo is ending, and how its
// parts take leave tells nobody anything.
func (s *screen) mute() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.silent = true
}

func (s *screen) write(l line, at time.Duration) {
	w := s.columns()
	stamp := fmt.Sprintf("%7.3fs ", at.Seconds())
	if w < sideBySide {
		s.stacked(l, stamp, w)
		return
	}
	half := (w - gutter) / 2
	room, before := half-1, ""
	if l.hop == wirelog.Upstream {
		room, before = w-gutter-half-4, s.blank(half)
	}
	for i, r := range s.rows(l, room) {
		if i > 0 {
			stamp = pad(gutter)
		}
		after := ""
		if l.hop == wirelog.Downstream {
			after = pad(half-r.width) + s.paint(dim, "│")
		}
		fmt.Fprintln(s.out, s.paint(dim, stamp)+before+r.text+after)
	}
}

func (s *screen) blank(half int) string { return pad(half) + s.paint(dim, "│") + "  " }

// stacked shows both hops in one column, the server's further in.
func (s *screen) stacked(l line, stamp string, w int) {
	lead := s.hopLead(l.hop)
	for i, r := range s.rows(l, w-gutter-leadWidth(l.hop)) {
		if i > 0 {
			stamp = pad(gutter)
		}
		fmt.Fprintln(s.out, s.paint(dim, stamp)+lead+r.text)
	}
}

// hopLead is what stands before a message of a hop when the hops are stacked.
func (s *screen) hopLead(h wirelog.Hop) string {
	if h == wirelog.Upstream {
		return pad(7) + s.paint(dim, "│ ") + s.paint(magenta, "server") + s.paint(dim, " │ ")
	}
	return s.paint(cyan, "client") + s.paint(dim, " │ ")
}

func leadWidth(h wirelog.Hop) int {
	if h == wirelog.Upstream {
		return 18
	}
	return 9
}

func hopColor(h wirelog.Hop) string {
	if h == wirelog.Upstream {
		return magenta
	}
	return cyan
}

// row is one line of a column: its text with colours and its width without.
type row struct {
	text  string
	width int
}

// rows lays a message out in a column of the given width.
func (s *screen) rows(l line, room int) (rows []row) {
	arrow, attr := "←", hopColor(l.hop)
	if l.toRight {
		arrow = "→"
	}
	head := plain
	switch {
	case l.asks:
		head = yellow
	case l.ends:
		head = green
	}
	for i, text := range wrap(l.head, room-2) {
		lead := s.paint(attr, arrow) + " "
		if i > 0 {
			lead = "  "
		}
		rows = append(rows, row{lead + s.paint(head, text), 2 + utf8.RuneCountInString(text)})
	}
	for _, detail := range l.details {
		if detail == "" {
			continue
		}
		for _, text := range wrap(detail, room-4) {
			attr := dim
			if strings.HasPrefix(detail, "“") {
				attr = plain
			}
			rows = append(rows, row{"    " + s.paint(attr, text), 4 + utf8.RuneCountInString(text)})
		}
	}
	return rows
}

// wrap breaks text at spaces into lines of at most width runes; a longer word
// is cut.
func wrap(text string, width int) (lines []string) {
	width = max(width, 8)
	current, used := "", 0
	for _, word := range strings.Fields(text) {
		for utf8.RuneCountInString(word) > width {
			if used > 0 {
				lines, current, used = append(lines, current), "", 0
			}
			cut := string([]rune(word)[:width])
			lines, word = append(lines, cut), word[len(cut):]
		}
		n := utf8.RuneCountInString(word)
		if used > 0 && used+1+n > width {
			lines, current, used = append(lines, current), "", 0
		}
		if used > 0 {
			current, used = current+" ", used+1
		}
		current, used = current+word, used+n
	}
	if used > 0 {
		lines = append(lines, current)
	}
	return lines
}

func pad(n int) string { return strings.Repeat(" ", max(n, 0)) }
