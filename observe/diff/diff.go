package diff

import (
	"bytes"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"

	"github.com/mcpbridge/bridge/rawjson"
)

// Step is a way that a message can take through the bridge.
type Step uint8

// The ways.
const (
	Request      Step = iota // of the client, to a round: params
	Result                   // of the server, to the client: result
	Failure                  // an error of either, to the client: error
	Question                 // an input request, to the client: method and params
	Answer                   // of the client, to an input response: result
	Notification             // of the server, to the client: params
)

// Op is what happened to a member.
type Op string

// What can happen.
const (
	Added   Op = "added"
	Removed Op = "removed"
	Changed Op = "changed"
)

// Change is a member that differs.
type Change struct {
	Op            Op
	Path          string
	Before, After string // as they may be seen, clipped
	Rules         []Rule // that say so; none: nobody has written one down
}

// Most is how many changes of one message are told apart.
const Most = 40

// Compare returns what differs between two JSON values on a way of a method's message,
// and how many changes more there are. A value that is nil is absent.
func Compare(step Step, method string, before, after []byte) (changes []Change, more int) {
	c := comparison{step: step, method: method}
	c.value(before, after, nil)
	return c.changes, c.more
}

// comparison is a walk through two values.
type comparison struct {
	step    Step
	method  string
	changes []Change
	more    int
}

// maxDepth bounds the walk; what lies deeper is compared as a whole.
const maxDepth = 24

func (c *comparison) value(before, after []byte, path []string) {
	if n := len(path); n > 0 && path[n-1] == "_meta" { // its members have rules of their own, one by one
		if before == nil && rawjson.KindOf(after) == rawjson.Object {
			before = []byte("{}")
		}
	}
	switch kind := rawjson.KindOf(after); {
	case bytes.Equal(before, after):
	case before == nil || after == nil || kind != rawjson.KindOf(before) || len(path) > maxDepth || len(path) > 0 && opaque(path, kind):
		c.note(before, after, path)
	case kind == rawjson.Object:
		c.object(before, after, path)
	case kind == rawjson.Array:
		c.array(before, after, path)
	default:
		c.note(before, after, path)
	}
}

func (c *comparison) object(before, after []byte, path []string) {
	old, fresh := maps.Collect(named(before)), maps.Collect(named(after))
	for name, value := range named(before) {
		c.value(value, fresh[name], deeper(path, name))
	}
	for name, value := range named(after) {
		if old[name] == nil {
			c.value(nil, value, deeper(path, name))
		}
	}
}

// named yields the members of an object.
func named(object []byte) iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		for name, value := range rawjson.Members(object) {
			if !yield(string(name), value) {
				return
			}
		}
	}
}

// array compares elements that have names by those, others by their place.
func (c *comparison) array(before, after []byte, path []string) {
	old, fresh := slices.Collect(rawjson.Elements(before)), slices.Collect(rawjson.Elements(after))
	names := func(list [][]byte) bool {
		return !slices.ContainsFunc(list, func(e []byte) bool { return nameOf(e) == "" })
	}
	if len(old) != len(fresh) && names(old) && names(fresh) {
		c.byName(old, fresh, path)
		return
	}
	for i := range max(len(old), len(fresh)) {
		var was, is []byte
		if i < len(old) {
			was = old[i]
		}
		if i < len(fresh) {
			is = fresh[i]
		}
		c.value(was, is, deeper(path, strconv.Itoa(i)))
	}
}

func (c *comparison) byName(old, fresh [][]byte, path []string) {
	before, after := firsts(old), firsts(fresh)
	for i, e := range old {
		c.value(e, after[nameOf(e)], deeper(path, strconv.Itoa(i)))
	}
	for i, e := range fresh {
		if before[nameOf(e)] == nil {
			c.value(nil, e, deeper(path, strconv.Itoa(i)))
		}
	}
}

// firsts has the first element of each name.
func firsts(list [][]byte) map[string][]byte {
	first := make(map[string][]byte, len(list))
	for _, e := range slices.Backward(list) {
		first[nameOf(e)] = e
	}
	return first
}

func nameOf(element []byte) string {
	if rawjson.KindOf(element) != rawjson.Object {
		return ""
	}
	name, _ := rawjson.Name(rawjson.Get(element, "name"))
	return name
}

func deeper(path []string, name string) []string { return append(slices.Clip(path), name) }

// opaque reports whether what lies at a path is written by people, models and servers:
// the bridge changes it as a whole, and the names of its members are nobody's business.
func opaque(path []string, kind rawjson.Kind) bool {
	switch path[len(path)-1] {
	case "arguments", "structuredContent", "data", "metadata", "enum", "const", "default", "examples", "context":
		return true
	case "content":
		return kind == rawjson.Object
	}
	return false
}

func (c *comparison) note(before, after []byte, path []string) {
	if len(c.changes) >= Most {
		c.more++
		return
	}
	change := Change{Op: Changed, Path: spell(path), Before: show(before), After: show(after)}
	switch {
	case before == nil:
		change.Op = Added
	case after == nil:
		change.Op = Removed
	}
	change.Rules = rulesOf(c.step, c.method, path, change.Op)
	c.changes = append(c.changes, change)
}

// spell writes a path the way people write one.
func spell(path []string) string {
	var b []byte
	for _, name := range path {
		if _, err := strconv.Atoi(name); err == nil {
			b = fmt.Appendf(b, "[%s]", name)
			continue
		}
		if len(b) > 0 {
			b = append(b, '.')
		}
		b = append(b, clip(name)...)
	}
	return string(b)
}

// show writes a value in short.
func show(v []byte) string {
	switch rawjson.KindOf(v) {
	case rawjson.Object:
		n := 0
		for range rawjson.Members(v) {
			n++
		}
		return fmt.Sprintf("{%d}", n)
	case rawjson.Array:
		return fmt.Sprintf("[%d]", len(slices.Collect(rawjson.Elements(v))))
	}
	return clip(string(v))
}

// maxShown bounds one value or name, in bytes.
const maxShown = 100

func clip(text string) string {
	if len(text) > maxShown {
		return text[:maxShown] + "…"
	}
	return text
}
