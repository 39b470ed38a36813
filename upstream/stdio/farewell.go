package stdio

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/mcpbridge/bridge/internal/clip"
	"github.com/mcpbridge/bridge/observe"
	"github.com/mcpbridge/bridge/upstream"
)

// farewellGrace is how long a call that a process left without an answer waits to learn how that ended.
const farewellGrace = time.Second

// explain adds to the failure of a call that its child ended how it did. What the bridge itself ended has said so.
func (s *Client) explain(ctx context.Context, c *child, f *upstream.Failure) {
	if c == nil || c.alive() || c.blamed() || c.ours.Load() || s.ctx.Err() != nil {
		return
	}
	if c.isDone(ctx) {
		f.Detail += c.farewell(s.opt.Tell, s.opt.Tail)
	}
}

// isDone reports whether a process that ends is done, for which it waits a moment.
func (p *process) isDone(ctx context.Context) bool {
	late := time.NewTimer(farewellGrace)
	defer late.Stop()
	select {
	case <-p.done:
		return true
	case <-late.C:
	case <-ctx.Done():
	}
	return false
}

// keepsEnding says of a command that it is not started for a while, and how it ended last.
func (s *Client) keepsEnding(ctx context.Context, wait time.Duration) string {
	text := fmt.Sprintf("the upstream command %s keeps ending; it is started again in %s", s.opt.name(), wait.Round(time.Second))
	s.mu.Lock()
	last := s.buried
	s.mu.Unlock()
	if last == nil || !last.isDone(ctx) {
		return text
	}
	return text + last.farewell(s.opt.Tell, s.opt.Tail)
}

// farewell says how a process ended that is done, and what it printed last, or to those who are not to know that where it is.
func (p *process) farewell(tell bool, tail *Tail) string {
	text := " (" + p.cmd.ProcessState.String() + ")"
	if !tell {
		return text + "; its messages are in the log"
	}
	if words := lastWords(tail.Lines(), p.cmd.Process.Pid); words != "" {
		text += "; its last words: " + words
	}
	return text
}

// Bounds on the last words of a process: an error of the bridge's own has room for them.
const (
	maxLastLines = 5
	maxLastBytes = 280
)

// lastWords joins the last lines of a process that tell something. The reason of a crash often stands before the frames
// of a stack and closing brackets.
func lastWords(lines []observe.Printed, pid int) string {
	var told []string
	room := maxLastBytes
	for _, line := range slices.Backward(lines) {
		if line.PID != pid || strings.HasPrefix(line.Text, "at ") || !strings.ContainsFunc(line.Text, unicode.IsLetter) {
			continue
		}
		text := clip.Line(line.Text)
		if room -= len(text); room < 0 && told != nil || len(told) == maxLastLines {
			break
		}
		told = append(told, text)
	}
	slices.Reverse(told)
	return strings.Join(told, " | ")
}
