package check

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/mcpbridge/bridge/internal/clip"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/observe"
)

// Report is what a look at a server found out.
type Report struct {
	URL           string        `json:"url"` // of a command its name
	Usable        bool          `json:"usable"`
	Problem       string        `json:"problem,omitempty"`
	Note          string        `json:"note,omitempty"`
	Environment   string        `json:"environment,omitempty"` // that a command got, where it may get another one
	Milliseconds  int64         `json:"milliseconds"`          // until it was known what the server is
	Era           string        `json:"era"`
	Versions      []string      `json:"versions,omitempty"`
	Server        string        `json:"server,omitempty"`
	Capabilities  []string      `json:"capabilities,omitempty"`
	Authorization string        `json:"authorization"`
	Login         string        `json:"login,omitempty"`    // of the bridge's own, where the server wants one
	Resource      string        `json:"resource,omitempty"` // for which the server accepts tokens
	Signing       string        `json:"signing,omitempty"`  // who can sign in to it
	Tools         int           `json:"tools"`
	ToolProblems  []ToolProblem `json:"toolProblems,omitempty"`
	Clients       []ClientView  `json:"clients,omitempty"`
	Instead       string        `json:"instead,omitempty"` // who answers for clients that cannot be asked
	Store         *Store        `json:"store,omitempty"`   // nil: sessions are in memory
}

// Store is what a look at the store of sessions found out.
type Store struct {
	Kind    string   `json:"kind"`
	Problem string   `json:"problem,omitempty"` // why the bridge could not use it
	Notes   []string `json:"notes,omitempty"`
}

// ToolProblem says why clients will not see a tool.
type ToolProblem struct {
	Tool   string `json:"tool"`
	Reason string `json:"reason"`
}

// ClientView is what clients of one revision get.
type ClientView struct {
	Version   string        `json:"version"`
	Relayed   bool          `json:"relayed,omitempty"` // to the server, unchanged; what follows then is the server's business
	Tools     int           `json:"tools,omitempty"`
	Omitted   []ToolProblem `json:"omitted,omitempty"` // besides those of all clients
	Questions string        `json:"questions,omitempty"`
}

// ErrUnusable ends a check of a server that the bridge cannot use.
var ErrUnusable = errors.New("the bridge cannot use this server")

// ErrStopped ends a check that nobody waits for any more.
var ErrStopped = errors.New("the check was stopped before it was known what the server is")

// ErrUnusableStore ends a check of a server with which nothing is wrong.
var ErrUnusableStore = errors.New("the bridge cannot use this store of sessions")

// Print writes the report, in which nothing has a terminal do anything. Its error makes the
// exit status say what it says.
func (r *Report) Print(w io.Writer, asJSON bool) error {
	text := r.text()
	if asJSON {
		var b strings.Builder
		out := json.NewEncoder(&b)
		out.SetIndent("", "  ")
		out.SetEscapeHTML(false)
		if err := out.Encode(r); err != nil {
			return err
		}
		text = clip.Lines(b.String()) // JSON says some of it otherwise, and leaves the rest
	}
	if _, err := io.WriteString(w, text); err != nil {
		return err
	}
	switch {
	case !r.Usable:
		return ErrUnusable
	case r.Store != nil && r.Store.Problem != "":
		return ErrUnusableStore
	}
	return nil
}

func (s *Store) text(line func(name, format string, args ...any)) {
	if s == nil {
		return
	}
	if s.Problem != "" {
		line("store", "%s, cannot be used: %s", s.Kind, s.Problem)
		return
	}
	line("store", "%s, can be used", s.Kind)
	for _, note := range s.Notes {
		line("", "- %s", note)
	}
}

func (r *Report) text() string {
	var b strings.Builder
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "  %-14s %s\n", name, clip.Printable(fmt.Sprintf(format, args...))) // no peer makes lines
	}
	fmt.Fprintf(&b, "%s\n", clip.Printable(r.URL))
	line("usable", "%s", map[bool]string{true: "yes", false: "no"}[r.Usable])
	if r.Problem != "" {
		line("problem", "%s", r.Problem)
	}
	if r.Note != "" {
		line("note", "%s", r.Note)
	}
	if r.Environment != "" {
		line("environment", "%s", r.Environment)
	}
	line("era", "%s%s", r.Era, parenthesis(strings.Join(r.Versions, ", ")))
	if r.Server != "" || r.Capabilities != nil {
		line("server", "%s, answered in %d ms", cmp.Or(r.Server, "nameless"), r.Milliseconds)
		line("capabilities", "%s", cmp.Or(strings.Join(r.Capabilities, ", "), "none"))
	}
	line("authorization", "%s", r.Authorization)
	if r.Resource != "" {
		line("", "- accepts tokens for %s", r.Resource)
		line("", "- %s", r.Signing)
	}
	if r.Login != "" {
		line("login", "%s", r.Login)
	}
	r.tools(line)
	r.Store.text(line)
	if r.Clients != nil {
		if r.Instead != "" {
			line("instead", "%s for clients that cannot be asked", r.Instead)
		}
		fmt.Fprintf(&b, "\n  clients of     get\n")
	}
	for _, c := range r.Clients {
		if c.Relayed {
			line(c.Version, "the server itself: relayed unchanged")
			continue
		}
		line(c.Version, "%d of %s; questions: %s", c.Tools, observe.Plural(r.Tools, "tool"), c.Questions)
		for _, o := range c.Omitted {
			line("", "- without %s: %s", o.Tool, o.Reason)
		}
	}
	return b.String()
}

func (r *Report) tools(line func(name, format string, args ...any)) {
	if r.Capabilities != nil || r.Tools > 0 {
		line("tools", "%d", r.Tools)
	}
	for _, p := range r.ToolProblems {
		line("", "- %s is left out for every client: %s", p.Tool, p.Reason)
	}
}

func parenthesis(text string) string {
	if text == "" {
		return ""
	}
	return " (" + text + ")"
}

// questions says what a server can ask clients of a revision, if they declare
// it (C.4 to C.8).
func questions(v mcp.Version) string {
	switch {
	case v.AtLeast(mcp.V20251125):
		return "forms, URLs, sampling with tools, roots"
	case v.AtLeast(mcp.V20250618):
		return "forms, sampling, roots"
	default:
		return "sampling, roots"
	}
}
