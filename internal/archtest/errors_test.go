package archtest

import (
	"regexp"
	"testing"
)

// elsewhere says where else than in internal/fault an error may be made, and why it is not one
// of the bridge's own that a client would take for the server's.
var elsewhere = map[string]string{
	"internal/fault":   "the maker of the bridge's",
	"jsonrpc":          "what cannot be read, which says that it is the bridge's, and errors of peers as they came",
	"mrtr":             "the error of a server's task",
	"translate":        "a server's error, with another code",
	"internal/dialect": "a server's error, with another code",
	"negotiate":        "versions, which the data names beside whose error it is",
	"observe/replay":   "a recorded server",
	"internal/demo":    "the demonstration's server",
}

var (
	makesError = regexp.MustCompile(`\bjsonrpc\.Error\{`)
	ownError   = regexp.MustCompile(`&Error\{`)
)

// TestTheBridgesErrorsAreMadeByFault holds that whatever the bridge answers by itself has
// data.bridge (F-2): there is one maker of such errors.
func TestTheBridgesErrorsAreMadeByFault(t *testing.T) {
	makes := func(room, text string) bool {
		return makesError.MatchString(text) || room == "jsonrpc" && ownError.MatchString(text)
	}
	onlyThere(t, elsewhere, beside, makes, "makes an error of its own: internal/fault makes those of the bridge, with data.bridge")
}
