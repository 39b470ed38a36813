package rawjson

import (
	"bytes"
	"iter"
)

// Members yields the members of obj in their order: the name without quotes
// and escapes, and the raw value. Both alias obj, except that a name with
// escapes is decoded into new memory; a lone surrogate in it becomes the three
// bytes that AppendQuote turns back into the escape. Nothing is yielded when
// obj is no object.
func Members(obj []byte) iter.Seq2[[]byte, []byte] {
	return func(yield func(name, value []byte) bool) { members(obj, yield) }
}

func members(obj []byte, yield func(name, value []byte) bool) {
	c, ok := newCursor(obj)
	if !ok {
		return
	}
	for c.next() {
		if !yield(unescaped(c.name()), c.value()) {
			return
		}
	}
}

// Elements yields the raw elements of arr in their order. Nothing is yielded
// when arr is no array.
func Elements(arr []byte) iter.Seq[[]byte] {
	return func(yield func(value []byte) bool) { elements(arr, yield) }
}

func elements(arr []byte, yield func(value []byte) bool) {
	i := skipSpace(arr, 0)
	if i >= len(arr) || arr[i] != '[' {
		return
	}
	for i = skipSpace(arr, i+1); i < len(arr) && arr[i] != ']'; {
		end := End(arr, i)
		if end == i || !yield(arr[i:end:end]) {
			return
		}
		i = skipSpace(arr, end)
		if i >= len(arr) || arr[i] != ',' {
			return
		}
		i = skipSpace(arr, i+1)
	}
}

// EachMember goes over the members of the object at b[i] by offset. visit gets a name, as Members yields
// it, and where its value starts, and returns where that ends: so values that are gone into are not gone
// over before. It returns where the object ends.
func EachMember(b []byte, i int, visit func(name []byte, value int) (end int)) (end int) {
	i = skipSpace(b, i+1)
	for at(b, i, '"') {
		m := memberAt(b, i)
		i = nextItem(b, visit(m.name, m.value))
	}
	return min(i+1, len(b))
}

// EachElement is EachMember for the array at b[i].
func EachElement(b []byte, i int, visit func(value int) (end int)) (end int) {
	i = skipSpace(b, i+1)
	for i < len(b) && b[i] != ']' {
		end := visit(i)
		if end == i {
			break
		}
		i = nextItem(b, end)
	}
	return min(i+1, len(b))
}

// Get returns the raw value of the member called name, without surrounding
// whitespace. It returns nil when there is none or obj is no object. A member
// whose value is null yields the text null, not nil (P-7).
func Get(obj []byte, name string) []byte {
	c, ok := newCursor(obj)
	if !ok {
		return nil
	}
	for c.next() {
		if sameName(c.name(), name) {
			return c.value()
		}
	}
	return nil
}

// Has reports whether obj is an object with a member called name, whatever its
// value.
func Has(obj []byte, name string) bool { return Get(obj, name) != nil }

// longestEscape is how many bytes stand for one at most, as \u0061 does for a.
const longestEscape = 6

// sameName compares a raw member name with a plain one. Its cost does not depend on a raw name that is
// too long to be that.
func sameName(raw []byte, name string) bool {
	if len(raw) <= len(name) { // an escape is longer than what it stands for
		return string(raw) == name && bytes.IndexByte(raw, '\\') < 0
	}
	if len(raw) > longestEscape*len(name) {
		return false
	}
	if bytes.IndexByte(raw, '\\') < 0 {
		return false
	}
	var buf [64]byte
	return string(appendUnescaped(buf[:0], raw)) == name
}
