package bridge

import (
	"slices"
	"sync"

	"github.com/mcpbridge/bridge/internal/fault"
	"github.com/mcpbridge/bridge/internal/logfield"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/observe"
	"github.com/mcpbridge/bridge/translate"
)

// rules returns the downlevel rules of sessions that negotiated version.
func (b *Bridge) rules(version mcp.Version) *translate.Rules {
	if i := slices.Index(mcp.Legacy[:], version); i >= 0 {
		return &b.ruled[i]
	}
	rules := b.newRules(version)
	return &rules
}

func (b *Bridge) newRules(version mcp.Version) translate.Rules {
	rules := b.opt.Rules
	rules.Version = version
	rules.Report = b.logOmission
	if watch := b.opt.Watch; watch != nil {
		rules.Lost = watch.Lost
	}
	rules.AnsweredFor = b.opt.Ask != nil
	return rules
}

// logOmission logs what was left out of a list, so that one bad entry neither spoils
// the rest nor vanishes without a trace (B-23).
func (b *Bridge) logOmission(o translate.Omission) {
	b.omitted.note(o)
	b.notices.omitted.Warn().Str(logfield.Method, o.Method).Str(logfield.Entry, o.Name).Str(logfield.Cause, o.Reason).
		Msg("an entry of the upstream's list is not shown to clients")
}

// Omissions returns the entries of the server's lists that clients do not get to see.
func (b *Bridge) Omissions() []observe.Omission {
	b.omitted.mu.Lock()
	defer b.omitted.mu.Unlock()
	return slices.Clone(b.omitted.known)
}

// Omit notes that a tool is not shown to clients, as the upstream's client decided.
func (b *Bridge) Omit(tool, reason string) {
	b.omitted.note(translate.Omission{Method: mcp.MethodToolsList, Name: tool, Reason: reason})
}

// omissions remembers what was left out, once each.
type omissions struct {
	mu    sync.Mutex
	known []observe.Omission
}

// maxOmissions bounds how many are remembered; the log has them all.
const maxOmissions = 100

func (o *omissions) note(left translate.Omission) {
	o.mu.Lock()
	defer o.mu.Unlock()
	entry := observe.Omission{Method: left.Method, Name: fault.Clip(left.Name), Reason: fault.Clip(left.Reason)}
	if len(o.known) < maxOmissions && !slices.Contains(o.known, entry) {
		o.known = append(o.known, entry)
	}
}
