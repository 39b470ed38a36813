package translate

import (
	"bytes"
	"strings"

	"github.com/mcpbridge/bridge/rawjson"
)

// A schema is what one pass over a JSON schema found out.
type schema struct {
	end         int
	kept        int  // members at the root that stay
	typed       bool // the root has a type
	object      bool // the root's type is exactly "object"
	sound       bool // what legacy schemas say about the root holds: properties is an object, required an array
	unwrappable bool // uses a reference that only works at the root of a document
	dialect     member
}

// wrapped reports whether a legacy client cannot be given s as an output schema
// as it is, but can be given it wrapped.
func (s *schema) wrapped() bool { return s.sound && !s.object && !s.unwrappable }

// A ref is a reference into the document: a string value to be rewritten when
// the schema moves inside of another one.
type ref struct{ start, end int }

// keyword says what a schema keyword's value consists of. Values of all other
// keywords are data: what looks like a keyword in there is none (B-21).
type keyword int

const (
	dataKeyword keyword = iota
	schemaKeyword
	listKeyword
	mapKeyword
)

func keywordOf(key []byte) keyword {
	switch string(key) {
	case "items", "additionalItems", "unevaluatedItems", "contains", "additionalProperties",
		"unevaluatedProperties", "propertyNames", "not", "if", "then", "else", "contentSchema":
		return schemaKeyword
	case "allOf", "anyOf", "oneOf", "prefixItems":
		return listKeyword
	case "properties", "patternProperties", "dependentSchemas", "dependencies", "$defs", "definitions":
		return mapKeyword
	}
	return dataKeyword
}

// schema enters the schema object at the given place by keyword. It removes
// x-mcp-header, notes local references, and at the root brings boolean property
// schemas into the form of an object that legacy revisions require (B.6). What
// goes at the root is only dropped; the caller prunes it.
func (w *walker) schema(at int, root bool) (s schema) {
	s.sound = true
	mark, refs, based := len(w.drops), len(w.refs), false
	o := enterObject(w.src, at)
	for o.next() {
		switch string(o.key) {
		case "type":
			s.typed, s.object = true, string(o.value()) == `"object"`
		case "x-mcp-header":
			if w.cut.header {
				w.drop(o.done())
			}
		case "$schema":
			s.dialect = o.done()
		case "$id":
			id, ok := rawjson.Text(o.value())
			based = based || ok && !strings.HasPrefix(id, "#")
		case "$ref", "$dynamicRef":
			s.unwrappable = s.unwrappable || root // inside of another schema it is too much for ajv 6, and beside an $id for ajv 8: a client with either gets no list at all
			w.reference(&o)
		case "$recursiveRef": // always "#": cannot be pointed elsewhere
			s.unwrappable = true
		case "required":
			s.sound = s.sound && o.kind() == rawjson.Array
		default:
			w.subschemas(&o, root, &s)
		}
	}
	if based { // references below are relative to this schema, wherever it stands
		w.refs = w.refs[:refs]
	}
	if !root {
		w.prune(mark)
	}
	s.end, s.kept = o.end, o.count-(len(w.drops)-mark)
	return s
}

// reference notes a reference to a place in the same document.
func (w *walker) reference(o *object) {
	if isLocal(o.value()) {
		var ok bool
		if w.refs, ok = room(w, w.refs, 1, refSize); ok {
			w.refs = append(w.refs, ref{o.m.val, o.m.end})
		}
	}
}

// isLocal reports whether a reference is the document's root or a path from it.
func isLocal(v []byte) bool {
	if bytes.IndexByte(v, '\\') >= 0 {
		target, _ := rawjson.Text(v)
		return target == "#" || strings.HasPrefix(target, "#/")
	}
	return string(v) == `"#"` || string(v) == `""` || bytes.HasPrefix(v, []byte(`"#/`))
}

// subschemas enters the schemas in the current keyword of o.
func (w *walker) subschemas(o *object, root bool, s *schema) {
	kind := keywordOf(o.key)
	if kind == dataKeyword {
		return
	}
	properties := root && string(o.key) == "properties"
	switch o.kind() {
	case rawjson.Object:
		if kind == schemaKeyword {
			o.m.end = w.subschema(o.m.val, s)
			return
		}
		o.m.end = w.schemaMap(o.m.val, properties, s)
	case rawjson.Array: // items was an array of schemas up to draft 7
		o.m.end = w.schemaList(o.m.val, s)
		s.sound = s.sound && !properties
	default:
		s.sound = s.sound && !properties
	}
}

func (w *walker) subschema(at int, s *schema) (end int) {
	sub := w.schema(at, false)
	s.unwrappable = s.unwrappable || sub.unwrappable
	return sub.end
}

func (w *walker) schemaList(at int, s *schema) (end int) {
	a := enterArray(w.src, at)
	for a.next() {
		if a.kind() == rawjson.Object {
			a.m.end = w.subschema(a.m.val, s)
		}
	}
	return a.end
}

func (w *walker) schemaMap(at int, properties bool, s *schema) (end int) {
	m := enterObject(w.src, at)
	for m.next() {
		switch kind := m.kind(); {
		case kind == rawjson.Object:
			m.m.end = w.subschema(m.m.val, s)
		case properties && kind == rawjson.True:
			w.put(m.m.val, m.done().end, "{}")
		case properties && kind == rawjson.False:
			w.put(m.m.val, m.done().end, `{"not":{}}`)
		case properties:
			s.sound = false
		}
	}
	return m.end
}

// wrapSchema puts the schema at m, which was just walked, under the property
// result of an object schema. Its local references move along, its dialect is
// declared at the new root (Q10).
func (w *walker) wrapSchema(m member, s *schema) {
	from := len(w.text)
	if !w.needs(s.dialect.end - s.dialect.start + 64) {
		return
	}
	w.text = append(w.text, `{"type":"object",`...)
	if s.dialect.end > 0 {
		w.text = append(append(w.text, w.src[s.dialect.start:s.dialect.end]...), ',')
		w.drop(s.dialect)
	}
	w.text = append(w.text, `"properties":{"result":`...)
	w.putText(m.val, m.val, from)
	w.put(m.end, m.end, `},"required":["result"]}`)
	for _, r := range w.refs {
		w.moveReference(r)
	}
}

// moveReference lets a local reference start where the wrapped schema stands.
func (w *walker) moveReference(r ref) {
	if w.src[r.start+1] == '#' {
		w.put(r.start+2, r.start+2, "/properties/result")
		return
	}
	target, _ := rawjson.Name(w.src[r.start:r.end]) // the sign is spelled as an escape, or left out
	from := len(w.text)
	if !w.needs(2*len(target) + 32) {
		return
	}
	w.text = rawjson.AppendQuote(w.text, "#/properties/result"+strings.TrimPrefix(target, "#"))
	w.putText(r.start, r.end, from)
}
