// Package clip makes text of peers fit to be shown: bounded, and without what a terminal
// would obey.
package clip

import "strings"

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

// Printable takes out of text what a terminal would obey.
func Printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 {
			return -1
		}
		return r
	}, text)
}
