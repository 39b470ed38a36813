package translate

import (
	"strconv"

	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/rawjson"
)

// blocks enters an array of content blocks and returns its end.
func (w *walker) blocks(at int) (end int) {
	a := enterArray(w.src, at)
	for a.next() {
		a.m.end = w.block(a.m.val, a.m.index)
	}
	return a.end
}

// block enters one content block, the n-th of its array or message, and returns
// its end. A block that the revision cannot express is replaced in its place
// and keeps its annotations (B.8, B-39).
func (w *walker) block(at, n int) (end int) {
	if kindAt(w.src, at) != rawjson.Object {
		return w.replaceBlock(at, rawjson.End(w.src, at), n, "")
	}
	edits, mark := len(w.edits), len(w.drops)
	typ := ""
	var icons member
	o := enterObject(w.src, at)
	for o.next() {
		switch string(o.key) {
		default:
			w.anyBlock(&o, &typ)
		case "resource":
			if w.cut.meta && o.kind() == rawjson.Object {
				o.m.end = w.withoutMeta(o.m.val)
			}
		case "icons":
			icons = o.done()
		}
	}
	if !w.knowsBlock(typ) {
		w.edits, w.drops = w.edits[:edits], w.drops[:mark]
		return w.replaceBlock(at, o.end, n, typ)
	}
	if typ == "resource_link" && w.cut.icons && icons.end > 0 {
		w.drop(icons)
	}
	w.prune(mark)
	return o.end
}

// anyBlock takes a member that blocks of all kinds have, in results and in questions
// alike.
func (w *walker) anyBlock(o *object, typ *string) {
	switch string(o.key) {
	case "type":
		*typ = blockType(o.value())
	case "annotations":
		w.annotations(o)
	case "_meta":
		if w.cut.meta {
			w.drop(o.done())
		}
	}
}

// blockType decodes the type of a content block; the known ones without a copy.
func blockType(v []byte) string {
	switch string(v) {
	case `"text"`:
		return "text"
	case `"image"`:
		return "image"
	case `"audio"`:
		return "audio"
	case `"resource"`:
		return "resource"
	case `"resource_link"`:
		return "resource_link"
	}
	typ, _ := rawjson.Text(v)
	return typ
}

// knowsBlock reports whether the revision's content union has typ.
func (w *walker) knowsBlock(typ string) bool {
	switch typ {
	case "text", "image", "resource":
		return true
	case "audio":
		return w.rules.Version.AtLeast(mcp.V20250326)
	case "resource_link":
		return w.rules.Version.AtLeast(mcp.V20250618)
	}
	return false
}

// replaceBlock expresses a block of a type that the revision does not have.
func (w *walker) replaceBlock(at, end, n int, typ string) int {
	block := w.src[at:end]
	if !w.lend(timesRead*len(block)) || !w.needs(timesQuoted*len(block)+blockFrame) {
		return end
	}
	annotations, from := w.keptAnnotations(block), len(w.text)
	switch typ {
	case "audio":
		w.rules.lost(lostAudio)
		w.text = appendAudio(w.text, block, annotations, n)
	case "resource_link":
		w.rules.lost(lostLink)
		w.text = appendTextBlock(w.text, linkText(block), annotations)
	default:
		w.rules.lost(lostBlock)
		w.text = appendTextBlock(w.text, rawjson.Compact(nil, block), annotations)
	}
	w.putText(at, end, from)
	w.lend(-timesRead * len(block))
	return end
}

// A block is in memory so many times while its text is put together, which becomes so many times as long at most, and
// has a frame besides.
const (
	timesRead   = 3
	timesQuoted = 2
	blockFrame  = 128
)

// keptAnnotations returns a block's annotations as the revision has them.
func (w *walker) keptAnnotations(block []byte) []byte {
	annotations := rawjson.Get(block, "annotations")
	if rawjson.KindOf(annotations) != rawjson.Object {
		return nil
	}
	if w.cut.modified && rawjson.Has(annotations, "lastModified") {
		return rawjson.Apply(nil, annotations, rawjson.Edit{Name: "lastModified"})
	}
	return annotations
}

// appendAudio appends audio as an embedded resource, which every revision has.
func appendAudio(b, block, annotations []byte, n int) []byte {
	b = append(b, `{"type":"resource","resource":{"uri":"bridge-audio:`...)
	b = append(strconv.AppendInt(b, int64(n), 10), '"')
	if mime := rawjson.Get(block, "mimeType"); rawjson.KindOf(mime) == rawjson.String {
		b = append(append(b, `,"mimeType":`...), mime...)
	}
	data := rawjson.Get(block, "data")
	if rawjson.KindOf(data) != rawjson.String {
		data = []byte(`""`)
	}
	b = append(append(append(b, `,"blob":`...), data...), '}')
	if annotations != nil {
		b = append(append(b, `,"annotations":`...), annotations...)
	}
	return append(b, '}')
}

// linkText describes a resource link in words.
func linkText(block []byte) []byte {
	label := textOf(block, "title")
	if label == "" {
		label = textOf(block, "name")
	}
	var b []byte
	for _, line := range [...]struct{ name, text string }{
		{"Resource: ", label},
		{"URI: ", textOf(block, "uri")},
		{"Type: ", textOf(block, "mimeType")},
		{"Description: ", textOf(block, "description")},
	} {
		if line.text == "" {
			continue
		}
		if len(b) > 0 {
			b = append(b, '\n')
		}
		b = append(append(b, line.name...), line.text...)
	}
	return b
}

func textOf(obj []byte, name string) string {
	text, _ := rawjson.Name(rawjson.Get(obj, name))
	return text
}

// annotations removes what the revision does not define from the current value
// of o.
func (w *walker) annotations(o *object) {
	if !w.cut.modified || o.kind() != rawjson.Object {
		return
	}
	o.m.end = w.without(o.m.val, "lastModified")
}

// withoutMeta removes _meta from the object at the given place and returns the
// object's end.
func (w *walker) withoutMeta(at int) (end int) { return w.without(at, "_meta") }

func (w *walker) without(at int, name string) (end int) {
	mark := len(w.drops)
	o := enterObject(w.src, at)
	for o.next() {
		if string(o.key) == name {
			w.drop(o.done())
		}
	}
	w.prune(mark)
	return o.end
}

// messages enters the messages of a prompt. Their content is one block, never
// an array (B-39).
func (w *walker) messages(at int) (end int) {
	a := enterArray(w.src, at)
	for a.next() {
		if a.kind() != rawjson.Object {
			w.fail("a message is no object")
			return a.end
		}
		o := enterObject(w.src, a.m.val)
		for o.next() {
			if string(o.key) != "content" {
				continue
			}
			if o.kind() == rawjson.Array {
				w.fail("a message's content is an array")
				return a.end
			}
			o.m.end = w.block(o.m.val, a.m.index)
		}
		a.m.end = o.end
	}
	return a.end
}

// contents enters the contents of a resource.
func (w *walker) contents(at int) (end int) {
	a := enterArray(w.src, at)
	for a.next() {
		if w.cut.meta && a.kind() == rawjson.Object {
			a.m.end = w.withoutMeta(a.m.val)
		}
	}
	return a.end
}
