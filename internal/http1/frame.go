package http1

import "errors"

// ErrHTTP2 is what ails a server that speaks only HTTP/2.
var ErrHTTP2 = errors.New("the server speaks only HTTP/2, and the bridge HTTP/1.1")

// IsHTTP2 reports whether text begins like a frame of HTTP/2 about the connection, as a server that
// speaks only that sends first: its length, its type, flags, and no stream. Nothing of HTTP/1.1 does.
func IsHTTP2(text []byte) bool {
	const settings, goAway = 4, 7
	return len(text) >= 9 && text[0] == 0 && (text[3] == settings || text[3] == goAway) && string(text[5:9]) == "\x00\x00\x00\x00"
}
