package translate

import (
	"hash/maphash"

	"github.com/mcpbridge/bridge/rawjson"
)

// output is where a tool's output stands in its result. A zero end means that
// the member is absent.
type output struct{ content, structured member }

// output brings a tool's output down: the structured content to an object that
// the revision can express, and its data into a text block where a client would
// otherwise lose it (B-34 to B-37, Q10). o is the walked tool result, mark the
// state of the drop stack before it.
func (w *walker) output(o *object, mark int, out *output) {
	fallback := false
	if s := out.structured; s.end > 0 {
		isObject := kindAt(w.src, s.val) == rawjson.Object
		switch {
		case !w.rules.hasStructured():
			if w.cut.output { // B-35
				w.rules.lost(lostOutput)
				w.drop(s)
				fallback = true
			}
		case isObject && !w.rules.WrapOutput: // expressible as it is
		case !isObject && w.rules.DropNonObject:
			w.rules.lost(lostOutput)
			w.drop(s)
			fallback = true
		default:
			w.rules.lost(wrappedOutput)
			w.put(s.val, s.val, `{"result":`)
			w.put(s.end, s.end, `}`)
			fallback = !isObject
		}
	}
	w.completeContent(o, mark, out, fallback)
}

// completeContent makes sure that there is a content array (B-30) and, with
// fallback, that some text block holds the structured content (B-36).
func (w *walker) completeContent(o *object, mark int, out *output, fallback bool) {
	var structured []byte // of which there is to be a text
	if s := out.structured; fallback && !w.hasTextOf(out) {
		structured = w.src[s.val:s.end]
	}
	lent, from := timesRead*len(structured), len(w.text)
	if !w.lend(lent) || !w.needs(timesQuoted*len(structured)+blockFrame) {
		return
	}
	switch {
	case out.content.end == 0 && out.structured.end > 0:
		if o.count > len(w.drops)-mark {
			w.text = append(w.text, ',')
		}
		w.text = append(appendText(append(w.text, `"content":[`...), structured), ']')
		w.putText(o.last, o.last, from)
	case structured != nil:
		end, count := arrayEnd(w.src, out.content.val)
		w.text = appendText(comma(w.text, count), structured)
		w.putText(end, end, from)
	}
	w.lend(-lent)
}

// appendText appends a text block of structured content; nil: none.
func appendText(dst, structured []byte) []byte {
	if structured == nil {
		return dst
	}
	return appendTextBlock(dst, rawjson.Compact(nil, structured), nil)
}

// hashSeed is that of all hashes of structured content.
var hashSeed = maphash.MakeSeed()

// hasTextOf reports whether a text block already holds the structured content. Both it and each
// text are gone over once: their hashes tell, and nobody else knows the seed.
func (w *walker) hasTextOf(out *output) bool {
	want := w.src[out.structured.val:out.structured.end]
	if out.content.end == 0 {
		return false
	}
	var hash uint64 // of what is wanted, once there is a text to compare it with
	for block := range rawjson.Elements(w.src[out.content.val:out.content.end]) {
		raw := rawjson.Get(block, "text")
		if !w.lend(len(raw)) {
			return false
		}
		text, ok := rawjson.NameBytes(raw)
		if ok = ok && rawjson.KindOf(text) == rawjson.KindOf(want) && rawjson.Validate(text) == nil; ok && hash == 0 {
			hash = rawjson.Hash(hashSeed, want)
		}
		ok = ok && rawjson.Hash(hashSeed, text) == hash
		w.lend(-len(raw))
		if ok {
			return true
		}
	}
	return false
}

// arrayEnd returns where another element of the array at i would go, and how
// many there are.
func arrayEnd(b []byte, i int) (end, count int) {
	a := enterArray(b, i)
	for a.next() {
	}
	return a.last, a.count
}

// arrayLen returns how many elements the array at i has.
func arrayLen(b []byte, i int) int {
	_, count := arrayEnd(b, i)
	return count
}

// appendTextBlock appends a text block that holds text, with annotations when given.
func appendTextBlock(b, text, annotations []byte) []byte {
	b = append(b, `{"type":"text","text":`...)
	b = rawjson.AppendQuote(b, string(text))
	if annotations != nil {
		b = append(append(b, `,"annotations":`...), annotations...)
	}
	return append(b, '}')
}
