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

// toolbox remembers, per audience, the few facts about tools that later calls
// depend on. It learns from every tools/list result that passes; a page that
// says what it said before is recognised by its hash and not read again.
type toolbox struct {
	clock atomic.Uint64 // counts what was learnt: uses only read it
	wraps atomic.Bool   // some tool was shown wrapped

	mu        sync.RWMutex
	audiences map[string]*tools
	size      int // of all of them, in bytes
}

// tools are one audience's tools, as far as they differ from most.
type tools struct {
	pages map[string]uint64 // hash of the latest result, by raw cursor
	facts map[string]Tool   // by name; tools without any are not listed
	used  atomic.Uint64     // when, by the clock of the toolbox
	size  int               // of the cursors and names, in bytes, with what each costs besides
}

// Tool is what a call needs to know of its tool. The zero Tool is one that nobody
// listed or that is like most.
type Tool struct {
	Wrapped    bool // its output schema is shown wrapped as {"result": …} (Q10)
	Repeatable bool // calling it twice does no more than calling it once (D-15)
}

// Bounds of the toolbox: of the texts of a cursor and a name, and of all of one audience and
// of everybody, in bytes. What is forgotten is learnt again from the next list.
const (
	maxCursor        = 1 << 10
	maxToolName      = 1 << 10
	maxToolAudiences = 1024
	maxToolPages     = 1024
	maxToolFacts     = 8192
	maxToolsSize     = 1 << 20
	maxToolboxSize   = 16 << 20
	entryCost        = 96 // of a cursor or name besides its text, about
)

func newToolbox() *toolbox {
	return &toolbox{audiences: make(map[string]*tools)}
}

func (b *toolbox) about(audience string, raw []byte) Tool {
	b.mu.RLock()
	defer b.mu.RUnlock()
	known := b.audiences[audience]
	if known == nil {
		return Tool{}
	}
	known.use(b.clock.Load())
	if len(known.facts) == 0 {
		return Tool{}
	}
	name, _ := rawjson.Name(raw)
	return known.facts[name]
}

// Of the tools that one session was shown wrapped so many are remembered with it, with names of so many bytes.
const (
	maxShown     = 64
	maxShownName = 128
)

// wrapped returns the names of the tools that an audience is shown wrapped, in order, as far as a session remembers them.
func (b *toolbox) wrapped(audience string) (names []string) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	if known := b.audiences[audience]; known != nil {
		for name, f := range known.facts {
			if f.Wrapped && len(name) <= maxShownName {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return names[:min(len(names), maxShown)]
}

func (b *toolbox) knowsOf(audience string) bool {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.audiences[audience] != nil
}

// learn reads the page of a list that came for a raw cursor. held is told what that takes.
func (b *toolbox) learn(audience string, raw []byte, page *list, held translate.Held) {
	cursor := string(raw)
	b.mu.RLock()
	known := b.audiences[audience]
	seen := known != nil && known.pages[cursor] == page.key.hash
	b.mu.RUnlock()
	if seen {
		return
	}
	facts := readTools(page.source, b.knows(known), held)
	for _, f := range facts {
		if f.Wrapped {
			b.wraps.Store(true)
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	known = b.roomLocked(audience)
	known.use(b.clock.Add(1))
	b.size -= known.size
	known.note(cursor, page.key.hash)
	for name, f := range facts {
		known.set(name, f)
	}
	if b.size += known.size; b.size > maxToolboxSize {
		b.forgetLocked()
	}
}

// knows returns whether anything is known of a tool of an audience, nil for none.
func (b *toolbox) knows(of *tools) func(name string) bool {
	return func(name string) bool {
		if of == nil {
			return false
		}
		b.mu.RLock()
		defer b.mu.RUnlock()
		_, known := of.facts[name]
		return known
	}
}

// use notes when the audience's tools were used last. Calls that come between two lists write
// nothing that other calls read.
func (t *tools) use(now uint64) {
	if t.used.Load() != now {
		t.used.Store(now)
	}
}

// note remembers the hash of a page.
func (t *tools) note(cursor string, hash uint64) {
	if _, known := t.pages[cursor]; !known {
		if len(cursor) > maxCursor {
			return
		}
		t.size += len(cursor) + entryCost
	}
	t.pages[cursor] = hash
}

// set replaces what is known of a tool.
func (t *tools) set(name string, f Tool) {
	if _, known := t.facts[name]; known {
		delete(t.facts, name)
		t.size -= len(name) + entryCost
	}
	if f != (Tool{}) && len(name) <= maxToolName && t.size < maxToolsSize {
		t.facts[name] = f
		t.size += len(name) + entryCost
	}
}

// roomLocked returns the audience's entry, emptied when it is full.
func (b *toolbox) roomLocked(audience string) *tools {
	known := b.audiences[audience]
	if known == nil || known.full() {
		if known != nil {
			b.size -= known.size
			delete(b.audiences, audience)
		}
		if len(b.audiences) >= maxToolAudiences {
			b.forgetLocked()
		}
		known = &tools{pages: make(map[string]uint64), facts: make(map[string]Tool)}
		b.audiences[audience] = known
	}
	return known
}

func (t *tools) full() bool {
	return len(t.pages) >= maxToolPages || len(t.facts) >= maxToolFacts || t.size >= maxToolsSize
}

// forgetLocked drops the quarter of the audiences that was not used for longest: others,
// and be they made up, must not have those forgotten that are in use.
func (b *toolbox) forgetLocked() {
	all := slices.Collect(maps.Keys(b.audiences))
	slices.SortFunc(all, func(x, y string) int {
		return cmp.Compare(b.audiences[x].used.Load(), b.audiences[y].used.Load())
	})
	for _, audience := range all[:(len(all)+3)/4] {
		b.size -= b.audiences[audience].size
		delete(b.audiences, audience)
	}
}

// readTools lists the tools of a page that have facts, as many as are remembered, and those that had: their
// earlier ones no longer hold. Which output schemas are wrapped is the same for all
// versions that have output schemas.
func readTools(result []byte, had func(name string) bool, held translate.Held) map[string]Tool {
	facts := make(map[string]Tool)
	rules := translate.Rules{Version: mcp.V20251125, Held: held}
	for tool := range rawjson.Elements(rawjson.Get(result, "tools")) {
		name, _ := rawjson.Name(rawjson.Get(tool, "name"))
		hints := rawjson.Get(tool, "annotations")
		f := Tool{Repeatable: isTrue(hints, "readOnlyHint") || isTrue(hints, "idempotentHint"), Wrapped: rules.Wraps(tool)}
		before, listed := facts[name]
		f.Wrapped = f.Wrapped || before.Wrapped
		if listed || had(name) || f != (Tool{}) && len(facts) < maxToolFacts {
			facts[name] = f
		}
	}
	return facts
}

func isTrue(object []byte, name string) bool { return string(rawjson.Get(object, name)) == "true" }
