package check

import (
	"encoding/json"
	"fmt"

	"github.com/mcpbridge/bridge/upstream/stdio"
)

// hearing takes the upstream client's log, in which it says what a report should:
// which tools it leaves out because of their header annotations (B-23), and how much
// a process printed that is no message.
type hearing struct {
	*Report
	noise int // lines of a process's standard output that are no messages
}

// Write implements io.Writer.
func (h *hearing) Write(line []byte) (int, error) {
	var entry struct{ Tool, Reason, Message string }
	switch err := json.Unmarshal(line, &entry); {
	case err != nil:
	case entry.Tool != "":
		h.ToolProblems = append(h.ToolProblems, ToolProblem{printable(entry.Tool), entry.Reason})
		h.Tools++ // it is not in the result
	case entry.Message == stdio.SkippedLine:
		h.noise++
	}
	return len(line), nil
}

// tell adds to a problem what the process printed that is no answer.
func (h *hearing) tell() {
	switch {
	case h.Problem == "" || h.noise == 0:
	case h.noise == 1:
		h.Problem += "; it printed 1 line that is no MCP message on its standard output"
	case h.noise >= stdio.SkippedBurst:
		h.Problem += fmt.Sprintf("; it printed %d lines or more that are no MCP messages on its standard output", h.noise)
	default:
		h.Problem += fmt.Sprintf("; it printed %d lines that are no MCP messages on its standard output", h.noise)
	}
}
