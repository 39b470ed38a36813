package mcp

// Bounds on what a server says when a session opens, and what is kept of it for as long as that
// lasts, in bytes.
const (
	MaxSessionID = 1 << 10
	maxVersion   = 64
)

// IsSessionID reports whether a server's name for a session can be one: it consists of visible
// ASCII, as the protocol has it, and is not long.
func IsSessionID(id string) bool { return visible(id) && len(id) <= MaxSessionID }

// IsVersion reports whether a text can be the name of a revision, known or not.
func IsVersion(text string) bool { return visible(text) && len(text) <= maxVersion }

func visible(text string) bool {
	for i := range len(text) {
		if text[i] <= ' ' || text[i] > '~' {
			return false
		}
	}
	return text != ""
}
