package transport

import (
	"errors"
	"strings"
	"testing"

	"github.com/mcpbridge/bridge/internal/budget"
)

// What has come of a line is charged, whole or not, and until the next is read. One that is
// refused is passed over like one above the limit.
func TestLinesAreChargedWhileTheyCome(t *testing.T) {
	memory := budget.New(4 << 20)
	account := memory.Guest("somebody")
	hold := budget.On(account)
	line := `{"id":1,"x":"` + strings.Repeat("x", 1<<20) + `"}`
	l := NewLineReader(strings.NewReader(line+"\n"+line+"\n{}\n"), 2<<20)
	l.Tell(&hold)
	got, err := l.Read()
	if err != nil || string(got) != line || memory.Used() < 1<<20 {
		t.Errorf("%d bytes are read, %d charged, %v", len(got), memory.Used(), err)
	}
	account.Charge(3 << 20)
	if got, err = l.Read(); !budget.Short(err) || l.Refused() == nil || !strings.HasPrefix(string(got), `{"id":1,`) || len(got) > 1<<20 {
		t.Errorf("without memory %d bytes are read, %v", len(got), err)
	}
	if tail := string(l.Tail()); !strings.HasSuffix(tail, `x"}`) {
		t.Errorf("its end is %q", tail)
	}
	if got, err = l.Read(); err != nil || string(got) != `{}` {
		t.Errorf("then comes %q, %v", got, err)
	}
	if _, err = l.Read(); err == nil || errors.Is(err, ErrTooLarge) || memory.Used() != 3<<20 {
		t.Errorf("at the end %v, and %d are charged", err, memory.Used())
	}
}
