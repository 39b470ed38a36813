package catalog

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/rawjson"
	"github.com/mcpbridge/bridge/translate"
)

// toolbox remembers, per principal, the few facts about tools that later calls
// depend on. It learns from every tools/list result that passes; a page that
// says what it said before is recognised by its hash and not read again.
type toolbox struct {
	clock atomic.Uint64 // counts uses

	mu         sync.RWMutex
	principals map[string]*tools
}

// tools are one principal's tools, as far as they differ from most.
type tools struct {
	pages map[string]uint64 // hash of the latest result, by raw cursor
	facts map[string]Tool   // by name; tools without any are not listed
	used  atomic.Uint64     // when, by the clock of the toolbox
}

// Tool is what a call needs to know of its tool. The zero Tool is one that nobody
// listed or that is like most.
type Tool struct {
	Wrapped    bool // its output schema is shown wrapped as {"result": …} (Q10)
	Repeatable bool // calling it twice does no more than calling it once (D-15)
}

// Bounds of the toolbox, maxCursor in bytes. What is forgotten is learnt again from
// the next list.
const (
	maxCursor         = 1 << 10
	maxToolPrincipals = 1024
	maxToolPages      = 1024
	maxToolFacts      = 8192
)

func newToolbox() *toolbox {
	return &toolbox{principals: make(map[string]*tools)}
}

func (b *toolbox) about(principal string, raw []byte) Tool {
	b.mu.RLock()
	defer b.mu.RUnlock()
	known := b.principals[principal]
	if known == nil {
		return Tool{}
	}
	known.used.Store(b.clock.Add(1))
	if len(known.facts) == 0 {
		return Tool{}
	}
	name, _ := rawjson.Text(raw)
	return known.facts[name]
}

// learn reads the page of a list that came for a raw cursor.
func (b *toolbox) learn(principal string, raw []byte, page *list) {
	cursor := string(raw)
	b.mu.RLock()
	known := b.principals[principal]
	seen := known != nil && known.pages[cursor] == page.hash
	b.mu.RUnlock()
	if seen {
		return
	}
	facts := readTools(page.source)
	b.mu.Lock()
	defer b.mu.Unlock()
	known = b.roomLocked(principal)
	known.used.Store(b.clock.Add(1))
	if len(cursor) <= maxCursor {
		known.pages[cursor] = page.hash
	}
	for name, f := range facts {
		if f == (Tool{}) {
			delete(known.facts, name)
		} else {
			known.facts[name] = f
		}
	}
}

// roomLocked returns the principal's entry, emptied when it is full.
func (b *toolbox) roomLocked(principal string) *tools {
	known := b.principals[principal]
	if known == nil || len(known.pages) >= maxToolPages || len(known.facts) >= maxToolFacts {
		if len(b.principals) >= maxToolPrincipals {
			b.forgetLocked()
		}
		known = &tools{pages: make(map[string]uint64), facts: make(map[string]Tool)}
		b.principals[principal] = known
	}
	return known
}

// forgetLocked drops the quarter of the principals that was not used for longest: others,
// and be they made up, must not have those forgotten that are in use.
func (b *toolbox) forgetLocked() {
	all := slices.Collect(maps.Keys(b.principals))
	slices.SortFunc(all, func(x, y string) int {
		return cmp.Compare(b.principals[x].used.Load(), b.principals[y].used.Load())
	})
	for _, principal := range all[:(len(all)+3)/4] {
		delete(b.principals, principal)
	}
}

// readTools lists every tool of a page, also those without facts: their earlier
// ones no longer hold. Which output schemas are wrapped is the same for all
// versions that have output schemas.
func readTools(result []byte) map[string]Tool {
	facts := make(map[string]Tool)
	for tool := range rawjson.Elements(rawjson.Get(result, "tools")) {
		name, _ := rawjson.Text(rawjson.Get(tool, "name"))
		hints := rawjson.Get(tool, "annotations")
		facts[name] = Tool{Repeatable: isTrue(hints, "readOnlyHint") || isTrue(hints, "idempotentHint")}
	}
	for name := range (translate.Rules{Version: mcp.V20251125}).WrappedTools(result) {
		f := facts[name]
		f.Wrapped = true
		facts[name] = f
	}
	return facts
}

func isTrue(object []byte, name string) bool { return string(rawjson.Get(object, name)) == "true" }
