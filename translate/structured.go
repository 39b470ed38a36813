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
	s := out.structured
	text := ""
	if fallback && !w.hasTextOf(out) {
		text = textBlock(rawjson.Compact(nil, w.src[s.val:s.end]), nil)
	}
	switch {
	case out.content.end == 0 && s.end > 0:
		w.add(o, mark, `"content":[`+text+`]`)
	case text != "":
		end, count := arrayEnd(w.src, out.content.val)
		if count > 0 {
			text = "," + text
		}
		w.put(end, end, text)
	}
}

// hashSeed is that of all hashes of structured content.
var hashSeed = maphash.MakeSeed()

// hasTextOf reports whether a text block already holds the structured content. Both it and each
// text are gone over once.
func (w *walker) hasTextOf(out *output) bool {
	want := w.src[out.structured.val:out.structured.end]
	if out.content.end == 0 {
		return false
	}
	var hash uint64 // of what is wanted, once there is a text to compare it with
	for block := range rawjson.Elements(w.src[out.content.val:out.content.end]) {
		text, ok := rawjson.Text(rawjson.Get(block, "text"))
		if !ok || rawjson.Validate([]byte(text)) != nil || rawjson.KindOf([]byte(text)) != rawjson.KindOf(want) {
			continue
		}
		if hash == 0 {
			hash = rawjson.Hash(hashSeed, want)
		}
		if rawjson.Hash(hashSeed, []byte(text)) == hash {
			return rawjson.Equal([]byte(text), want)
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

// textBlock returns a text block that holds text, with annotations when given.
func textBlock(text, annotations []byte) string {
	b := append([]byte(nil), `{"type":"text","text":`...)
	b = rawjson.AppendQuote(b, string(text))
	if annotations != nil {
		b = append(append(b, `,"annotations":`...), annotations...)
	}
	return string(append(b, '}'))
}
