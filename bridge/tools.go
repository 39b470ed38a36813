package bridge

import (
	"sync"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/rawjson"
	"github.com/mcpbridge/bridge/translate"
)

// toolbox remembers, per principal, the few facts about tools that later calls
// depend on. It learns from every tools/list result that passes; a page that
// says what it said before is recognised by its hash and not read again.
type toolbox struct {
	mu         sync.RWMutex
	principals map[string]*tools
}

// tools are one principal's tools, as far as they differ from most.
type tools struct {
	pages map[string]uint64    // hash of the latest result, by raw cursor
	facts map[string]toolFacts // by name; tools without any are not listed
}

// toolFacts is what a call needs to know of its tool.
type toolFacts struct {
	wrapped    bool // its output schema is shown wrapped as {"result": …} (Q10)
	repeatable bool // calling it twice does no more than calling it once (D-15)
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

// about returns the facts of the tool with this raw name.
func (b *toolbox) about(principal string, raw []byte) toolFacts {
	b.mu.RLock()
	defer b.mu.RUnlock()
	known := b.principals[principal]
	if known == nil || len(known.facts) == 0 {
		return toolFacts{}
	}
	name, _ := rawjson.Text(raw)
	return known.facts[name]
}

// learn reads the upstream's answer to a tools/list.
func (b *toolbox) learn(principal string, req *downstream.Request, page *list) {
	cursor := string(rawjson.Get(req.Params, "cursor"))
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
	known = b.room(principal)
	if len(cursor) <= maxCursor {
		known.pages[cursor] = page.hash
	}
	for name, f := range facts {
		if f == (toolFacts{}) {
			delete(known.facts, name)
		} else {
			known.facts[name] = f
		}
	}
}

// room returns the principal's entry, emptied when it is full. The caller holds mu.
func (b *toolbox) room(principal string) *tools {
	known := b.principals[principal]
	if known == nil || len(known.pages) >= maxToolPages || len(known.facts) >= maxToolFacts {
		if len(b.principals) >= maxToolPrincipals {
			clear(b.principals)
		}
		known = &tools{pages: make(map[string]uint64), facts: make(map[string]toolFacts)}
		b.principals[principal] = known
	}
	return known
}

// readTools lists every tool of a page, also those without facts: their earlier
// ones no longer hold. Which output schemas are wrapped is the same for all
// versions that have output schemas.
func readTools(result []byte) map[string]toolFacts {
	facts := make(map[string]toolFacts)
	for tool := range rawjson.Elements(rawjson.Get(result, "tools")) {
		name, _ := rawjson.Text(rawjson.Get(tool, "name"))
		hints := rawjson.Get(tool, "annotations")
		facts[name] = toolFacts{repeatable: isTrue(hints, "readOnlyHint") || isTrue(hints, "idempotentHint")}
	}
	for name := range (translate.Rules{Version: mcp.V20251125}).WrappedTools(result) {
		f := facts[name]
		f.wrapped = true
		facts[name] = f
	}
	return facts
}

func isTrue(object []byte, name string) bool { return string(rawjson.Get(object, name)) == "true" }
