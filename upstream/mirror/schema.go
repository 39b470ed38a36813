package mirror

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/mcpbridge/bridge/internal/fault"
	"github.com/mcpbridge/bridge/internal/http1"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/rawjson"
)

// Annotation is the schema keyword that makes an argument a header.
const Annotation = "x-mcp-header"

const (
	// maxBindings bounds the headers of one tool, and maxBindingBytes the names of what they
	// repeat and their own.
	maxBindings     = 64
	maxBindingBytes = 32 << 10
	// maxSchemaDepth bounds the nesting that is searched for annotations. It
	// exceeds the nesting that a valid message can have.
	maxSchemaDepth = 300
)

// binding maps the argument at path to a header (B-19).
type binding struct {
	path   []string
	header string
}

// Plan is what a tool's inputSchema says about headers: its bindings, or why
// the tool must not be offered (B-23). Plans are immutable and shared.
type Plan struct {
	bindings []binding
	illegal  string
	size     int // of the bindings' texts, in bytes
}

// parsePlan walks a valid inputSchema by keyword (B-21).
func parsePlan(schema []byte) *Plan {
	w := walker{text: bytes.TrimSpace(schema), seen: map[string]bool{}}
	w.schema(0, nil, true, false, 0)
	if w.illegal != "" {
		return &Plan{illegal: w.illegal}
	}
	return &Plan{bindings: w.bindings, size: w.size}
}

type walker struct {
	text     []byte
	bindings []binding
	size     int             // of their texts, in bytes
	seen     map[string]bool // lower-cased header names
	illegal  string
}

func (w *walker) reject(format string, args ...any) {
	if w.illegal == "" {
		w.illegal = fmt.Sprintf(format, args...)
	}
}

// schema visits the schema at i, and returns where it ends: each part of the text is gone over once,
// however deep it stands. path leads to it through properties keywords only
// while static is true; property is false for the root, which is no parameter.
func (w *walker) schema(i int, path []string, static, property bool, depth int) (end int) {
	switch {
	case !w.is(rawjson.Object, i) || w.illegal != "":
		return rawjson.End(w.text, i)
	case depth > maxSchemaDepth:
		w.reject("the schema is nested too deeply")
		return rawjson.End(w.text, i)
	}
	at := place{path: path, static: static, property: property, depth: depth}
	end = rawjson.EachMember(w.text, i, func(keyword []byte, value int) int {
		return w.keyword(string(keyword), value, &at)
	})
	if at.annotated && !primitive(at.typ) { // the type may stand behind all that is nested
		w.reject("%s of %q is on a type other than string, integer or boolean", Annotation, fault.Clip(strings.Join(path, ".")))
	}
	return end
}

// place is where a schema stands, and what was found in it.
type place struct {
	path             []string
	static, property bool
	depth            int

	annotated bool
	typ       []byte
}

func (w *walker) is(kind rawjson.Kind, i int) bool {
	return i < len(w.text) && rawjson.KindOf(w.text[i:]) == kind
}

// keyword visits the value at i of a keyword of the schema at a place, and returns where it ends.
func (w *walker) keyword(keyword string, i int, at *place) (end int) {
	path, static, depth := at.path, at.static, at.depth
	switch keyword {
	case Annotation:
		end = rawjson.End(w.text, i)
		at.annotated = true
		w.annotated(w.text[i:end], path, static && at.property)
		return end
	case "type":
		end = rawjson.End(w.text, i)
		at.typ = w.text[i:end]
		return end
	case "properties":
		return w.named(i, func(name []byte, i int) int {
			return w.schema(i, append(path, string(name)), static, true, depth+1)
		})
	case "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies":
		return w.named(i, func(_ []byte, i int) int { return w.schema(i, nil, false, true, depth+1) })
	case "allOf", "anyOf", "oneOf", "prefixItems",
		"items", "additionalItems", "additionalProperties", "unevaluatedItems", "unevaluatedProperties",
		"contains", "propertyNames", "not", "if", "then", "else", "contentSchema":
		return w.each(i, depth)
	}
	return rawjson.End(w.text, i) // everything else, default, const, enum and examples among it, is data
}

// named visits the members of the value at i.
func (w *walker) named(i int, visit func(name []byte, value int) (end int)) (end int) {
	if !w.is(rawjson.Object, i) {
		return rawjson.End(w.text, i)
	}
	return rawjson.EachMember(w.text, i, visit)
}

// each visits a schema or the schemas of an array, none of them statically
// reachable (B-20).
func (w *walker) each(i, depth int) (end int) {
	if !w.is(rawjson.Array, i) {
		return w.schema(i, nil, false, true, depth+1)
	}
	return rawjson.EachElement(w.text, i, func(i int) int { return w.schema(i, nil, false, true, depth+1) })
}

// annotated takes an annotation, but for the type of what it is on.
func (w *walker) annotated(value []byte, path []string, legal bool) {
	name, ok := rawjson.Text(value)
	size := w.size + textSize(name, path)
	switch {
	case !legal:
		w.reject("%s stands where no parameter is statically reachable", Annotation)
	case !ok || !http1.IsToken(name):
		w.reject("%s of %q is no header name", Annotation, fault.Clip(strings.Join(path, ".")))
	case w.seen[strings.ToLower(name)]:
		w.reject("%s %q is used twice", Annotation, fault.Clip(name))
	case len(w.bindings) == maxBindings:
		w.reject("more than %d parameters have %s", maxBindings, Annotation)
	case size > maxBindingBytes:
		w.reject("the names of the parameters that have %s, and of their headers, are longer than %d bytes", Annotation, maxBindingBytes)
	default:
		w.size = size
		w.seen[strings.ToLower(name)] = true
		w.bindings = append(w.bindings, binding{path: slices.Clone(path), header: mcp.HeaderParamPrefix + name})
	}
}

func textSize(name string, path []string) int {
	size := len(name)
	for _, part := range path {
		size += len(part)
	}
	return size
}

// primitive judges the type keyword of an annotated parameter (B-19, B-22).
func primitive(t []byte) bool {
	if rawjson.KindOf(t) != rawjson.Array {
		return primitiveName(t)
	}
	named := 0
	for e := range rawjson.Elements(t) {
		if s, _ := rawjson.Text(e); s == "null" {
			continue
		}
		if !primitiveName(e) {
			return false
		}
		named++
	}
	return named == 1
}

func primitiveName(t []byte) bool {
	switch s, _ := rawjson.Text(t); s {
	case "string", "integer", "boolean":
		return true
	}
	return false
}

// Illegal says why the tool must not be offered or called, "" when it may be.
func (p *Plan) Illegal() string { return p.illegal }

// AppendFields appends the headers that arguments call for (B-12…B-17).
func (p *Plan) AppendFields(dst []Field, arguments []byte) []Field {
	var f finder
	for _, b := range p.bindings {
		if text, ok := argumentText(f.find(arguments, b.path)); ok {
			dst = append(dst, Field{Name: b.header, Value: string(AppendValue(nil, text))})
		}
	}
	return dst
}

// finder finds arguments by the paths of a plan, one after the other. They come in the
// order of the schema, so that what stands on several paths is gone into once.
type finder struct {
	path   []string // the latest of several names
	values [][]byte // at the ends of its beginnings
}

func (f *finder) find(arguments []byte, path []string) []byte {
	if len(path) == 1 {
		return rawjson.Get(arguments, path[0])
	}
	same := 0
	for same < min(len(path), len(f.path)) && path[same] == f.path[same] {
		same++
	}
	v := arguments
	if same > 0 {
		v = f.values[same-1]
	}
	f.path, f.values = path, f.values[:same]
	for _, name := range path[same:] {
		v = rawjson.Get(v, name)
		f.values = append(f.values, v)
	}
	return v
}
