package bridge

import (
	"slices"
	"sync"

	"github.com/rs/zerolog"

	"github.com/mcpbridge/bridge/internal/fault"
	"github.com/mcpbridge/bridge/internal/logfield"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/observe"
	"github.com/mcpbridge/bridge/translate"
)

// rulebook has the rules of every revision, and what they left out.
type rulebook struct {
	opt     *Options
	log     zerolog.Logger                   // of omissions
	ruled   [len(mcp.Legacy)]translate.Rules // for clients of mcp.Legacy
	omitted omissions
}

func (b *rulebook) write(opt *Options) {
	b.opt, b.log = opt, logfield.AtMost(100, opt.Log)
	for i, version := range mcp.Legacy {
		b.ruled[i] = b.of(version)
	}
}

// at returns the downlevel rules of sessions that negotiated version.
func (b *rulebook) at(version mcp.Version) *translate.Rules {
	if i := slices.Index(mcp.Legacy[:], version); i >= 0 {
		return &b.ruled[i]
	}
	rules := b.of(version)
	return &rules
}

func (b *rulebook) of(version mcp.Version) translate.Rules {
	rules := b.opt.Rules
	rules.Version = version
	rules.Report = b.report
	if watch := b.opt.Watch; watch != nil {
		rules.Lost = func(what string) { watch.Lost(version, what) }
	}
	rules.AnsweredFor = b.opt.Ask != nil
	return rules
}

// report logs what was left out of a list, so that one bad entry neither spoils the rest
// nor vanishes without a trace (B-23).
func (b *rulebook) report(o translate.Omission) {
	b.omitted.note(o)
	b.log.Warn().Str(logfield.Method, o.Method).Str(logfield.Entry, o.Name).Str(logfield.Cause, o.Reason).
		Msg("an entry of the upstream's list is not shown to clients")
}

// omissions remembers what was left out, once each.
type omissions struct {
	mu    sync.Mutex
	known []observe.Omission
}

func (o *omissions) all() []observe.Omission {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.known)
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
