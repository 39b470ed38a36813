package mirror

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/mcpbridge/bridge/internal/fault"
	"github.com/mcpbridge/bridge/rawjson"
)

const (
	// maxAudiences bounds the audiences whose tools are remembered. Beyond
	// it the least recently used ones are forgotten; their next annotated call
	// is refused once and repaired (B-25).
	maxAudiences = 1024
	// maxTools bounds the remembered tools of one audience. Only tools with
	// annotations are remembered, so few servers come near it.
	maxTools = 4096
	// maxPlans bounds the parsed schemas that are shared between audiences.
	maxPlans = 4096
	// maxName bounds the name of a tool with annotations, in bytes: it is kept, and goes
	// into a header.
	maxName = 1 << 10
	// maxSetBytes bounds what is kept of one audience's tools, and maxBytes of all, and of the
	// parsed schemas. Beyond them it is as beyond maxTools, maxAudiences and maxPlans.
	maxSetBytes = 1 << 20
	maxBytes    = 16 << 20
	// toolCost is about what a remembered tool costs besides its texts.
	toolCost = 128
)

// Tools remembers, per audience (hop.Audience) and tool, which arguments become headers
// (B-24, H-10). Tools without annotations, nearly all there are, take no room.
// Readers take no lock.
type Tools struct {
	clock atomic.Uint64 // counts new audiences: calls only read it
	// audiences is replaced, never changed. (A sync.Map would cost readers an
	// allocation for the key.)
	audiences atomic.Pointer[map[string]*toolSet]
	annotated names

	mu    sync.Mutex // serialises writers; guards the rest
	plans map[[sha256.Size]byte]*Plan
	texts int // of the plans, in bytes
	size  int // of all tool sets, in bytes
}

// toolSet is what one audience's tools/list results said. The map is replaced,
// never changed.
type toolSet struct {
	used  atomic.Uint64
	tools atomic.Pointer[map[string]*Plan]
	size  int // of the tools, in bytes; the mutex of Tools guards it
}

// sizeOf is about what it costs to remember a tool, in bytes. Plans count in full, as
// though nobody shared them.
func sizeOf(name string, p *Plan) int { return toolCost + len(name) + p.size }

// Plan returns what is known about a tool, nil when nothing is.
func (s *Tools) Plan(audience string, tool []byte) *Plan {
	set := s.of(audience)
	if set == nil {
		return nil
	}
	if now := s.clock.Load(); set.used.Load() != now {
		set.used.Store(now)
	}
	return (*set.tools.Load())[string(tool)]
}

// of returns the tools of an audience, nil when none are remembered.
func (s *Tools) of(audience string) *toolSet {
	all := s.audiences.Load()
	if all == nil {
		return nil
	}
	return (*all)[audience]
}

// Dropped is a tool that its annotations make unusable over HTTP.
type Dropped struct {
	Name   string
	Reason string
}

// Learn reads a valid tools/list result, remembers its annotations and returns
// the result without the tools that break the rules (B-23). fresh has those
// that were not already known to be illegal, for the log.
func (s *Tools) Learn(audience string, result []byte) (out []byte, fresh []Dropped) {
	set := s.of(audience)
	if set == nil && !mayAnnotate(result) {
		return result, nil
	}
	tools := rawjson.Get(result, "tools")
	if rawjson.KindOf(tools) != rawjson.Array {
		return result, nil
	}
	var old map[string]*Plan
	if set != nil {
		old = *set.tools.Load()
	}
	page, drop := s.readPage(tools, old)
	for name, p := range page {
		if p != nil && p.illegal != "" && (old[name] == nil || old[name].illegal == "") {
			fresh = append(fresh, Dropped{Name: fault.Clip(name), Reason: p.illegal})
		}
	}
	if !same(old, page) {
		s.remember(audience, page)
	}
	if drop {
		result = withoutIllegal(result, tools, page)
	}
	return result, fresh
}

// readPage parses the tools of one page: those with annotations and, with a nil plan, those that
// had some before, in old. drop says whether any tool is illegal.
func (s *Tools) readPage(tools []byte, old map[string]*Plan) (page map[string]*Plan, drop bool) {
	page = map[string]*Plan{}
	for tool := range rawjson.Elements(tools) {
		name, ok := rawjson.Name(rawjson.Get(tool, "name"))
		if !ok {
			continue
		}
		p := s.parse(rawjson.Get(tool, "inputSchema"))
		if p != nil && len(name) > maxName {
			p = longName
		}
		if page[name] = p; p == nil && old[name] == nil {
			delete(page, name)
		}
		drop = drop || p != nil && p.illegal != ""
	}
	return page, drop
}

// longName is the plan of annotated tools whose names are too long to be kept.
var longName = &Plan{illegal: fmt.Sprintf("its name is longer than %d bytes", maxName)}

// mayAnnotate is a quick test for texts that cannot contain an annotation. Its
// letters and hyphens may be spelled as escapes, so those need the full walk.
func mayAnnotate(text []byte) bool {
	if bytes.Contains(text, []byte(Annotation)) {
		return true
	}
	for {
		i := bytes.IndexByte(text, '\\')
		if i < 0 || i+len(`\u006`) > len(text) {
			return false
		}
		switch text = text[i+1:]; string(text[:len(`u006`)]) {
		case "u006", "u007", "u002":
			return true
		}
	}
}

// parse returns the plan of a schema, parsed once per distinct text, and nil
// for a schema without annotations.
func (s *Tools) parse(schema []byte) *Plan {
	if !mayAnnotate(schema) {
		return nil
	}
	key := sha256.Sum256(schema)
	s.mu.Lock()
	p, ok := s.plans[key]
	s.mu.Unlock()
	if ok {
		return p
	}
	if p = parsePlan(schema); p.illegal == "" && len(p.bindings) == 0 {
		p = nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.plans == nil || len(s.plans) >= maxPlans || s.texts > maxBytes {
		s.plans, s.texts = map[[sha256.Size]byte]*Plan{}, 0
	}
	s.plans[key] = p
	if p != nil {
		s.texts += p.size
	}
	return p
}

// same reports whether a page says nothing new, which is the rule: equal
// schemas share one plan.
func same(old, page map[string]*Plan) bool {
	for name, p := range page {
		if old[name] != p && p != longName {
			return false
		}
	}
	return true
}

// remember merges a page into the audience's tools: the newest definition of
// a tool wins (B-24).
func (s *Tools) remember(audience string, page map[string]*Plan) {
	s.mu.Lock()
	defer s.mu.Unlock()
	set, next := s.of(audience), map[string]*Plan{}
	if set != nil {
		maps.Copy(next, *set.tools.Load())
	}
	size := merge(next, page)
	s.annotated.add(next)
	if set == nil {
		if len(next) == 0 {
			return
		}
		set = &toolSet{}
		set.used.Store(s.clock.Add(1))
		defer s.addLocked(audience, set)
	}
	s.size += size - set.size
	set.size = size
	set.tools.Store(&next)
	if s.size > maxBytes {
		s.forgetLocked()
	}
}

// merge brings tools up to date with a page and returns their size.
func merge(tools, page map[string]*Plan) (size int) {
	for name := range page {
		delete(tools, name)
	}
	for name, p := range tools {
		size += sizeOf(name, p)
	}
	for name, p := range page {
		if p != nil && p != longName && len(tools) < maxTools && size+sizeOf(name, p) <= maxSetBytes {
			tools[name] = p
			size += sizeOf(name, p)
		}
	}
	return size
}

func (s *Tools) addLocked(audience string, set *toolSet) {
	if all := s.audiences.Load(); all != nil && len(*all) >= maxAudiences {
		s.forgetLocked()
	}
	all := map[string]*toolSet{}
	if old := s.audiences.Load(); old != nil {
		all = maps.Clone(*old)
	}
	all[audience] = set
	s.audiences.Store(&all)
}

// forgetLocked drops the least recently used quarter of the audiences, so that the
// search for them is paid for by many insertions.
func (s *Tools) forgetLocked() {
	old := s.audiences.Load()
	if old == nil {
		return
	}
	type entry struct {
		audience string
		used     uint64 // read once: calls go on meanwhile
	}
	entries := make([]entry, 0, len(*old))
	for audience, set := range *old {
		entries = append(entries, entry{audience, set.used.Load()})
	}
	slices.SortFunc(entries, func(a, b entry) int { return cmp.Compare(a.used, b.used) })
	all := maps.Clone(*old)
	for _, e := range entries[:(len(entries)+3)/4] {
		s.size -= all[e.audience].size
		delete(all, e.audience)
	}
	s.audiences.Store(&all)
}

// withoutIllegal cuts the illegal tools out of a result; everything else keeps
// its bytes and order.
func withoutIllegal(result, tools []byte, page map[string]*Plan) []byte {
	kept := make([]byte, 0, len(tools))
	kept = append(kept, '[')
	for tool := range rawjson.Elements(tools) {
		name, _ := rawjson.Name(rawjson.Get(tool, "name"))
		if p := page[name]; p != nil && p.illegal != "" {
			continue
		}
		if len(kept) > 1 {
			kept = append(kept, ',')
		}
		kept = append(kept, tool...)
	}
	kept = append(kept, ']')
	return rawjson.Apply(make([]byte, 0, len(result)), result, rawjson.Edit{Name: "tools", Value: kept})
}
