package demo

import (
	"os"

	"golang.org/x/term"
)

// ForFiles returns Options for an input and an output file, usually os.Stdin and
// os.Stdout: a person answers when both are terminals, and colours are used on
// a terminal unless NO_COLOR is set or TERM is "dumb".
func ForFiles(in, out *os.File) Options {
	tty := term.IsTerminal(int(out.Fd()))
	return Options{
		In:          in,
		Out:         out,
		Interactive: tty && term.IsTerminal(int(in.Fd())),
		Color:       tty && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb",
		Width: func() int {
			w, _, err := term.GetSize(int(out.Fd()))
			if err != nil {
				return 0
			}
			return w
		},
	}
}
