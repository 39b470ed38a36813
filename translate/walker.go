package translate

import (
	"bytes"
	"cmp"
	"slices"
	"sync"

	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/rawjson"
)

// A walker goes over one payload, collects edits and splices them in at the
// end. Handlers enter the values they care about and return where those end.
type walker struct {
	src    []byte
	rules  Rules
	cut    removals
	method string
	err    error // the first fault that makes the whole payload unusable

	edits []edit
	text  []byte   // what the edits put in
	drops []member // stack: members to be removed from the objects being walked
	refs  []ref    // stack: local references in the schema being walked

	lent int  // bytes that are held for a moment besides these
	told bool // rules.Held was told of something
	turn bool // it has one of turns
}

// An edit replaces src[start:end] by text[from:to].
type edit struct{ start, end, from, to int }

var walkers = sync.Pool{New: func() any { return new(walker) }}

func newWalker(r *Rules, method string, src []byte) *walker {
	w := walkers.Get().(*walker)
	w.src, w.rules, w.cut, w.method = src, *r, r.removals(), method
	return w
}

func (w *walker) release() {
	w.settle()
	if w.size() > maxPooled {
		return
	}
	*w = walker{edits: w.edits[:0], text: w.text[:0], drops: w.drops[:0], refs: w.refs[:0]}
	walkers.Put(w)
}

// put replaces src[start:end] by text.
func (w *walker) put(start, end int, text string) {
	from := len(w.text)
	if w.needs(len(text)) {
		w.text = append(w.text, text...)
		w.putText(start, end, from)
	}
}

// putText replaces src[start:end] by what was appended to w.text after from.
func (w *walker) putText(start, end, from int) {
	var ok bool
	if w.edits, ok = room(w, w.edits, 1, editSize); ok {
		w.edits = append(w.edits, edit{start, end, from, len(w.text)})
	}
}

// drop marks m for removal from the object or array being walked. Its end must
// be known.
func (w *walker) drop(m member) {
	var ok bool
	if w.drops, ok = room(w, w.drops, 1, dropSize); ok {
		w.drops = append(w.drops, m)
	}
}

// prune removes the members that were dropped since mark. They all belong to
// one object or array.
func (w *walker) prune(mark int) {
	drops := w.drops[mark:]
	w.drops = w.drops[:mark]
	if len(drops) == 0 {
		return
	}
	slices.SortFunc(drops, func(a, b member) int { return cmp.Compare(a.index, b.index) })
	leading := 0 // behind a sibling that stays, the comma before goes; at the front, the one behind
	for _, m := range drops {
		if m.index != leading {
			w.put(m.prev, m.end, "")
			continue
		}
		leading++
		next := m.end
		if i, ok := nextItem(w.src, m.end); ok {
			next = i
		}
		w.put(m.start, next, "")
	}
}

// add puts a member behind the last one of o. All members of o that go must
// have been dropped since mark.
func (w *walker) add(o *object, mark int, text string) {
	if o.count > len(w.drops)-mark {
		text = "," + text
	}
	w.put(o.last, o.last, text)
}

// bytes returns the edited payload: src itself when there was nothing to edit.
func (w *walker) bytes() ([]byte, error) {
	switch {
	case w.err != nil:
		return nil, w.err
	case len(w.edits) == 0:
		return w.src, nil
	}
	return w.appendTo(nil)
}

// appendTo appends the edited payload to dst, in one piece of memory of the right size. What it has grown by is held
// when the walker is released, too: it is what the caller has got.
func (w *walker) appendTo(dst []byte) ([]byte, error) {
	w.sort()
	size := len(w.src)
	w.effective(func(_ int, e edit) { size += e.to - e.from - (e.end - e.start) })
	if grown := size - len(w.src); grown > 0 && !w.lend(grown) {
		return dst, w.err
	}
	dst = slices.Grow(dst, size)
	rest := w.effective(func(at int, e edit) {
		dst = append(dst, w.src[at:e.start]...)
		dst = append(dst, w.text[e.from:e.to]...)
	})
	return append(dst, w.src[rest:]...), nil
}

// effective goes over the sorted edits, each with the end of the one before, and returns that of the last. An
// edit inside a range that another edit replaced is moot.
func (w *walker) effective(visit func(at int, e edit)) (at int) {
	for _, e := range w.edits {
		if e.start < at {
			continue
		}
		visit(at, e)
		at = e.end
	}
	return at
}

// maxMoves is how far edits are moved one by one, for each of them on average.
const maxMoves = 16

// sort orders the edits by position, insertions before whatever goes at their
// position. They come almost in order, so insertion sort beats a general one; where
// a server has seen to it that they do not, the general one bounds the cost.
func (w *walker) sort() {
	moves := maxMoves * len(w.edits)
	for i := 1; i < len(w.edits); i++ {
		e, k := w.edits[i], i
		for k > 0 && e.compare(w.edits[k-1]) < 0 {
			w.edits[k] = w.edits[k-1]
			k--
		}
		w.edits[k] = e
		if moves -= i - k; moves < 0 { // neither way changes the order of equals
			slices.SortStableFunc(w.edits, edit.compare)
			return
		}
	}
}

func (e edit) compare(o edit) int {
	return cmp.Or(cmp.Compare(e.start, o.start), cmp.Compare(min(e.end-e.start, 1), min(o.end-o.start, 1)))
}

// meta removes the keys that belong to the modern protocol from the current
// value of o, and the value itself when nothing is left or it is no object.
func (w *walker) meta(o *object) {
	if o.kind() != rawjson.Object {
		w.drop(o.done())
		return
	}
	mark := len(w.drops)
	m := enterObject(w.src, o.m.val)
	for m.next() {
		if ownedKey(m.key) {
			w.drop(m.done())
		}
	}
	o.m.end = m.end
	if dropped := len(w.drops) - mark; dropped > 0 && dropped == m.count {
		w.drops = w.drops[:mark]
		w.drop(o.m)
		return
	}
	w.prune(mark)
}

// ownedKey reports whether a _meta key belongs to the hop between bridge and
// modern server: it is set anew going up (B-4) and removed going down (B-28).
func ownedKey(key []byte) bool {
	name, ok := bytes.CutPrefix(key, []byte(mcp.MetaPrefix))
	if !ok {
		return false
	}
	switch string(name) {
	case "protocolVersion", "clientInfo", "clientCapabilities", "logLevel",
		"serverInfo", "subscriptionId", "related-task":
		return true
	}
	return false
}
