package archtest

import (
	"path"
	"regexp"
	"strings"
	"testing"
)

// elsewhere says where else than in internal/fault an error may be made, and why it is not one
// of the bridge's own that a client would take for the server's.
var elsewhere = map[string]string{
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
	used := map[string]bool{}
	for _, file := range files(t, ".go") {
		room := path.Dir(file)
		if strings.HasSuffix(file, "_test.go") || withinAny(room, beside) || room == "internal/fault" {
			continue
		}
		text := comment.ReplaceAllString(read(t, file), "")
		if !makesError.MatchString(text) && (room != "jsonrpc" || !ownError.MatchString(text)) {
			continue
		}
		used[room] = true
		if elsewhere[room] == "" {
			t.Errorf("%s makes an error of its own: internal/fault makes those of the bridge, with data.bridge", file)
		}
	}
	for room := range elsewhere {
		if !used[room] {
			t.Errorf("%s makes no errors any more; take it out of errors_test.go", room)
		}
	}
}
