// Package translate turns messages of one era into messages of the other.
//
// It owns every rule that reads or changes a payload: what a legacy client's
// request becomes upstream, and what a modern server's result, notification,
// input request or error becomes for a client of a given legacy revision. The
// rules are numbered; docs/translation.md says what each number means.
//
// It does not own state, time, ids or the wire: every function is pure, and
// whoever calls it decides when a round is sent, which progress token it
// carries and where a message goes. It does not judge peers either: the era and
// the version were settled before.
//
// # Aliasing
//
// Payloads are edited where a rule says so and spliced through everywhere else
// (P-6). A payload that no rule touches comes back as the very slice that was
// passed in, without a copy. So callers must treat both, argument and return
// value, as read-only, and must not reuse the memory of the argument while the
// return value is in use.
//
// All JSON arguments must have passed rawjson.Validate.
package translate

import (
	"github.com/mcpbridge/bridge/mcp"
)

// A Profile says how thoroughly results are brought down to the client's
// revision (P-2).
type Profile int

const (
	// Strict also removes the members that the modern revision defines and the
	// negotiated revision does not. It is the default (Q3).
	Strict Profile = iota
	// Minimal repairs only what can break a client: union discriminators,
	// changed types, required members and methods.
	Minimal
)

// String returns the profile's name in the configuration.
func (p Profile) String() string {
	if p == Minimal {
		return "minimal"
	}
	return "strict"
}

// Rules select the translation for one client. Only Version is required;
// the zero value of every other field is the default behaviour. Rules are a
// value: set the fields that belong to one call on a copy.
type Rules struct {
	Version mcp.Version // the negotiated legacy revision
	Profile Profile

	// DropNonObject removes output schemas and structured contents that are no
	// JSON objects, instead of wrapping them as {"result": …} (Q10).
	DropNonObject bool

	// WrapOutput says that the tool being called was listed with a wrapped
	// output schema (see Wraps). Its structuredContent is then wrapped
	// even when it is an object, so that it matches the schema that the client
	// was given. It belongs to one call; without it only the value decides.
	WrapOutput bool

	// CancelMultiSelect answers multi-select questions for 2025-06-18 clients
	// with cancel instead of expanding them into one boolean per option (Q12).
	CancelMultiSelect bool

	// HostTasks marks every tool as able to run as a task that the bridge hosts
	// (mode 2, G.3). Only 2025-11-25 knows such tasks.
	HostTasks bool
	// AnsweredFor says that somebody is configured to answer for clients that cannot be
	// asked, so that errors need not say that this is possible.
	AnsweredFor bool

	// Capabilities are the capabilities that the client declared, as JSON. Only
	// Error looks at them, and only for errors that presuppose one (F.2).
	Capabilities []byte

	// RejectTool, when set, is asked about every listed tool and returns why
	// clients must not see it; empty means they may (B-23).
	RejectTool func(tool []byte) (reason string)

	// Report, when set, is told of every entry that was left out of a list, on
	// the calling goroutine.
	Report func(Omission)

	// Held, when set, is told how much memory a result or a question takes while it is translated, and
	// after that by how much it has grown.
	Held Held

	// Lost, when set, is told of everything that clients of the revision get in other
	// words or not at all, by one of the words of Losses, on the calling goroutine.
	Lost func(what string)
	// LostTo, when set, is told the same for one client: of a list that was gone over for
	// another client of the revision, too.
	LostTo func(what string)
}

// Losses are the words for what older revisions cannot say.
var Losses = []string{
	lostTool, lostSchema, wrappedSchema, lostOutput, wrappedOutput, lostAudio, lostLink, lostBlock, lostTitles, lostMulti,
}

const (
	lostTool      = "tool_excluded"
	lostSchema    = "schema_removed"
	wrappedSchema = "schema_wrapped"
	lostOutput    = "output_removed"
	wrappedOutput = "output_wrapped"
	lostAudio     = "audio"
	lostLink      = "resource_link"
	lostBlock     = "unknown_block"
	lostTitles    = "titled_enum"
	lostMulti     = "multi_select"
)

func (r *Rules) lost(what string) {
	if r.Lost != nil {
		r.Lost(what)
	}
	if r.LostTo != nil {
		r.LostTo(what)
	}
}

// An Omission is a list entry that was left out so that the rest of the list
// stays usable (B-23).
type Omission struct {
	Method string // of the list request
	Name   string // of the entry, at most 64 bytes; empty when it has none
	Reason string // for the log; holds nothing of the entry
}

// A Malformed result does not have the shape that its method requires (B-30).
// It is the upstream's fault and ends the request with -32603.
type Malformed struct {
	Method string
	Reason string // a fixed phrase, without anything of the payload
}

// Error names the method and the fault.
func (e *Malformed) Error() string {
	return "the upstream server's " + e.Method + " result is malformed: " + e.Reason
}

// removals are the members that are cut from results of one client.
type removals struct {
	title       bool // of tools, prompts, resources: before 2025-06-18
	icons       bool // before 2025-11-25
	meta        bool // of listed objects and content: before 2025-06-18
	modified    bool // annotations.lastModified: before 2025-06-18
	annotations bool // of tools: before 2025-03-26
	output      bool // outputSchema, structuredContent: before 2025-06-18
	header      bool // the x-mcp-header keyword: always
	moveTitle   bool // a tool's title goes to its annotations: 2025-03-26
	message     bool // of progress: before 2025-03-26
}

// removals returns what the strict profile removes; the minimal one nothing.
func (r *Rules) removals() removals {
	if r.Profile == Minimal {
		return removals{}
	}
	if r.Version.AtLeast(mcp.V20251125) {
		return removals{header: true}
	}
	if r.Version.AtLeast(mcp.V20250618) {
		return removals{header: true, icons: true}
	}
	before := !r.Version.AtLeast(mcp.V20250326)
	return removals{
		title: true, icons: true, meta: true, modified: true, output: true, header: true,
		annotations: before, message: before, moveTitle: !before,
	}
}

// hasStructured reports whether the revision defines structuredContent and
// outputSchema, both as objects.
func (r *Rules) hasStructured() bool { return r.Version.AtLeast(mcp.V20250618) }
