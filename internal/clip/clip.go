// Package clip makes text of peers fit to be shown: bounded, and without what a terminal
// would obey.
package clip

import (
	"strings"
	"unicode"
)

// Text cuts text at a number of bytes, between characters.
func Text(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}

// maxLine bounds a line, in bytes.
const maxLine = 200

// Line makes text fit for a part of one line: printable, and not above 200 bytes.
func Line(text string) string { return Text(Printable(text), maxLine) }

// Printable takes out of text what a terminal would obey, and what cannot be seen: control
// characters and those that turn text round, join or hide it. White space is spaces.
func Printable(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsPrint(r):
			return r
		case unicode.IsSpace(r):
			return ' '
		}
		return -1
	}, text)
}

// Lines is Printable for text whose own lines stay apart.
func Lines(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = Printable(line)
	}
	return strings.Join(lines, "\n")
}
