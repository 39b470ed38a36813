package translate

import (
	"bytes"

	"github.com/mcpbridge/bridge/rawjson"
)

// The cursors below walk validated text by offset, left to right, and leave it
// to the walker whether a value is skipped or entered. So a result is gone over
// once, however many rules look at it. Package rawjson yields values instead
// of offsets, which would mean one pass per level.

// A member is the place of an object's member or an array's element.
type member struct {
	index int // among its siblings
	prev  int // end of the sibling before, or after the opening bracket
	start int // of the name's opening quote, or of the element
	val   int // of the value
	end   int // after the value; 0 while that is unknown
}

// object walks the members of one object.
type object struct {
	b     []byte
	key   []byte // current name, without quotes and escapes
	m     member // current member
	count int    // members seen so far
	last  int    // end of the latest member, or after the opening brace
	end   int    // after the closing brace, once next returned false
}

// enterObject returns a cursor over the object whose brace is at i.
func enterObject(b []byte, i int) object { return object{b: b, last: i + 1} }

// next moves on to the next member and reports whether there is one. A value
// that was not entered is skipped.
func (o *object) next() bool {
	if o.count > 0 {
		o.last = o.done().end
	}
	i, ok := nextItem(o.b, o.last)
	if !ok || o.b[i] != '"' {
		o.end = closing(o.b, i)
		return false
	}
	start := i
	i = rawjson.End(o.b, i)
	o.key = memberName(o.b[start:i])
	i = skipSpace(o.b, i)
	o.m = member{o.count, o.last, start, skipSpace(o.b, min(i+1, len(o.b))), 0}
	o.count++
	if o.m.val >= len(o.b) {
		o.end = len(o.b)
		return false
	}
	return true
}

// done returns the current member with its end, skipping the value if need be.
func (o *object) done() member {
	if o.m.end == 0 {
		o.m.end = rawjson.End(o.b, o.m.val)
	}
	return o.m
}

// kind returns the kind of the current value.
func (o *object) kind() rawjson.Kind { return kindAt(o.b, o.m.val) }

// value returns the current value's text.
func (o *object) value() []byte { return o.b[o.m.val:o.done().end] }

// array walks the elements of one array.
type array struct {
	b     []byte
	m     member // current element
	count int
	last  int // end of the latest element, or after the opening bracket
	end   int // after the closing bracket, once next returned false
}

// enterArray returns a cursor over the array whose bracket is at i.
func enterArray(b []byte, i int) array { return array{b: b, last: i + 1} }

// next moves on to the next element and reports whether there is one.
func (a *array) next() bool {
	if a.count > 0 {
		a.last = a.done().end
	}
	i, ok := nextItem(a.b, a.last)
	if !ok || i == a.m.val && a.count > 0 {
		a.end = closing(a.b, i)
		return false
	}
	a.m = member{a.count, a.last, i, i, 0}
	a.count++
	return true
}

// done returns the current element with its end, skipping it if need be.
func (a *array) done() member {
	if a.m.end == 0 {
		a.m.end = rawjson.End(a.b, a.m.val)
	}
	return a.m
}

// kind returns the kind of the current element.
func (a *array) kind() rawjson.Kind { return kindAt(a.b, a.m.val) }

// nextItem returns where the item after position i starts, and whether there is
// one before the closing bracket.
func nextItem(b []byte, i int) (int, bool) {
	if i = skipSpace(b, i); i < len(b) && b[i] == ',' {
		i = skipSpace(b, i+1)
	}
	return i, i < len(b) && b[i] != '}' && b[i] != ']'
}

func closing(b []byte, i int) int { return min(i+1, len(b)) }

// memberName returns a quoted name without quotes and escapes.
func memberName(quoted []byte) []byte {
	if bytes.IndexByte(quoted, '\\') >= 0 {
		name, _ := rawjson.Name(quoted)
		return []byte(name)
	}
	return quoted[1:max(1, len(quoted)-1)]
}

func kindAt(b []byte, i int) rawjson.Kind {
	if i >= len(b) {
		return rawjson.Invalid
	}
	return rawjson.KindOf(b[i:])
}

func skipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\r' || b[i] == '\t') {
		i++
	}
	return i
}
