package http1

import (
	"errors"
	"fmt"
)

// What ails a server whose response cannot be read. The text of such errors is the bridge's own:
// what the server sent may be anything.
var (
	// ErrMalformed is wrapped by errors about responses that are no proper HTTP/1.1 or exceed a limit.
	ErrMalformed = errors.New("malformed response")
	// ErrHTTP2 is one of them.
	ErrHTTP2 = fmt.Errorf("%w: the server speaks only HTTP/2, and the bridge HTTP/1.1", ErrMalformed)
)

// FrameHead is the length of what a frame of HTTP/2 begins with, in bytes.
const FrameHead = 9

// IsHTTP2 reports whether text begins like a frame of HTTP/2 about the connection, as a server that
// speaks only that sends first: its length, its type, flags, and no stream. Nothing of HTTP/1.1 does.
func IsHTTP2(text []byte) bool {
	const settings, goAway = 4, 7
	return len(text) >= FrameHead && text[0] == 0 && (text[3] == settings || text[3] == goAway) && string(text[5:FrameHead]) == "\x00\x00\x00\x00"
}
