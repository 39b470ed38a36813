package fault

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/rawjson"
)

// F-2: standard codes, and data.bridge in every case.
func TestEveryErrorIsMarkedAsTheBridges_F2(t *testing.T) {
	for want, e := range map[string]*jsonrpc.Error{
		`-32603 a {"bridge":{}}`:                                                     Internal("a"),
		`-32600 b {"bridge":{"reason":"r"}}`:                                         Request("b", Reason("r")),
		`-32602 c {"bridge":{"limit":"limits.x","hint":"do \"y\""}}`:                 Params("c", Limit("limits.x"), Hint(`do "y"`)),
		`-32601 d {"bridge":{"httpStatus":502,"reason":"é"}}`:                        Method("d", Number("httpStatus", 502), Text("reason", "é")),
		`-32042 ` + strings.Repeat("u", 500) + ` {"bridge":{"url":"http://a/?b=c"}}`: Uncut(-32042, strings.Repeat("u", 500), Text("url", "http://a/?b=c")),
	} {
		if got := strings.Join([]string{rawNumber(e.Code), e.Message, string(e.Data)}, " "); got != want || rawjson.Validate(e.Data) != nil {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func rawNumber(n int) string { return string(Number("", n).Value) }

func TestTextsAreCutBetweenCharacters(t *testing.T) {
	for _, text := range []string{"", "short", strings.Repeat("x", 400)} {
		if Clip(text) != text {
			t.Errorf("%d bytes were cut", len(text))
		}
	}
	long := "x" + strings.Repeat("é", 400)
	for _, got := range []string{Clip(long), Internal(long).Message} {
		if len(got) > maxText+len("…") || !utf8.ValidString(got) || !strings.HasSuffix(got, "é…") {
			t.Errorf("%d bytes: %q", len(got), got[len(got)-8:])
		}
	}
}
