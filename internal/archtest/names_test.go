package archtest

import (
	"path"
	"regexp"
	"strings"
	"testing"
)

// folding says where encoding/json may decode, and why nothing is decided there by somebody's
// look-alike of a name: it takes "Sub" for "sub", and of two members the last. Who reads what a
// peer wrote uses rawjson, or wellknown.Decode for whole documents.
var folding = map[string]string{
	"authorize":         "logins, which the bridge wrote itself, and the words of a refusal, which are quoted",
	"ask/model":         "sampling requests, which are judged and used by the same reading, and answers of the operator's model",
	"mrtr":              "records that the bridge wrote and sealed",
	"bridge":            "records that the bridge wrote and sealed",
	"legacy/exchange":   "records that the bridge wrote and sealed",
	"legacy/session":    "records that the bridge wrote and sealed",
	"internal/relayed":  "records that the bridge wrote and sealed",
	"internal/replica":  "leases, which replicas wrote",
	"internal/vouch":    "records that the bridge wrote and sealed",
	"internal/check":    "its own log",
	"internal/wirelog":  "what a line of the log is about",
	"observe/record":    "recordings, which the operator replays",
	"observe/report":    "the bridge's own report",
	"cmd/bridge":        "what another bridge of the operator says of itself",
	"internal/demo":     "the demonstration",
	"authorize/sealed":  "files that the bridge wrote",
	"internal/wiretest": "tests", "internal/modernonly": "a server of the tests",
}

var decoding = regexp.MustCompile(`\bjson\.(Unmarshal|NewDecoder)\(`)

func TestNamesOfPeersAreNotFolded(t *testing.T) {
	decodes := func(_, text string) bool { return decoding.MatchString(text) }
	onlyThere(t, folding, []string{"test", "bench", "internal/peers"}, decodes,
		"decodes with encoding/json: read names with rawjson, or wellknown.Decode, or say in names_test.go why nothing rests on it")
}

// onlyThere holds that only rooms with a reason do something, and that each of these still does. It looks
// at the program without comments, and without the rooms of others.
func onlyThere(t *testing.T, reasons map[string]string, others []string, does func(room, text string) bool, complaint string) {
	t.Helper()
	doing := map[string]bool{}
	for _, file := range files(t, ".go") {
		room := path.Dir(file)
		if strings.HasSuffix(file, "_test.go") || withinAny(room, others) || !does(room, comment.ReplaceAllString(read(t, file), "")) {
			continue
		}
		doing[room] = true
		if reasons[room] == "" {
			t.Errorf("%s %s", file, complaint)
		}
	}
	for room, reason := range reasons {
		if !doing[room] {
			t.Errorf("%s does not do any more what this test allows it (%s): take it out", room, reason)
		}
	}
}
