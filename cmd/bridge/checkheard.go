package main

import (
	"encoding/json"
	"strings"
)

// hearing takes the upstream client's log, in which it says what a report should:
// which tools it leaves out because of their header annotations (B-23), and what
// a process had to say before it ended.
type hearing struct {
	*report
	last   string // line of a process's standard error
	status string // with which the process ended
}

// Write implements io.Writer.
func (h *hearing) Write(line []byte) (int, error) {
	var entry struct{ Tool, Reason, Stderr, Status string }
	switch err := json.Unmarshal(line, &entry); {
	case err != nil:
	case entry.Tool != "":
		h.ToolProblems = append(h.ToolProblems, toolProblem{printable(entry.Tool), entry.Reason})
		h.Tools++ // it is not in the result
	case entry.Stderr != "":
		h.last = printable(entry.Stderr)
	case entry.Status != "" && h.status == "":
		h.status = entry.Status
	}
	return len(line), nil
}

// tell adds the last words of a process to the problem that it is. A process
// that check itself ended has none.
func (h *hearing) tell() {
	if !strings.Contains(h.Problem, "ended") {
		return
	}
	h.Problem += parenthesis(h.status)
	if h.last != "" {
		h.Problem += "; its last words: " + h.last
	}
}
