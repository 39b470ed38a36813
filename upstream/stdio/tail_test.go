package stdio

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rs/zerolog"
)

// TestTheTailHasTheLastLines: also those that were too many for the log.
func TestTheTailHasTheLastLines(t *testing.T) {
	var text strings.Builder
	for i := range 3 * tailLines {
		fmt.Fprintf(&text, "line %d\n", i)
	}
	fmt.Fprintln(&text, strings.Repeat("x", stderrPerMinute))
	tail := &Tail{}
	relayStderr(strings.NewReader(text.String()), stderrLog{log: zerolog.Nop(), tail: tail, pid: 7})
	lines := tail.Lines()
	if len(lines) != tailLines {
		t.Fatalf("%d lines", len(lines))
	}
	if last := lines[tailLines-1]; last.PID != 7 || len(last.Text) > tailLine+len("…") || !strings.HasPrefix(last.Text, "xxx") {
		t.Errorf("%+v", last)
	}
	if first := lines[0].Text; first != fmt.Sprintf("line %d", 2*tailLines+1) {
		t.Errorf("%q", first)
	}
	if (*Tail)(nil).Lines() != nil {
		t.Error("nobody remembers something")
	}
}
