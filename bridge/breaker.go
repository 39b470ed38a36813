package bridge

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcpbridge/bridge/bridge/call"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/rawjson"
)

// breaker keeps calls from asking in vain: clients declare capabilities that they do not
// serve (F.3). What it has switched off is not declared upstream, so that the server can
// take another path. A client that has answered once is trusted: when it does not
// do so again, a person may just be away.
type breaker struct {
	mu     sync.Mutex
	served mcp.InputKindSet // which kinds the client has answered
	off    *untilByKind     // nil while nothing is switched off
}

// untilByKind tells until when kinds are switched off; the past stands for not.
type untilByKind [mcp.InputKinds]time.Time

// distrust switches a kind off, for a while only if the client has never served it. It
// reports whether it has.
func (b *breaker) distrust(k mcp.InputKind, d time.Duration) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if k >= mcp.InputKinds || d != call.ForGood && b.served.Has(k) {
		return false
	}
	b.switchLocked(k, time.Now().Add(d))
	return true
}

func (b *breaker) switchLocked(k mcp.InputKind, until time.Time) {
	if b.off == nil {
		b.off = new(untilByKind)
	}
	b.off[k] = until
}

// trust notes that the client serves a kind. It reports whether that is news.
func (b *breaker) trust(k mcp.InputKind) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if k >= mcp.InputKinds {
		return false
	}
	news := !b.served.Has(k)
	b.served = b.served.With(k)
	if b.off != nil {
		news = news || !b.off[k].IsZero()
		b.off[k] = time.Time{}
	}
	return news
}

// proven returns which kinds the client has answered.
func (b *breaker) proven() mcp.InputKindSet {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.served
}

// names returns the capabilities that are switched off now.
func (b *breaker) names() (off []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.off == nil {
		return nil
	}
	now := time.Now()
	for k, until := range b.off {
		if now.Before(until) {
			off = append(off, mcp.InputKind(k).Capability())
		}
	}
	return off
}

// distrusts reports whether what needs a capability is switched off.
func (b *breaker) distrusts(capability string) bool {
	name, _, _ := strings.Cut(capability, ".")
	return slices.Contains(b.names(), name)
}

// less returns capabilities without those that are switched off.
func (b *breaker) less(capabilities []byte) []byte {
	var edits []rawjson.Edit
	for _, name := range b.names() {
		edits = append(edits, rawjson.Edit{Name: name})
	}
	if edits == nil {
		return capabilities
	}
	return rawjson.Apply(nil, capabilities, edits...)
}

// record writes what there is to remember into r.
func (b *breaker) record(r *sessionRecord) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for k := range mcp.InputKinds {
		if b.served.Has(k) {
			r.Proven = append(r.Proven, k.Capability())
		}
	}
	if b.off == nil {
		return
	}
	r.Breaker = make(map[string]time.Time)
	for k, until := range b.off {
		if !until.IsZero() {
			r.Breaker[mcp.InputKind(k).Capability()] = until
		}
	}
}

// adopt takes over what a record says otherwise than the one before; an empty one before
// for all that it says.
func (b *breaker) adopt(before, r *sessionRecord) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for k := range mcp.InputKinds {
		name := k.Capability()
		if slices.Contains(r.Proven, name) {
			b.served = b.served.With(k)
		}
		if until := r.Breaker[name]; !until.Equal(before.Breaker[name]) {
			b.switchLocked(k, until)
		}
	}
}
